// One exact product, as passed by Python: arithmetic.md sections 3, 4 and 8. Mirrored in native.py.
//
// out[b, m, n] = round((sum_k m_px(x[b, m, k]) * m_py(y[b, n, k])) * 2^(ex + ey - px - py)), or the integer itself.
#pragma once
#include <cstdint>

extern "C" {

// One operand. Element (b, row, k) is at data[offsets[b] + row * row_stride + k * term_stride] (in elements);
// one of the two strides is 1.
struct AssayOperand {
    const void *data;         // f32, or i32 integers that are quantised already
    const int64_t *offsets;   // [batch]
    int64_t rows;             // M or N
    int64_t row_stride;
    int64_t term_stride;
    const int32_t *exponents; // [batch * rows], or null: computed here
    int32_t bits;             // 13 or 20: |m| <= 2^bits
    int32_t is_integer;       // data are i32; exponents are then ignored
};

struct AssayProblem {
    AssayOperand x, y;
    int64_t batch, terms;     // terms is K
    void *out;                // [batch, M, N] contiguous: f32, or i64 where both operands are integers
    const float *bias;        // [N] added to every rounded f32 result, or null
    int32_t variant;          // which instruction set, as numbered by assay_variant_name
    int32_t threads;
};
}
