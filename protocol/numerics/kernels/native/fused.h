// Functions over f32 arrays with the bits of lists of operations in their order. Every instruction set provides them
// (fused_body.h); fused.cpp divides arrays among threads. NaN comes out canonical.
#pragma once
#include <cstdint>

namespace assay {

// Functions of one element. The slopes are multiplied by a gradient.
enum Map : int32_t {
    EXP, LOG, TANH, SIGMOID, ERF, SIN, COS, RSQRT, GELU_ERF, GELU_TANH, SILU, GELU_ERF_GRAD, GELU_TANH_GRAD, SILU_GRAD,
    MAPS
};

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

// A change of the scores of one row: AssayChange of attention.h at that row.
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
    // Sums over all rows of `count` columns from `first` on. With a mean: of g (x - mean) rstd.
    void (*sum_columns)(const LayerNorm &, int64_t rows, int64_t first, int64_t count);
    void (*adamw)(const Adam &, int64_t first, int64_t end);
    void (*canonical)(float *x, int64_t count);
    // For attention.cpp. One change of a row; x times keep times kept; the largest magnitudes of columns, added to
    // `largest`, and of a whole row; integers of columns under these factors, 0 where the mask is.
    void (*change)(const RowChange &, float *x, int64_t count);
    void (*drop)(const float *keep, float kept, float *x, int64_t count);
    void (*largest)(const float *x, int32_t *largest, int64_t count);
    int32_t (*largest_of_row)(const float *x, int64_t stride, int64_t count);
    void (*integers)(const float *x, const float *factor, const int32_t *mask, int32_t *out, int64_t count);
};

extern const Fused FUSED_AVX512VNNI, FUSED_AVX2, FUSED_BASELINE, FUSED_PORTABLE;

}  // namespace assay
