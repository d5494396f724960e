// Functions of one instruction set for convolutions; included by every variant_*.cpp after variant_body.h.
#include "convolution.h"

namespace assay {
namespace {

int32_t largest_in(const float *x, int64_t count) {
    int32_t largest = 0;
    for (int64_t i = 0; i < count; ++i) largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    return largest;
}

Scale scale_for(int32_t largest, int bits) {
    const RowScale s = row_scale(exponent_of(largest), bits);
    return {s.factor, s.mask, s.scale};
}

template <int PLANES>
void pair_rows(const float *__restrict low, const float *__restrict high, int64_t count, const RowScale &s, int plane,
               uint32_t *__restrict out) {
    if (high)
        for (int64_t i = 0; i < count; ++i)
            out[i] = pair_of(plane_of<PLANES>(integer(low[i], s), plane), plane_of<PLANES>(integer(high[i], s), plane));
    else
        for (int64_t i = 0; i < count; ++i) out[i] = pair_of(plane_of<PLANES>(integer(low[i], s), plane), 0);
}

void pairs_of(const float *low, const float *high, int64_t count, const Scale &scale, int planes, int plane,
              uint32_t *out) {
    const RowScale s = {scale.factor, scale.mask, 0.0};
    if (planes == 1)
        pair_rows<1>(low, high, count, s, 0, out);
    else if (plane == 0)
        pair_rows<2>(low, high, count, s, 0, out);
    else
        pair_rows<2>(low, high, count, s, 1, out);
}

void raise_largest(const float *__restrict x, int64_t count, int32_t *__restrict largest) {
    for (int64_t i = 0; i < count; ++i) largest[i] = magnitude(x[i]) > largest[i] ? magnitude(x[i]) : largest[i];
}

constexpr int LANES = 16;  // a panel's 12 rows, padded to a vector
constexpr int TAPS = 32;   // elements of the kernel gathered at a time

// For two channels and one element of the kernel: the rows' pairs, and the sums of plane l, added to `sums`.
template <int PLANES>
inline void weight_lanes(const float *__restrict low, const float *__restrict high, const float *__restrict factor,
                         const int32_t *__restrict mask, uint32_t *const (&out)[PLANES], int32_t *__restrict sums) {
    uint32_t pairs[PLANES][LANES];
    for (int r = 0; r < LANES; ++r) {
        const RowScale s = {factor[r], mask[r], 0.0};
        const int32_t m0 = integer(low[r], s), m1 = integer(high[r], s);
        for (int p = 0; p < PLANES; ++p) pairs[p][r] = pair_of(plane_of<PLANES>(m0, p), plane_of<PLANES>(m1, p));
        if (PLANES > 1) sums[r] += plane_of<PLANES>(m0, 1) + plane_of<PLANES>(m1, 1);
    }
    for (int p = 0; p < PLANES; ++p) std::memcpy(out[p], pairs[p], 4 * PANEL_X);
}

template <int PLANES>
void weight_rows(const float *w, int64_t row_stride, int64_t channel_stride, int64_t channels, const int64_t *taps,
                 int64_t tap_count, const Scale *scales, int inside, uint32_t *const (&out)[PLANES], int32_t *sums) {
    const int64_t couples = (channels + 1) / 2;
    alignas(64) float factor[LANES] = {0}, rows[2][TAPS][LANES] = {{{0}}};
    alignas(64) int32_t mask[LANES] = {0}, added[LANES] = {0};
    for (int r = 0; r < inside; ++r) factor[r] = scales[r].factor, mask[r] = scales[r].mask;
    for (int64_t c = 0; c < couples; ++c)
        for (int64_t first = 0; first < tap_count; first += TAPS) {
            const int64_t count = tap_count - first < TAPS ? tap_count - first : TAPS;
            const bool single = 2 * c + 1 == channels;
            for (int half = 0; half < 2; ++half)
                for (int r = 0; r < inside; ++r) {
                    const float *row = w + r * row_stride + (2 * c + (single ? 0 : half)) * channel_stride;
                    for (int64_t t = 0; t < count; ++t) rows[half][t][r] = row[taps[first + t]];
                }
            if (single) std::memset(rows[1], 0, sizeof(rows[1]));
            for (int64_t t = 0; t < count; ++t) {
                uint32_t *to[PLANES];
                for (int p = 0; p < PLANES; ++p) to[p] = out[p] + ((first + t) * couples + c) * PANEL_X;
                weight_lanes<PLANES>(rows[0][t], rows[1][t], factor, mask, to, added);
            }
        }
    for (int r = 0; r < PANEL_X; ++r) sums[r] = added[r];
}

void pack_weights(const float *w, int64_t row_stride, int64_t channel_stride, int64_t channels, const int64_t *taps,
                  int64_t tap_count, const Scale *scales, int inside, uint32_t *out, uint32_t *low, int32_t *sums) {
    if (low)
        weight_rows<2>(w, row_stride, channel_stride, channels, taps, tap_count, scales, inside, {out, low}, sums);
    else
        weight_rows<1>(w, row_stride, channel_stride, channels, taps, tap_count, scales, inside, {out}, sums);
}

void add_planes(const uint32_t *__restrict high, const uint32_t *__restrict low, int64_t count,
                uint32_t *__restrict out) {
    for (int64_t i = 0; i < count; ++i)  // two sums of 16 bits that do not carry into each other
        out[i] = ((high[i] + low[i]) & 0xffffu) | ((high[i] & 0xffff0000u) + (low[i] & 0xffff0000u));
}

#if defined(ASSAY_AVX512VNNI)

// Copies up to 16 elements of a part, starting at its element `first`, for every pair of terms.
void pack_vectors(const Part &part, int first, int64_t step, int64_t count, uint32_t *out) {
    const int length = part.length - first < 16 ? part.length - first : 16;
    const auto lanes = [](int64_t n) { return static_cast<__mmask16>(n < 16 ? (1u << (n < 0 ? 0 : n)) - 1 : 0xffffu); };
    const __mmask16 mask = lanes(length);
    uint32_t *to = out + part.to + first;
    const uint32_t *from = part.from + first * step;
    if (part.plane == 0)
        for (int64_t k = 0; k < count; ++k, to += PANEL_Y) _mm512_mask_storeu_epi32(to, mask, _mm512_setzero_si512());
    else if (step == 1)
        for (int64_t k = 0; k < count; ++k, to += PANEL_Y, from += part.plane)
            _mm512_mask_storeu_epi32(to, mask, _mm512_maskz_loadu_epi32(mask, from));
    else if (step == 2) {
        const __mmask16 low = lanes(2 * length - 1), high = lanes(2 * length - 17);
        const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        for (int64_t k = 0; k < count; ++k, to += PANEL_Y, from += part.plane) {
            const __m512i x = _mm512_maskz_loadu_epi32(low, from), y = _mm512_maskz_loadu_epi32(high, from + 16);
            _mm512_mask_storeu_epi32(to, mask, _mm512_permutex2var_epi32(x, even, y));
        }
    } else
        for (int64_t k = 0; k < count; ++k, to += PANEL_Y, from += part.plane)
            for (int i = 0; i < length; ++i) to[i] = from[i * step];
}

void pack_parts(const Part *parts, int part_count, int64_t step, int64_t count, uint32_t *out) {
    for (int p = 0; p < part_count; ++p)
        for (int first = 0; first < parts[p].length; first += 16) pack_vectors(parts[p], first, step, count, out);
}

void spread(const float *from, int64_t count, int64_t step, float *to) {
    if (step != 2) {
        for (int64_t i = 0; i < count; ++i) to[i * step] = from[i];
        return;
    }
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    for (int64_t i = 0; i < count; i += 8) {
        const int64_t left = count - i < 8 ? count - i : 8;
        const __m512 x = _mm512_castps256_ps512(_mm256_maskz_loadu_ps(static_cast<__mmask8>((1u << left) - 1), from + i));
        _mm512_mask_storeu_ps(to + 2 * i, static_cast<__mmask16>(0x5555u & ((1u << 2 * left) - 1)),
                              _mm512_permutexvar_ps(twice, x));
    }
}

#else

inline void copy_part(uint32_t *to, const uint32_t *from, int length) {
    for (; length >= 16; length -= 16, to += 16, from += 16) std::memcpy(to, from, 64);
    for (; length > 0; length -= 4, to += 4, from += 4) std::memcpy(to, from, 16);
}

void pack_parts(const Part *parts, int part_count, int64_t step, int64_t count, uint32_t *out) {
    if (part_count == 1 && step == 1 && parts->plane != 0) {  // as in most panels: whole columns side by side
        const uint32_t *from = parts->from;
        for (int64_t k = 0; k < count; ++k, out += PANEL_Y, from += parts->plane) std::memcpy(out, from, 4 * PANEL_Y);
        return;
    }
    for (int64_t k = 0; k < count; ++k, out += PANEL_Y)
        for (int p = 0; p < part_count; ++p) {
            const Part &part = parts[p];
            uint32_t *to = out + part.to;
            if (part.plane == 0) {
                for (int i = 0; i < part.length; ++i) to[i] = 0;
                continue;
            }
            const uint32_t *from = part.from + k * part.plane;
            if (step == 1)
                copy_part(to, from, part.length);
            else
                for (int i = 0; i < part.length; ++i) to[i] = from[i * step];
        }
}

void spread(const float *from, int64_t count, int64_t step, float *to) {
    for (int64_t i = 0; i < count; ++i) to[i * step] = from[i];
}

#endif

// As in variant_body.h: a bound on the largest squared norm of the panel's rows over a chunk, from quarters
// of squares.
template <int WIDTH> void norms_of(const uint32_t *panel, int64_t pairs, float *out) {
    for (int64_t k = 0; k < pairs; k += CHUNK / 2) {
        const int64_t end = k + CHUNK / 2 < pairs ? k + CHUNK / 2 : pairs;
        int32_t largest = 0;
#if defined(ASSAY_AVX512VNNI)
        if constexpr (WIDTH == PANEL_Y) {
            // (a a + b b + 3) >> 2 is a quarter of the squares, rounded up; zeros give 0.
            __m512i low = _mm512_setzero_si512(), high = low;
            const __m512i three = _mm512_set1_epi32(3);
            for (int64_t i = k; i < end; ++i) {
                const __m512i x = _mm512_loadu_si512(panel + i * WIDTH), y = _mm512_loadu_si512(panel + i * WIDTH + 16);
                low = _mm512_add_epi32(low, _mm512_srli_epi32(_mm512_dpwssd_epi32(three, x, x), 2));
                high = _mm512_add_epi32(high, _mm512_srli_epi32(_mm512_dpwssd_epi32(three, y, y), 2));
            }
            largest = _mm512_reduce_max_epi32(_mm512_max_epi32(low, high));
            out[k / (CHUNK / 2)] = 4.0f * static_cast<float>(largest);
            continue;
        }
#endif
        int32_t bounds[WIDTH] = {0};
        for (int64_t i = k; i < end; ++i)
            for (int r = 0; r < WIDTH; ++r) {
                const uint32_t pair = panel[i * WIDTH + r];
                const int32_t a = static_cast<int16_t>(pair & 0xffffu), b = static_cast<int16_t>(pair >> 16);
                bounds[r] += (a * a + b * b + 3) >> 2;
            }
        for (int r = 0; r < WIDTH; ++r) largest = bounds[r] > largest ? bounds[r] : largest;
        out[k / (CHUNK / 2)] = 4.0f * static_cast<float>(largest);
    }
}

void norms_in(const uint32_t *panel, int width, int64_t pairs, float *out) {
    width == PANEL_X ? norms_of<PANEL_X>(panel, pairs, out) : norms_of<PANEL_Y>(panel, pairs, out);
}

template <int WIDTH> void bytes_of(const uint32_t *panel, int64_t pairs, int offset, uint32_t *out) {
    const uint32_t one = static_cast<uint32_t>(offset) & 0xffu, every = one * 0x01010101u;
    for (int64_t k = 0; k < pairs; k += 2, panel += 2 * WIDTH, out += WIDTH) {
        const bool whole = k + 1 < pairs;
        for (int r = 0; r < WIDTH; ++r) {
            const uint32_t a = panel[r], b = whole ? panel[WIDTH + r] : 0;
            const uint32_t low = (a & 0xffu) | ((a >> 8) & 0xff00u), high = (b & 0xffu) | ((b >> 8) & 0xff00u);
            const uint32_t four = low | (high << 16);
            // Adds bytes without carries: the low seven bits first, then the eighth.
            out[r] = ((four & 0x7f7f7f7fu) + (every & 0x7f7f7f7fu)) ^ ((four ^ every) & 0x80808080u);
        }
    }
}

void bytes_in(const uint32_t *panel, int width, int64_t pairs, int offset, uint32_t *out) {
    width == PANEL_X ? bytes_of<PANEL_X>(panel, pairs, offset, out) : bytes_of<PANEL_Y>(panel, pairs, offset, out);
}

#if defined(ASSAY_AVX512VNNI)
template <int ROWS>
inline void multiply_byte_rows(int64_t quads, const uint32_t *x, const uint32_t *y, const int32_t *start, int32_t *c) {
    __m512i acc[ROWS][2];
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; ++m) acc[m][0] = acc[m][1] = _mm512_set1_epi32(start[m]);
    for (int64_t q = 0; q < quads; ++q, x += PANEL_X, y += PANEL_Y) {
        const __m512i y0 = _mm512_loadu_si512(y), y1 = _mm512_loadu_si512(y + 16);
#pragma GCC unroll 12
        for (int m = 0; m < ROWS; ++m) {
            const __m512i a = _mm512_set1_epi32(static_cast<int32_t>(x[m]));
            acc[m][0] = _mm512_dpbusd_epi32(acc[m][0], y0, a);
            acc[m][1] = _mm512_dpbusd_epi32(acc[m][1], y1, a);
        }
    }
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; ++m) {
        _mm512_store_si512(c + m * PANEL_Y, acc[m][0]);
        _mm512_store_si512(c + m * PANEL_Y + 16, acc[m][1]);
    }
}

void multiply_bytes(int64_t quads, const uint32_t *x, const uint32_t *y, const int32_t *start, int rows, int32_t *c) {
    if (rows > 8) return multiply_byte_rows<12>(quads, x, y, start, c);
    rows > 4 ? multiply_byte_rows<8>(quads, x, y, start, c) : multiply_byte_rows<4>(quads, x, y, start, c);
    clear_rows(rows > 4 ? 8 : 4, c);
}
#else
constexpr decltype(Convolver::byte_tile) multiply_bytes = nullptr;
#endif

}  // namespace

#define ASSAY_CONVOLVER(name) ASSAY_JOIN(CONVOLVER_, name)
extern const Convolver ASSAY_CONVOLVER(ASSAY_VARIANT);
const Convolver ASSAY_CONVOLVER(ASSAY_VARIANT) = {largest_in,   raise_largest, scale_for,  pairs_of, pack_weights,
                                                    add_planes, pack_parts, spread, norms_in, bytes_in, multiply_bytes};

}  // namespace assay
