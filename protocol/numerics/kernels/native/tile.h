// Hand-written code for the instruction set that the including file has chosen: the product of two packed
// panels in i32 registers, and transposing rows of pairs into pairs of rows.
#include <cstdint>
#include <cstring>

#include "variant.h"

#if defined(__x86_64__) && !defined(ASSAY_PORTABLE)
#include <immintrin.h>
#endif

namespace assay {
namespace {

// Zeroes a tile from row `first` on.
inline void clear_rows(int first, int32_t *c) {
    if (first < PANEL_X) std::memset(c + first * PANEL_Y, 0, sizeof(int32_t) * (PANEL_X - first) * PANEL_Y);
}

#if defined(ASSAY_PORTABLE) || !defined(__x86_64__)

// Transposes four pairs of four rows, which are `apart` i16 from each other, to four rows of four pairs, with
// `stride` bytes from pair to pair.
inline void turn_pairs(const int16_t *rows, int64_t apart, char *out, int64_t stride) {
    for (int k = 0; k < 4; ++k)
        for (int r = 0; r < 4; ++r) std::memcpy(out + k * stride + 4 * r, rows + r * apart + 2 * k, 4);
}

void multiply_tile(int64_t pairs, const int16_t *x, const int16_t *y, int rows, int32_t *c) {
    uint32_t acc[PANEL_X * PANEL_Y] = {0};  // unsigned: partial sums may wrap
    for (int64_t p = 0; p < pairs; ++p, x += 2 * PANEL_X, y += 2 * PANEL_Y)
        for (int m = 0; m < rows; ++m)
            for (int n = 0; n < PANEL_Y; ++n)
                acc[m * PANEL_Y + n] += static_cast<uint32_t>(x[2 * m] * y[2 * n]) +
                                        static_cast<uint32_t>(x[2 * m + 1] * y[2 * n + 1]);
    for (int i = 0; i < PANEL_X * PANEL_Y; ++i) c[i] = static_cast<int32_t>(acc[i]);
}

#else  // SSE2, which every x86-64 has, transposes pairs; each set has a separate multiplication

inline void turn_pairs(const int16_t *rows, int64_t apart, char *out, int64_t stride) {
    __m128i row[4];
    for (int r = 0; r < 4; ++r) row[r] = _mm_loadu_si128(reinterpret_cast<const __m128i *>(rows + r * apart));
    const __m128i low01 = _mm_unpacklo_epi32(row[0], row[1]), high01 = _mm_unpackhi_epi32(row[0], row[1]);
    const __m128i low23 = _mm_unpacklo_epi32(row[2], row[3]), high23 = _mm_unpackhi_epi32(row[2], row[3]);
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out), _mm_unpacklo_epi64(low01, low23));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out + stride), _mm_unpackhi_epi64(low01, low23));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 2 * stride), _mm_unpacklo_epi64(high01, high23));
    _mm_storeu_si128(reinterpret_cast<__m128i *>(out + 3 * stride), _mm_unpackhi_epi64(high01, high23));
}

#if defined(ASSAY_AVX512VNNI)

template <int ROWS> inline void multiply_rows(int64_t pairs, const int16_t *x, const int16_t *y, int32_t *c) {
    __m512i acc[ROWS][2];
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; ++m) acc[m][0] = acc[m][1] = _mm512_setzero_si512();
    for (int64_t p = 0; p < pairs; ++p, x += 2 * PANEL_X, y += 2 * PANEL_Y) {
        const __m512i y0 = _mm512_load_si512(y), y1 = _mm512_load_si512(y + 32);
#pragma GCC unroll 12
        for (int m = 0; m < ROWS; ++m) {
            const __m512i a = _mm512_set1_epi32(reinterpret_cast<const int32_t *>(x)[m]);
            acc[m][0] = _mm512_dpwssd_epi32(acc[m][0], a, y0);
            acc[m][1] = _mm512_dpwssd_epi32(acc[m][1], a, y1);
        }
    }
#pragma GCC unroll 12
    for (int m = 0; m < ROWS; ++m) {
        _mm512_store_si512(c + m * PANEL_Y, acc[m][0]);
        _mm512_store_si512(c + m * PANEL_Y + 16, acc[m][1]);
    }
}

void multiply_tile(int64_t pairs, const int16_t *x, const int16_t *y, int rows, int32_t *c) {
    if (rows > 8) return multiply_rows<12>(pairs, x, y, c);
    rows > 4 ? multiply_rows<8>(pairs, x, y, c) : multiply_rows<4>(pairs, x, y, c);
    clear_rows(rows > 4 ? 8 : 4, c);
}

#elif defined(ASSAY_AVX2)

void multiply_tile(int64_t pairs, const int16_t *x, const int16_t *y, int rows, int32_t *c) {
    constexpr int ROWS = 6;  // 6 x 16 results are 12 of 16 registers
    clear_rows((rows + ROWS - 1) / ROWS * ROWS, c);
    for (int m0 = 0; m0 < rows; m0 += ROWS)
        for (int n0 = 0; n0 < PANEL_Y; n0 += 16) {
            __m256i acc[ROWS][2];
#pragma GCC unroll 6
            for (int m = 0; m < ROWS; ++m) acc[m][0] = acc[m][1] = _mm256_setzero_si256();
            const int32_t *a = reinterpret_cast<const int32_t *>(x) + m0;
            const __m256i *b = reinterpret_cast<const __m256i *>(y + 2 * n0);
            for (int64_t p = 0; p < pairs; ++p, a += PANEL_X, b += 4) {
                const __m256i y0 = _mm256_load_si256(b), y1 = _mm256_load_si256(b + 1);
#pragma GCC unroll 6
                for (int m = 0; m < ROWS; ++m) {
                    const __m256i xm = _mm256_set1_epi32(a[m]);
                    acc[m][0] = _mm256_add_epi32(acc[m][0], _mm256_madd_epi16(xm, y0));
                    acc[m][1] = _mm256_add_epi32(acc[m][1], _mm256_madd_epi16(xm, y1));
                }
            }
#pragma GCC unroll 6
            for (int m = 0; m < ROWS; ++m) {
                __m256i *out = reinterpret_cast<__m256i *>(c + (m0 + m) * PANEL_Y + n0);
                _mm256_store_si256(out, acc[m][0]);
                _mm256_store_si256(out + 1, acc[m][1]);
            }
        }
}

#else

void multiply_tile(int64_t pairs, const int16_t *x, const int16_t *y, int rows, int32_t *c) {
    constexpr int ROWS = 4;  // 4 x 8 results are 8 of 16 registers
    clear_rows((rows + ROWS - 1) / ROWS * ROWS, c);
    for (int m0 = 0; m0 < rows; m0 += ROWS)
        for (int n0 = 0; n0 < PANEL_Y; n0 += 8) {
            __m128i acc[ROWS][2];
#pragma GCC unroll 4
            for (int m = 0; m < ROWS; ++m) acc[m][0] = acc[m][1] = _mm_setzero_si128();
            const int32_t *a = reinterpret_cast<const int32_t *>(x) + m0;
            const __m128i *b = reinterpret_cast<const __m128i *>(y + 2 * n0);
            for (int64_t p = 0; p < pairs; ++p, a += PANEL_X, b += 8) {
                const __m128i y0 = _mm_load_si128(b), y1 = _mm_load_si128(b + 1);
#pragma GCC unroll 4
                for (int m = 0; m < ROWS; ++m) {
                    const __m128i xm = _mm_set1_epi32(a[m]);
                    acc[m][0] = _mm_add_epi32(acc[m][0], _mm_madd_epi16(xm, y0));
                    acc[m][1] = _mm_add_epi32(acc[m][1], _mm_madd_epi16(xm, y1));
                }
            }
#pragma GCC unroll 4
            for (int m = 0; m < ROWS; ++m) {
                __m128i *out = reinterpret_cast<__m128i *>(c + (m0 + m) * PANEL_Y + n0);
                _mm_store_si128(out, acc[m][0]);
                _mm_store_si128(out + 1, acc[m][1]);
            }
        }
}

#endif
#endif

}  // namespace
}  // namespace assay
