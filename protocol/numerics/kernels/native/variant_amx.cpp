// Slices for processors with AMX: tiles of 16 rows of 64 bytes, multiplied by `tdpbssd` into tiles of 16 x 16
// i32. On platforms other than x86-64 Linux, or if the compiler lacks these instructions, `supported` returns
// false.
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18, and volume 2 for the
// instructions; Linux' Documentation/arch/x86/xstate.rst for the permission.
#include <cstdint>
#include <cstring>

#if !defined(ASSAY_NO_AMX) && defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 11
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,amx-tile,amx-int8,prefer-vector-width=512")
#define ASSAY_AMX
#endif

#include "quantise.h"
#include "slices.h"

namespace assay {
namespace {

#if defined(ASSAY_AMX)

// Linux saves a process's tile registers only after the process has requested permission.
bool permitted() {
    constexpr long REQUEST = 0x1023, TILE_DATA = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    return syscall(SYS_arch_prctl, REQUEST, TILE_DATA) == 0;
}

bool supported() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    constexpr unsigned TILE = 1u << 24, INT8 = 1u << 25;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & TILE) == 0 || (d & INT8) == 0) return false;
    static const bool granted = permitted();
    return granted;
}

// Base-128 digits of |m| <= 64 * 128^(DIGITS - 1) + ..., highest first; all but the first are remainders.
template <int DIGITS> inline void digits_of(int32_t m, int32_t (&to)[DIGITS]) {
    for (int d = DIGITS - 1; d > 0; --d) {
        const int32_t higher = (m + 64) >> 7;
        to[d] = m - higher * 128;
        m = higher;
    }
    to[0] = m;
}

// Transposes 16 rows of 16 words.
inline void turn(const uint32_t *from, char *to) {
    __m512i a[16], b[16];
#pragma GCC unroll 16
    for (int r = 0; r < 16; ++r) a[r] = _mm512_load_si512(from + 16 * r);
#pragma GCC unroll 8
    for (int r = 0; r < 16; r += 2) {
        b[r] = _mm512_unpacklo_epi32(a[r], a[r + 1]);
        b[r + 1] = _mm512_unpackhi_epi32(a[r], a[r + 1]);
    }
#pragma GCC unroll 4
    for (int r = 0; r < 16; r += 4) {
        a[r] = _mm512_unpacklo_epi64(b[r], b[r + 2]);
        a[r + 1] = _mm512_unpackhi_epi64(b[r], b[r + 2]);
        a[r + 2] = _mm512_unpacklo_epi64(b[r + 1], b[r + 3]);
        a[r + 3] = _mm512_unpackhi_epi64(b[r + 1], b[r + 3]);
    }
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) {
        const __m512i low01 = _mm512_shuffle_i32x4(a[q], a[4 + q], 0x88), high01 = _mm512_shuffle_i32x4(a[q], a[4 + q], 0xdd);
        const __m512i low23 = _mm512_shuffle_i32x4(a[8 + q], a[12 + q], 0x88);
        const __m512i high23 = _mm512_shuffle_i32x4(a[8 + q], a[12 + q], 0xdd);
        _mm512_store_si512(to + 64 * q, _mm512_shuffle_i32x4(low01, low23, 0x88));
        _mm512_store_si512(to + 64 * (4 + q), _mm512_shuffle_i32x4(high01, high23, 0x88));
        _mm512_store_si512(to + 64 * (8 + q), _mm512_shuffle_i32x4(low01, low23, 0xdd));
        _mm512_store_si512(to + 64 * (12 + q), _mm512_shuffle_i32x4(high01, high23, 0xdd));
    }
}

constexpr int TILE_ROWS = 16, QUADS = SLICE_TERMS / 4;

// Writes a chunk of a row digit by digit, each digit's 64 bytes `apart` from the next.
template <class T, int DIGITS>
inline void slice_chunk(const T *__restrict x, const RowScale &scale, char *__restrict to, int64_t apart) {
    alignas(64) int8_t bytes[DIGITS][SLICE_TERMS];
    for (int k = 0; k < SLICE_TERMS; ++k) {
        int32_t digits[DIGITS];
        digits_of<DIGITS>(integer(x[k], scale), digits);
        for (int d = 0; d < DIGITS; ++d) bytes[d][k] = static_cast<int8_t>(digits[d]);
    }
    for (int d = 0; d < DIGITS; ++d) std::memcpy(to + d * apart, bytes[d], SLICE_TERMS);
}

// Panels whose rows are contiguous: tiles of x are written directly, those of y transposed.
template <class T, int PANEL, int DIGITS>
void slice_rows(const Source &s, const Sliced &to, int64_t first, int64_t end) {
    constexpr bool TURNED = PANEL == SLICE_Y;
    constexpr int TILES = PANEL / TILE_ROWS;
    const T *data = static_cast<const T *>(s.data);
    const int64_t chunks = (s.terms + SLICE_TERMS - 1) / SLICE_TERMS;
    alignas(64) char rows[DIGITS * TILES * SLICE_TILE];
    for (int64_t panel = first; panel < end; ++panel) {
        RowScale scales[PANEL];
        const int inside = panel_scales<T, PANEL>(s, panel, scales, to.scales);
        if (TURNED && inside < PANEL) std::memset(rows, 0, sizeof(rows));
        for (int64_t c = 0; c < chunks; ++c) {
            char *out = to.data + (panel * chunks + c) * DIGITS * TILES * SLICE_TILE, *direct = TURNED ? rows : out;
            const int64_t start = c * SLICE_TERMS;
            const int count = static_cast<int>(s.terms - start < SLICE_TERMS ? s.terms - start : SLICE_TERMS);
            for (int r = 0; r < inside; ++r) {
                const T *x = data + (panel * PANEL + r) * s.row_stride + start;
                T edge[SLICE_TERMS] = {0};
                if (count < SLICE_TERMS) std::memcpy(edge, x, sizeof(T) * count), x = edge;
                slice_chunk<T, DIGITS>(x, scales[r], direct + r * SLICE_TERMS, TILES * SLICE_TILE);
            }
            if (TURNED)
                for (int t = 0; t < DIGITS * TILES; ++t)
                    turn(reinterpret_cast<const uint32_t *>(rows + t * SLICE_TILE), out + t * SLICE_TILE);
            else if (inside < PANEL)
                for (int d = 0; d < DIGITS; ++d)
                    std::memset(out + d * SLICE_TILE + inside * SLICE_TERMS, 0, (PANEL - inside) * SLICE_TERMS);
        }
    }
}

// Four terms of a strip, digit by digit: one word of four bytes per row.
template <class T, int DIGITS>
inline void slice_strip(const T *const (&terms)[4], const float *__restrict factor, const int32_t *__restrict mask,
                        uint32_t (*__restrict words)[STRIP]) {
    const T *__restrict x0 = terms[0], *__restrict x1 = terms[1], *__restrict x2 = terms[2], *__restrict x3 = terms[3];
    for (int r = 0; r < STRIP; ++r) {
        const RowScale scale = {factor[r], mask[r], 0.0};
        int32_t m[4][DIGITS];
        digits_of<DIGITS>(integer(x0[r], scale), m[0]);
        digits_of<DIGITS>(integer(x1[r], scale), m[1]);
        digits_of<DIGITS>(integer(x2[r], scale), m[2]);
        digits_of<DIGITS>(integer(x3[r], scale), m[3]);
        for (int d = 0; d < DIGITS; ++d)
            words[d][r] = (static_cast<uint32_t>(m[0][d]) & 0xffu) | (static_cast<uint32_t>(m[1][d]) & 0xffu) << 8 |
                          (static_cast<uint32_t>(m[2][d]) & 0xffu) << 16 | static_cast<uint32_t>(m[3][d]) << 24;
    }
}

// Panels whose terms are strided and whose rows are adjacent (row stride 1), one strip at a time: tiles of y are written
// directly, those of x transposed.
template <class T, int PANEL, int DIGITS>
void slice_columns(const Source &s, const Sliced &to, int64_t first, int64_t end) {
    constexpr bool TURNED = PANEL == SLICE_X;
    constexpr int TILES = PANEL / TILE_ROWS;
    static_assert((TURNED ? SLICE_STRIP_X : SLICE_STRIP_Y) * PANEL == STRIP, "a strip of panels is one of quantise.h");
    const int64_t chunks = (s.terms + SLICE_TERMS - 1) / SLICE_TERMS;
    alignas(64) float factor[STRIP] = {0};
    alignas(64) int32_t mask[STRIP] = {0};
    const int inside = strip_scales<T>(s, first * PANEL, (end - first) * PANEL, factor, mask, to.scales);
    const T *x = static_cast<const T *>(s.data) + first * PANEL;
    const bool whole_strip = first * PANEL + STRIP <= s.rows;
    alignas(64) T edge[4][STRIP] = {{0}};  // terms of the last strip, and those after the last term
    alignas(64) uint32_t words[DIGITS][STRIP];
    alignas(64) char quads[STRIP / TILE_ROWS][DIGITS][SLICE_TILE];
    for (int64_t c = 0; c < chunks; ++c) {
        for (int quad = 0; quad < QUADS; ++quad) {
            const T *terms[4];
            for (int t = 0; t < 4; ++t) {
                const int64_t k = c * SLICE_TERMS + quad * 4 + t;
                terms[t] = edge[t];
                if (k >= s.terms) {
                    std::memset(edge[t], 0, sizeof(edge[t]));
                    continue;
                }
                const T *term = x + k * s.term_stride;
                if (k + AHEAD < s.terms) fetch(term + AHEAD * s.term_stride, inside);
                if (whole_strip)
                    terms[t] = term;
                else
                    std::memcpy(edge[t], term, sizeof(T) * inside);
            }
            slice_strip<T, DIGITS>(terms, factor, mask, words);
            for (int64_t i = first; i < end; ++i)
                for (int d = 0; d < DIGITS; ++d)
                    for (int t = 0; t < TILES; ++t) {
                        const int64_t row = (i - first) * PANEL + t * TILE_ROWS;
                        char *out = TURNED ? quads[i - first][d]
                                           : to.data + (((i * chunks + c) * DIGITS + d) * TILES + t) * SLICE_TILE;
                        std::memcpy(out + 64 * quad, words[d] + row, 64);
                    }
        }
        if (TURNED)
            for (int64_t i = first; i < end; ++i)
                for (int d = 0; d < DIGITS; ++d)
                    turn(reinterpret_cast<const uint32_t *>(quads[i - first][d]),
                         to.data + ((i * chunks + c) * DIGITS + d) * SLICE_TILE);
    }
}

template <class T, int PANEL> void slice_typed(const Source &s, const Sliced &to, int64_t first, int64_t end) {
    if (s.term_stride == 1)
        to.digits == 2 ? slice_rows<T, PANEL, 2>(s, to, first, end) : slice_rows<T, PANEL, 3>(s, to, first, end);
    else
        to.digits == 2 ? slice_columns<T, PANEL, 2>(s, to, first, end) : slice_columns<T, PANEL, 3>(s, to, first, end);
}

template <int PANEL> void slice(const Source &s, const Sliced &to, int64_t first, int64_t end) {
    s.is_integer ? slice_typed<int32_t, PANEL>(s, to, first, end) : slice_typed<float, PANEL>(s, to, first, end);
}

// All eight tiles have 16 rows of 64 bytes.
struct alignas(64) Configuration {
    uint8_t palette = 1, start = 0, reserved[14] = {0};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
constexpr Configuration CONFIGURATION;

// The intrinsics do not tell the compiler which memory the tiles are read from.
inline void written() { asm volatile("" ::: "memory"); }

void begin() {
    written();
    _tile_loadconfig(&CONFIGURATION);
}

void end() { _tile_release(); }

// Multiplies one chunk of a panel of x by half a panel of y. Products of equal weight share an accumulator
// tile if they are far enough apart in the instruction sequence: a product takes 16 cycles, and 52 until its
// tile can be added to again. x: [digits][1024] bytes, y: [digits][2][1024], of which the first half is
// passed.
constexpr int64_t LINE = 64, NEXT_X = SLICE_TILE, NEXT_Y = 2 * SLICE_TILE;

inline void chunk_2_2(const char *x, const char *y) {
    _tile_loadd(4, x, LINE);
    _tile_loadd(6, y, LINE);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(7, y + NEXT_Y, LINE);
    _tile_dpbssd(1, 4, 7);
    _tile_loadd(5, x + NEXT_X, LINE);
    _tile_dpbssd(2, 5, 6);
    _tile_dpbssd(3, 5, 7);
}

inline void chunk_3_2(const char *x, const char *y) {
    _tile_loadd(4, y, LINE);
    _tile_loadd(6, x, LINE);
    _tile_dpbssd(0, 6, 4);
    _tile_loadd(5, y + NEXT_Y, LINE);
    _tile_dpbssd(1, 6, 5);
    _tile_loadd(7, x + NEXT_X, LINE);
    _tile_dpbssd(2, 7, 5);
    _tile_loadd(6, x + 2 * NEXT_X, LINE);
    _tile_dpbssd(3, 6, 5);
    _tile_dpbssd(1, 7, 4);
    _tile_dpbssd(2, 6, 4);
}

inline void chunk_2_3(const char *x, const char *y) {
    _tile_loadd(4, x, LINE);
    _tile_loadd(6, y, LINE);
    _tile_dpbssd(0, 4, 6);
    _tile_loadd(5, x + NEXT_X, LINE);
    _tile_dpbssd(1, 5, 6);
    _tile_loadd(7, y + NEXT_Y, LINE);
    _tile_dpbssd(2, 5, 7);
    _tile_loadd(6, y + 2 * NEXT_Y, LINE);
    _tile_dpbssd(3, 5, 6);
    _tile_dpbssd(1, 4, 7);
    _tile_dpbssd(2, 4, 6);
}

inline void chunk_3_3(const char *x, const char *y) {
    _tile_loadd(5, x, LINE);
    _tile_loadd(6, y, LINE);
    _tile_dpbssd(0, 5, 6);
    _tile_loadd(7, y + NEXT_Y, LINE);
    _tile_dpbssd(1, 5, 7);
    _tile_loadd(5, x + NEXT_X, LINE);
    _tile_dpbssd(2, 5, 7);
    _tile_dpbssd(1, 5, 6);
    _tile_loadd(5, x + 2 * NEXT_X, LINE);
    _tile_dpbssd(3, 5, 7);
    _tile_dpbssd(2, 5, 6);
    _tile_loadd(6, y + 2 * NEXT_Y, LINE);
    _tile_dpbssd(4, 5, 6);
    _tile_loadd(5, x + NEXT_X, LINE);
    _tile_dpbssd(3, 5, 6);
    _tile_loadd(5, x, LINE);
    _tile_dpbssd(2, 5, 6);
}

using Tile = int32_t[SLICE_TILE / 4];

// For half a panel of y: the sums of each weight, highest first. 2 x 2 digits have two tiles for the middle
// weight.
template <int DIGITS_X, int DIGITS_Y>
inline void half_panel(const char *x, const char *y, int64_t chunks, Tile (&sums)[5]) {
    written();
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    if (DIGITS_X + DIGITS_Y == 6) _tile_zero(4);
    for (int64_t c = 0; c < chunks; ++c, x += DIGITS_X * NEXT_X, y += DIGITS_Y * NEXT_Y) {
        if (DIGITS_X == 2 && DIGITS_Y == 2) chunk_2_2(x, y);
        if (DIGITS_X == 3 && DIGITS_Y == 2) chunk_3_2(x, y);
        if (DIGITS_X == 2 && DIGITS_Y == 3) chunk_2_3(x, y);
        if (DIGITS_X == 3 && DIGITS_Y == 3) chunk_3_3(x, y);
    }
    _tile_stored(0, sums[0], LINE);
    _tile_stored(1, sums[1], LINE);
    _tile_stored(2, sums[2], LINE);
    _tile_stored(3, sums[3], LINE);
    if (DIGITS_X + DIGITS_Y == 6) _tile_stored(4, sums[4], LINE);
    written();
}

inline __m512i wide(__m256i x) { return _mm512_cvtepi32_epi64(x); }
inline __m256i eight(const Tile &of, int i) { return _mm256_load_si256(reinterpret_cast<const __m256i *>(of + i)); }

// Combines the tiles of all weights into eight sums, by Horner's rule.
template <int DIGITS_X, int DIGITS_Y> inline __m512i joined(const Tile (&s)[5], int i) {
    __m512i sum = wide(eight(s[0], i));
    if (DIGITS_X + DIGITS_Y == 4) {
        sum = _mm512_add_epi64(_mm512_slli_epi64(sum, 7), wide(_mm256_add_epi32(eight(s[1], i), eight(s[2], i))));
        return _mm512_add_epi64(_mm512_slli_epi64(sum, 7), wide(eight(s[3], i)));
    }
#pragma GCC unroll 4
    for (int w = 1; w < DIGITS_X + DIGITS_Y - 1; ++w)
        sum = _mm512_add_epi64(_mm512_slli_epi64(sum, 7), wide(eight(s[w], i)));
    return sum;
}

template <int DIGITS_X, int DIGITS_Y>
void multiply_panels(const char *x, const char *y, int64_t chunks, int64_t *sums) {
    alignas(64) Tile tiles[5];
    constexpr int64_t RUN = SLICE_LONGEST / SLICE_TERMS;
    for (int64_t first = 0; first == 0 || first < chunks; first += RUN) {  // at least once: no terms sum to 0
        const int64_t count = chunks - first < RUN ? chunks - first : RUN;
        for (int half = 0; half < 2; ++half) {
            half_panel<DIGITS_X, DIGITS_Y>(x + first * DIGITS_X * NEXT_X,
                                           y + first * DIGITS_Y * NEXT_Y + half * SLICE_TILE, count, tiles);
            for (int i = 0; i < SLICE_TILE / 4; i += 8) {
                int64_t *to = sums + i / TILE_ROWS * SLICE_Y + half * TILE_ROWS + i % TILE_ROWS;
                __m512i sum = joined<DIGITS_X, DIGITS_Y>(tiles, i);
                if (first > 0) sum = _mm512_add_epi64(sum, _mm512_load_si512(to));
                _mm512_store_si512(to, sum);
            }
        }
    }
}

void multiply(const Sliced &x, const Sliced &y, int64_t i, int64_t j, int64_t chunks, int64_t *sums) {
    const char *at_x = x.data + i * chunks * x.digits * NEXT_X, *at_y = y.data + j * chunks * y.digits * NEXT_Y;
    if (x.digits == 2 && y.digits == 2) multiply_panels<2, 2>(at_x, at_y, chunks, sums);
    if (x.digits == 3 && y.digits == 2) multiply_panels<3, 2>(at_x, at_y, chunks, sums);
    if (x.digits == 2 && y.digits == 3) multiply_panels<2, 3>(at_x, at_y, chunks, sums);
    if (x.digits == 3 && y.digits == 3) multiply_panels<3, 3>(at_x, at_y, chunks, sums);
}

#else

bool supported() { return false; }

#endif

}  // namespace

#if defined(ASSAY_AMX)
extern const Slices AMX = {"amx", supported, slice<SLICE_X>, slice<SLICE_Y>, multiply, begin, end};
#else
extern const Slices AMX = {"amx", supported, nullptr, nullptr, nullptr, nullptr, nullptr};
#endif

}  // namespace assay
