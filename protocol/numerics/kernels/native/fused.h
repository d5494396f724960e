// Functions over f32 arrays, bit for bit equal to lists of operations applied in order. Every instruction set
// provides them (fused_body.h); fused.cpp divides arrays among threads. NaN results are canonical.
#pragma once
#include <cstdint>

namespace assay {

// Functions of one element. The *_GRAD functions are multiplied by a gradient.
enum Map : int32_t {
    EXP, LOG, TANH, SIGMOID, ERF, SIN, COS, RSQRT, GELU_ERF, GELU_TANH, SILU, GELU_ERF_GRAD, GELU_TANH_GRAD, SILU_GRAD,
    MAPS
};

// Operations on two elements. LT and LE give bytes of 0 or 1.
enum Pair : int32_t { ADD, SUB, MUL, DIV, MINIMUM, MAXIMUM, LT, LE, PAIRS };

struct LayerNorm {
    const float *g, *x, *mean, *rstd, *gain, *bias;  // gain and bias may be null
    float *y, *new_mean, *new_rstd;
    int64_t columns;
    float eps;
};

struct Adam {
    const float *p, *g, *m, *v;
    float *p_new, *m_new, *v_new;
    float size, eps, kept, beta1, rest1, beta2, rest2;
};

// One update of SGD: see `library.sgd`. Without a buffer, plain SGD.
struct Sgd {
    const float *p, *g, *buffer;
    float *p_new, *buffer_new;
    float rate, momentum, decay;
    int32_t decays, nesterov;
};

// A step of an LSTM: gates i f g o in rows of 4 `size`, c' = f c + i g, h' = o tanh(c').
struct LstmCell {
    const float *x, *product, *cell;  // the gates' input part and recurrent part, c
    float *gates, *next, *hidden;
    int64_t size;
};

// Its gradient. The gradients of h and of c each have a part from the step's own results and a part from the
// next step.
struct LstmCellGrad {
    const float *own_h, *later_h, *own_c, *later_c, *gates, *cell, *before;
    float *raw, *earlier_c;           // gradients of the gates before activation, and of the previous c
    int64_t size;
};

// A change of the scores of one row: an AssayChange of attention.h at that row.
struct RowChange {
    int32_t kind;
    float value;
    const void *data;
    int64_t stride;
};

struct Fused {
    void (*map)(int32_t which, const float *g, const float *x, float *y, int64_t count);
    void (*softmax)(const float *x, float *y, int64_t rows, int64_t columns, bool safe);
    void (*softmax_grad)(const float *g, const float *y, float *out, int64_t rows, int64_t columns);
    void (*sum_rows)(const float *x, float *out, int64_t rows, int64_t columns);
    void (*layer_norm)(const LayerNorm &, int64_t first, int64_t end);
    void (*layer_norm_grad)(const LayerNorm &, int64_t first, int64_t end);
    void (*log_softmax)(const float *x, float *y, int64_t rows, int64_t columns);
    void (*log_softmax_grad)(const float *g, const float *y, float *out, int64_t rows, int64_t columns);
    // For all columns of some rows of g (or, with a mean, of g (x - mean) rstd): the largest magnitudes, and
    // the sums in fixed point under these factors, both merged into the existing values. Then rounding of the
    // sums, and factors and scales from the magnitudes.
    void (*largest_of_columns)(const LayerNorm &, int64_t first, int64_t end, int32_t *largest);
    void (*sums_of_columns)(const LayerNorm &, int64_t first, int64_t end, const float *factors, int64_t *sums);
    void (*round_scaled_columns)(const int64_t *sums, const double *scales, float *out, int64_t columns);
    void (*scale_columns)(const int32_t *largest, float *factors, double *scales, int64_t columns);
    void (*sgd)(const Sgd &, int64_t first, int64_t end);
    void (*lstm_cell)(const LstmCell &, int64_t first, int64_t end);
    void (*lstm_cell_grad)(const LstmCellGrad &, int64_t first, int64_t end);
    void (*adamw)(const Adam &, int64_t first, int64_t end);
    // elements_body.h. An operand is a single element if its `_one` flag is set.
    void (*pair)(int32_t which, const float *x, const float *y, void *out, int64_t count, bool x_one, bool y_one);
    void (*select)(const uint8_t *condition, const float *x, const float *y, float *out, int64_t count, bool x_one,
                   bool y_one);
    void (*canonical)(float *x, int64_t count);
    // For attention.cpp: one change of a row; x times keep times kept; the largest magnitudes of columns,
    // merged into `largest`, and of a whole row; integers of columns under these factors, 0 where the mask is
    // 0.
    void (*change)(const RowChange &, float *x, int64_t count);
    void (*drop)(const float *keep, float kept, float *x, int64_t count);
    void (*largest)(const float *x, int32_t *largest, int64_t count);
    int32_t (*largest_of_row)(const float *x, int64_t stride, int64_t count);
    void (*integers)(const float *x, const float *factor, const int32_t *mask, int32_t *out, int64_t count);
};

extern const Fused FUSED_AVX512VNNI, FUSED_AVX2, FUSED_BASELINE, FUSED_PORTABLE;

}  // namespace assay
