// The code of one variant; every variant_*.cpp includes it after naming the instruction set. Loops are plain
// C++, which the compiler vectorises; only tile.h has vector code written by hand. Nothing here has external
// linkage, so no instruction of one variant can end up in another.
#include <cmath>
#include <cstring>

#include "quantise.h"
#include "tile.h"
#include "variant.h"

namespace assay {
namespace {

inline uint32_t pair_of(int32_t low, int32_t high) {
    return (static_cast<uint32_t>(low) & 0xffffu) | (static_cast<uint32_t>(high) << 16);
}

template <int PLANES> inline int32_t plane_of(int32_t m, int p) {
    if (PLANES == 1) return m;
    const int32_t high = (m + 64) >> 7, low = m - high * 128;
    return p == 0 ? high : p == 1 ? low : high + low;
}

constexpr int HALF = CHUNK / 2;  // terms whose squares sum to less than 2^32: 32 * 8256^2 < 2^31.1

inline uint32_t square(int32_t q) { return static_cast<uint32_t>(q * q); }

// A quarter, rounded up: the quarters of two halves of a chunk add up below 2^31, and only zero has quarter
// zero.
inline int32_t quarter(uint32_t squares) { return static_cast<int32_t>((squares >> 2) + ((squares & 3) != 0)); }

// Quantises one chunk of a row into every plane, and sets bounds[p] to a quarter of the squared norm, rounded
// up.
template <class T, int PLANES>
inline void quantise_chunk(const T *__restrict x, const RowScale &scale, int16_t *const (&planes)[PLANES],
                           int32_t (&bounds)[PLANES]) {
    alignas(64) int32_t m[CHUNK];
    for (int k = 0; k < CHUNK; ++k) m[k] = integer(x[k], scale);
    for (int p = 0; p < PLANES; ++p) {
        int16_t *__restrict out = planes[p];
        for (int k = 0; k < CHUNK; ++k) out[k] = static_cast<int16_t>(plane_of<PLANES>(m[k], p));
        uint32_t first = 0, second = 0;
        for (int k = 0; k < HALF; ++k) {
            first += square(out[k]);
            second += square(out[HALF + k]);
        }
        bounds[p] = quarter(first) + quarter(second);
    }
}

// Panels whose rows are contiguous.
template <class T, int PANEL, int PLANES>
void pack_rows(const Source &s, const Packed &to, int64_t first, int64_t end) {
    const T *data = static_cast<const T *>(s.data);
    const int64_t chunks = (s.terms + CHUNK - 1) / CHUNK, padded = s.terms + (s.terms & 1);
    alignas(64) int16_t block[PLANES][PANEL][CHUNK];
    for (int64_t panel = first; panel < end; ++panel) {
        RowScale scales[PANEL];
        const int inside = panel_scales<T, PANEL>(s, panel, scales, to.scales);
        if (inside < PANEL) std::memset(block, 0, sizeof(block));
        for (int64_t c = 0; c < chunks; ++c) {
            const int64_t start = c * CHUNK;
            const int count = static_cast<int>(s.terms - start < CHUNK ? s.terms - start : CHUNK);
            int32_t largest[PLANES] = {0};
            for (int r = 0; r < inside; ++r) {
                const T *x = data + (panel * PANEL + r) * s.row_stride + start;
                int16_t *planes[PLANES];
                int32_t bounds[PLANES];
                for (int p = 0; p < PLANES; ++p) planes[p] = block[p][r];
                if (count < CHUNK) {
                    T edge[CHUNK] = {0};
                    std::memcpy(edge, x, sizeof(T) * count);
                    quantise_chunk<T, PLANES>(edge, scales[r], planes, bounds);
                } else {
                    quantise_chunk<T, PLANES>(x, scales[r], planes, bounds);
                }
                for (int p = 0; p < PLANES; ++p) largest[p] = bounds[p] > largest[p] ? bounds[p] : largest[p];
            }
            for (int p = 0; p < PLANES; ++p) {
                to.norms[p][panel * chunks + c] = 4.0f * static_cast<float>(largest[p]);
                char *out = reinterpret_cast<char *>(to.data[p] + panel * padded * PANEL + start * PANEL);
                const int pairs = (count + 1) / 2;
                int k = 0;
                for (; k + 4 <= pairs; k += 4)
                    for (int r = 0; r < PANEL; r += 4)
                        turn_pairs(&block[p][r][2 * k], CHUNK, out + (k * PANEL + r) * 4, 4 * PANEL);
                for (; k < pairs; ++k)
                    for (int r = 0; r < PANEL; ++r)
                        std::memcpy(out + (k * PANEL + r) * 4, &block[p][r][2 * k], 4);
            }
        }
    }
}

// Quantises two terms of a strip into pairs, and adds their squares to those of earlier terms.
template <class T, int PLANES>
inline void quantise_strip(const T *__restrict low, const T *__restrict high, const float *__restrict factor,
                           const int32_t *__restrict mask, uint32_t (*__restrict pairs)[STRIP],
                           uint32_t (*__restrict squares)[STRIP]) {
    for (int r = 0; r < STRIP; ++r) {
        const RowScale scale = {factor[r], mask[r], 0.0};
        const int32_t m0 = integer(low[r], scale), m1 = integer(high[r], scale);
        for (int p = 0; p < PLANES; ++p) {
            const int32_t q0 = plane_of<PLANES>(m0, p), q1 = plane_of<PLANES>(m1, p);
            pairs[p][r] = pair_of(q0, q1);
            squares[p][r] += square(q0) + square(q1);
        }
    }
}

// Panels whose terms are strided and whose rows are adjacent (row stride 1): one strip of panels at a time.
template <class T, int PANEL, int PLANES>
void pack_columns(const Source &s, const Packed &to, int64_t first, int64_t end) {
    const int64_t chunks = (s.terms + CHUNK - 1) / CHUNK, padded = s.terms + (s.terms & 1);
    alignas(64) float factor[STRIP] = {0};
    alignas(64) int32_t mask[STRIP] = {0};
    const int inside = strip_scales<T>(s, first * PANEL, (end - first) * PANEL, factor, mask, to.scales);
    const T *x = static_cast<const T *>(s.data) + first * PANEL;
    // The lanes that pad a strip may read the rows after it: their factor is 0 and nothing of them is kept.
    const bool whole_strip = first * PANEL + STRIP <= s.rows;
    alignas(64) T edge[2][STRIP] = {{0}};  // the last strip, and the term after an odd number of terms
    alignas(64) uint32_t pairs[PLANES][STRIP];
    for (int64_t c = 0; c < chunks; ++c) {
        const int64_t start = c * CHUNK, stop = start + CHUNK < s.terms ? start + CHUNK : s.terms;
        alignas(64) int32_t bounds[PLANES][STRIP] = {{0}};
        alignas(64) uint32_t squares[PLANES][STRIP] = {{0}};
        for (int64_t k = start; k < stop; k += 2) {
            const T *low = x + k * s.term_stride, *high = low + s.term_stride;
            if (k + AHEAD + 1 < s.terms) {
                fetch(low + AHEAD * s.term_stride, inside);
                fetch(high + AHEAD * s.term_stride, inside);
            }
            if (!whole_strip || k + 1 == s.terms) {
                std::memcpy(edge[0], low, sizeof(T) * inside);
                if (k + 1 < s.terms)
                    std::memcpy(edge[1], high, sizeof(T) * inside);
                else
                    std::memset(edge[1], 0, sizeof(edge[1]));
                low = edge[0], high = edge[1];
            }
            quantise_strip<T, PLANES>(low, high, factor, mask, pairs, squares);
            for (int p = 0; p < PLANES; ++p)
                for (int64_t i = first; i < end; ++i)
                    std::memcpy(to.data[p] + i * padded * PANEL + k * PANEL, pairs[p] + (i - first) * PANEL,
                                PANEL * 4);
            if (k + 2 - start == HALF || k + 2 >= stop)
                for (int p = 0; p < PLANES; ++p)
                    for (int r = 0; r < STRIP; ++r) bounds[p][r] += quarter(squares[p][r]), squares[p][r] = 0;
        }
        for (int p = 0; p < PLANES; ++p)
            for (int64_t i = first; i < end; ++i) {
                int32_t largest = 0;
                for (int64_t r = 0; r < PANEL; ++r) {
                    const int32_t bound = bounds[p][(i - first) * PANEL + r];
                    largest = bound > largest ? bound : largest;
                }
                to.norms[p][i * chunks + c] = 4.0f * static_cast<float>(largest);
            }
    }
}

template <class T, int PANEL> void pack_typed(const Source &s, const Packed &to, int64_t first, int64_t end) {
    const bool rows = s.term_stride == 1;
    if (to.planes == 1)
        rows ? pack_rows<T, PANEL, 1>(s, to, first, end) : pack_columns<T, PANEL, 1>(s, to, first, end);
    else if (to.planes == 2)
        rows ? pack_rows<T, PANEL, 2>(s, to, first, end) : pack_columns<T, PANEL, 2>(s, to, first, end);
    else
        rows ? pack_rows<T, PANEL, 3>(s, to, first, end) : pack_columns<T, PANEL, 3>(s, to, first, end);
}

template <int PANEL> void pack(const Source &s, const Packed &to, int64_t first, int64_t end) {
    s.is_integer ? pack_typed<int32_t, PANEL>(s, to, first, end) : pack_typed<float, PANEL>(s, to, first, end);
}

void accumulate(const int32_t *c, int64_t weight, bool first, int64_t *sums) {
    if (first)
        for (int i = 0; i < PANEL_X * PANEL_Y; ++i) sums[i] = static_cast<int64_t>(c[i]) * weight;
    else
        for (int i = 0; i < PANEL_X * PANEL_Y; ++i) sums[i] += static_cast<int64_t>(c[i]) * weight;
}

inline void finish(const double *row, const double *sy, const float *bias, int columns, float *out) {
    float rounded[PANEL_Y];
    for (int n = 0; n < PANEL_Y; ++n) rounded[n] = static_cast<float>(row[n] * sy[n]);
    if (bias)
        for (int n = 0; n < columns; ++n) {
            const float sum = rounded[n] + bias[n];
            rounded[n] = sum == sum ? sum : float_of(0x7fc00000u);
        }
    if (columns == PANEL_Y)
        std::memcpy(out, rounded, sizeof(rounded));
    else
        std::memcpy(out, rounded, sizeof(float) * columns);
}

void round_scaled_i32(const int32_t *c, const int64_t *weights, int count, const double *sx, const double *sy,
                      const float *bias, int rows, int columns, float *out, int64_t stride) {
    for (int m = 0; m < rows; ++m) {
        alignas(64) double row[PANEL_Y];
        const int32_t *from = c + m * PANEL_Y;
        const double first = static_cast<double>(weights[0]);
        // Plus 0: a negative weight times 0 would otherwise give -0.
        for (int n = 0; n < PANEL_Y; ++n) row[n] = static_cast<double>(from[n]) * first + 0.0;
        for (int k = 1; k < count; ++k) {
            const double weight = static_cast<double>(weights[k]);
            from += PANEL_X * PANEL_Y;
            for (int n = 0; n < PANEL_Y; ++n) row[n] += static_cast<double>(from[n]) * weight;
        }
        for (int n = 0; n < PANEL_Y; ++n) row[n] *= sx[m];
        finish(row, sy, bias, columns, out + m * stride);
    }
}

void round_scaled_i64(const int64_t *sums, const double *sx, const double *sy, const float *bias, bool wide, int rows,
                      int columns, float *out, int64_t stride) {
    for (int m = 0; m < rows; ++m) {
        double row[PANEL_Y];
        const int64_t *v = sums + m * PANEL_Y;
        if (wide)
            for (int n = 0; n < PANEL_Y; ++n) row[n] = static_cast<double>(jam(v[n])) * sx[m];
        else  // below 2^51 in magnitude: v + 1.5 * 2^52 is a float64 whose low bits are v
            for (int n = 0; n < PANEL_Y; ++n)
                row[n] = (double_of(static_cast<uint64_t>(v[n]) + 0x4338000000000000ull) - 6755399441055744.0) * sx[m];
        finish(row, sy, bias, columns, out + m * stride);
    }
}

}  // namespace

extern const Variant ASSAY_VARIANT;
const Variant ASSAY_VARIANT = {ASSAY_NAME,      supported,  pack<PANEL_X>, pack<PANEL_Y>, multiply_tile,
                               accumulate, round_scaled_i32, round_scaled_i64};

}  // namespace assay
