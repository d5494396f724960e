// Converts f32 to the integers of a row, for products of every kind: exponents, factors, and rows stored side
// by side. Compiled into every variant_*.cpp for its instruction set; nothing here has external linkage.
#pragma once
#include <cstdint>

#include "scalar.h"
#include "variant.h"

namespace assay {
namespace {

inline int32_t magnitude(float x) { return static_cast<int32_t>(bits_of(x) & 0x7fffffffu); }

// rint(x * factor) for |x * factor| <= 2^22: adding 1.5 * 2^23 leaves the integer in the low bits, rounded to
// even.
inline int32_t whole(float x, float factor) {
    return static_cast<int32_t>(bits_of(x * factor + 12582912.0f) - 0x4b400000u);
}

// Converts an element of a row to an integer, and an integer of the result back.
struct RowScale {
    float factor;   // 2^(bits - e)
    int32_t mask;   // 0 under the sentinel, where all integers are 0
    double scale;   // 2^(e - bits), NaN under the sentinel
};

inline RowScale row_scale(int32_t e, int bits) {
    if (e == SENTINEL) return {1.0f, 0, double_of(0x7ff8000000000000ull)};
    return {op_power_of_two(bits - e), -1, double_power_of_two(e - bits)};
}

inline int32_t integer(float x, const RowScale &s) { return whole(x, s.factor) & s.mask; }
inline int32_t integer(int32_t x, const RowScale &) { return x; }

template <class T> RowScale scale_of_row(const Source &s, int64_t row, const T *x);

template <> inline RowScale scale_of_row(const Source &, int64_t, const int32_t *) { return {1.0f, -1, 1.0}; }

template <> inline RowScale scale_of_row(const Source &s, int64_t row, const float *x) {
    if (s.exponents) return row_scale(s.exponents[row], s.bits);
    int32_t largest = 0;
    for (int64_t k = 0; k < s.terms; ++k) {
        const int32_t m = magnitude(x[k]);
        largest = m > largest ? m : largest;
    }
    return row_scale(exponent_of(largest), s.bits);
}

// Scales of a panel's rows; the factors back go to `kept`, zero beyond the last row. Returns the number of
// the operand's rows in the panel.
template <class T, int PANEL>
inline int panel_scales(const Source &s, int64_t panel, RowScale (&scales)[PANEL], double *kept) {
    const int64_t left = s.rows - panel * PANEL;
    const int inside = static_cast<int>(left < PANEL ? left : PANEL);
    for (int r = 0; r < PANEL; ++r) {
        const int64_t row = panel * PANEL + r;
        scales[r] = r < inside ? scale_of_row<T>(s, row, static_cast<const T *>(s.data) + row * s.row_stride)
                               : RowScale{0.0f, 0, 0.0};
        kept[row] = scales[r].scale;
    }
    return inside;
}

constexpr int STRIP = 128;  // rows of a strip, including padding: 10 panels of 12, 8 of 16, or 4 of 32
constexpr int AHEAD = 8;    // terms; each is on another page, where hardware prefetching stops

// Prefetches a term's elements of a strip.
template <class T> inline void fetch(const T *term, int count) {
    for (int r = 0; r < count; r += 64 / static_cast<int>(sizeof(T))) __builtin_prefetch(term + r);
}

template <class T> inline void column_scales(const Source &s, int64_t row, int count, RowScale *scales);

template <> inline void column_scales<int32_t>(const Source &, int64_t, int count, RowScale *scales) {
    for (int r = 0; r < count; ++r) scales[r] = {1.0f, -1, 1.0};
}

template <> inline void column_scales<float>(const Source &s, int64_t row, int count, RowScale *scales) {
    if (s.exponents) {
        for (int r = 0; r < count; ++r) scales[r] = row_scale(s.exponents[row + r], s.bits);
        return;
    }
    int32_t largest[STRIP] = {0};
    const float *x = static_cast<const float *>(s.data) + row;
    if (count < STRIP)
        for (int64_t k = 0; k < s.terms; ++k, x += s.term_stride)
            for (int r = 0; r < count; ++r) largest[r] = magnitude(x[r]) > largest[r] ? magnitude(x[r]) : largest[r];
    else
        for (int64_t k = 0; k < s.terms; ++k, x += s.term_stride) {
            if (k + AHEAD < s.terms) fetch(x + AHEAD * s.term_stride, STRIP);
            for (int r = 0; r < STRIP; ++r) largest[r] = magnitude(x[r]) > largest[r] ? magnitude(x[r]) : largest[r];
        }
    for (int r = 0; r < count; ++r) scales[r] = row_scale(exponent_of(largest[r]), s.bits);
}

// As `panel_scales`, for `wanted` rows stored side by side, from row `first` on; factors and masks are
// separate, for vectors.
template <class T>
inline int strip_scales(const Source &s, int64_t first, int64_t wanted, float (&factor)[STRIP], int32_t (&mask)[STRIP],
                        double *kept) {
    const int inside = static_cast<int>(s.rows - first < wanted ? s.rows - first : wanted);
    RowScale scales[STRIP];
    column_scales<T>(s, first, inside, scales);
    for (int r = 0; r < inside; ++r) factor[r] = scales[r].factor, mask[r] = scales[r].mask;
    for (int r = 0; r < wanted; ++r) kept[first + r] = r < inside ? scales[r].scale : 0.0;
    return inside;
}

}  // namespace
}  // namespace assay
