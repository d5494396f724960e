// Attention by blocks of query rows, as Python hands it over; mirrored in kernels/attention.py.
//
// Scores q k^T, changes of single scores, softmax, dropout, and the product with the values; backwards the gradients of
// all three. Every score is rounded as `contract` rounds it, so the bits are those of the functions one after the other.
#pragma once
#include <cstdint>

extern "C" {

// One matrix for every head. Element (row, term) of head h lies at data[offsets[h] + row * row_stride + term *
// term_stride], in elements; one of the strides is 1.
struct AssayMatrix {
    const float *data;
    const int64_t *offsets;  // [heads]
    int64_t row_stride, term_stride;
    int32_t bits;            // 13 or 20, as an operand of its product
};

enum AssayChangeKind : int32_t { ASSAY_TIMES, ASSAY_OVER, ASSAY_FILL_TRUE, ASSAY_FILL_FALSE, ASSAY_PLUS };

// What happens to a score between a product and a softmax: times or over `value`; `value` where a mask of bytes holds
// or does not; plus a table of f32.
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
    AssayMatrix p_out, v_out;                    // v_out [E][N]; of p_out the bits alone
    AssayMatrix g, v;                            // backwards: [M][E], [N][E]
    AssayMatrix p_v, g_v;                        // g_v [E][M]; of p_v the bits alone
    AssayMatrix s_q, k_q;                        // k_q [D][N]; of s_q the bits alone
    AssayMatrix s_k, q_k;                        // q_k [D][M]; of s_k the bits alone
    const AssayChange *changes, *back_changes;   // of scores, and of their gradients
    int32_t change_count, back_count;
    int32_t safe;
    int32_t dropout;                             // a word below `below` keeps an element, times `kept`
    uint32_t key0, key1, step, stream;
    uint64_t below;
    float kept;
    int32_t v_turned, k_turned;                  // the gradient of the values is [E, N], that of the keys [D, N]
    float *out;                                  // [H, M, E]
    float *grad_q, *grad_k, *grad_v;             // [H, M, D], [H, N, D], [H, N, E]
    int64_t whole;                               // heads of at most this many scores are kept as one table
    int32_t variant, threads;
};
}
