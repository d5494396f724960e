// Operations on pairs of elements for one instruction set: the primitives of arithmetic.md section 2 with a
// canonical result in one pass, where torch needs a second pass for NaN. Included by fused_body.h.
#pragma once
#include "fused.h"
#include "scalar.h"

namespace assay {
namespace {

template <int WHICH> inline float paired(float x, float y) {
    if (WHICH == ADD) return canonical(x + y);
    if (WHICH == SUB) return canonical(x - y);
    if (WHICH == MUL) return canonical(x * y);
    if (WHICH == DIV) return canonical(x / y);
    const float nan = float_of(0x7fc00000u), chosen = WHICH == MINIMUM ? (y < x ? y : x) : (y > x ? y : x);
    return x == x && y == y ? chosen + 0.0f : nan;
}

// An operand is an array or one element.
template <int WHICH, bool X_ONE, bool Y_ONE>
void pair_of(const float *__restrict x, const float *__restrict y, void *out, int64_t n) {
    const float x0 = x[0], y0 = y[0];
    if constexpr (WHICH == LT || WHICH == LE) {
        uint8_t *__restrict to = static_cast<uint8_t *>(out);
        for (int64_t i = 0; i < n; ++i) {
            const float a = X_ONE ? x0 : x[i], b = Y_ONE ? y0 : y[i];
            to[i] = WHICH == LT ? a < b : a <= b;
        }
    } else {
        float *__restrict to = static_cast<float *>(out);
        for (int64_t i = 0; i < n; ++i) to[i] = paired<WHICH>(X_ONE ? x0 : x[i], Y_ONE ? y0 : y[i]);
    }
}

template <int WHICH = 0>
void pair_any(int32_t which, const float *x, const float *y, void *out, int64_t n, bool x_one, bool y_one) {
    if (which == WHICH)
        return x_one ? pair_of<WHICH, true, false>(x, y, out, n)
                     : y_one ? pair_of<WHICH, false, true>(x, y, out, n) : pair_of<WHICH, false, false>(x, y, out, n);
    if constexpr (WHICH + 1 < PAIRS) pair_any<WHICH + 1>(which, x, y, out, n, x_one, y_one);
}

template <bool X_ONE, bool Y_ONE>
void select_of(const uint8_t *__restrict condition, const float *__restrict x, const float *__restrict y,
               float *__restrict out, int64_t n) {
    const float x0 = x[0], y0 = y[0];
    for (int64_t i = 0; i < n; ++i) {
        const float a = X_ONE ? x0 : x[i], b = Y_ONE ? y0 : y[i];
        out[i] = canonical(condition[i] ? a : b);
    }
}

void select_any(const uint8_t *condition, const float *x, const float *y, float *out, int64_t n, bool x_one, bool y_one) {
    if (x_one)
        y_one ? select_of<true, true>(condition, x, y, out, n) : select_of<true, false>(condition, x, y, out, n);
    else
        y_one ? select_of<false, true>(condition, x, y, out, n) : select_of<false, false>(condition, x, y, out, n);
}

}  // namespace
}  // namespace assay
