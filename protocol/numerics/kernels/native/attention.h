// Attention by blocks of query rows, as passed by Python; mirrored in kernels/attention.py.
//
// Scores q k^T, changes of single scores, softmax, dropout, and the product with the values; backwards, the
// gradients of all three. Every score is rounded as in `contract`, so the bits equal those of the separate
// functions.
#pragma once
#include <cstdint>

extern "C" {

// One matrix for every head. Element (row, term) of head h is at data[offsets[h] + row * row_stride + term *
// term_stride], in elements; one of the strides is 1.
struct AssayMatrix {
    const float *data;
    const int64_t *offsets;  // [heads]
    int64_t row_stride, term_stride;
    int32_t bits;            // 13 or 20, as an operand of its product
};

enum AssayChangeKind : int32_t { ASSAY_TIMES, ASSAY_OVER, ASSAY_FILL_TRUE, ASSAY_FILL_FALSE, ASSAY_PLUS };

// A change of scores between a product and the softmax: multiplied or divided by `value`; replaced by `value`
// where a byte mask is true, or false; or added to a table of f32.
struct AssayChange {
    int32_t kind;
    float value;
    const void *data;
    const int64_t *offsets;              // [heads]
    int64_t row_stride, column_stride;   // either may be 0
};

struct AssayAttention {
    int64_t heads, queries, keys, inner, width;  // H, M, N, terms of the scores D, columns of the values E
    AssayMatrix q, k;                            // [M][D], [N][D]
    AssayMatrix p_out, v_out;                    // v_out [E][N]; only the bits of p_out are used
    AssayMatrix g, v;                            // backwards: [M][E], [N][E]
    AssayMatrix p_v, g_v;                        // g_v [E][M]; only the bits of p_v are used
    AssayMatrix s_q, k_q;                        // k_q [D][N]; only the bits of s_q are used
    AssayMatrix s_k, q_k;                        // q_k [D][M]; only the bits of s_k are used
    const AssayChange *changes, *back_changes;   // of scores, and of their gradients
    int32_t change_count, back_count;
    int32_t safe;
    int32_t dropout;                             // a word below `below` keeps an element, multiplied by `kept`
    uint32_t key0, key1, step, stream;
    uint64_t below;
    float kept;
    int32_t v_turned, k_turned;                  // the gradient of the values is [E, N], that of the keys [D, N]
    float *out;                                  // [H, M, E]
    float *grad_q, *grad_k, *grad_v;             // [H, M, D], [H, N, D], [H, N, E]
    int64_t whole;                               // heads with at most this many scores are stored whole
    int32_t variant, threads;
};
}
