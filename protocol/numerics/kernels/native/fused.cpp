// The fused functions for Python: arrays divided among OpenMP threads. No result depends on how.
#include "fused.h"

#include "mode.h"

namespace assay {
namespace {

const Fused *const FUSED[] = {&FUSED_AVX512VNNI, &FUSED_AVX2, &FUSED_BASELINE, &FUSED_PORTABLE};
constexpr int64_t SHARE = 1 << 14;  // elements of a piece of work: 64 KiB in and out stay in cache

// Calls run(first, end) for pieces of 0 … total - 1 of at least `least`.
template <class Run> void divide(int64_t total, int64_t least, int32_t threads, const Run &run) {
    const int64_t size = least < 1 ? 1 : least, pieces = (total + size - 1) / size;
#pragma omp parallel num_threads(threads) if (pieces > 1 && threads > 1)
    {
        const Mode mode;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < pieces; ++i) run(i * size, (i + 1) * size < total ? (i + 1) * size : total);
    }
}

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))
using assay::divide;
using assay::FUSED;
using assay::SHARE;

extern "C" {

ASSAY_EXPORT void assay_map(int32_t variant, int32_t which, const float *g, const float *x, float *y, int64_t count,
                            int32_t threads) {
    divide(count, SHARE, threads, [=](int64_t i, int64_t end) {
        FUSED[variant]->map(which, g ? g + i : nullptr, x + i, y + i, end - i);
    });
}

ASSAY_EXPORT void assay_softmax(int32_t variant, const float *x, float *y, int64_t rows, int64_t columns, int32_t safe,
                                int32_t threads) {
    divide(rows, SHARE / columns, threads, [=](int64_t r, int64_t end) {
        FUSED[variant]->softmax(x + r * columns, y + r * columns, end - r, columns, safe != 0);
    });
}

ASSAY_EXPORT void assay_softmax_grad(int32_t variant, const float *g, const float *y, float *out, int64_t rows,
                                     int64_t columns, int32_t threads) {
    divide(rows, SHARE / columns, threads, [=](int64_t r, int64_t end) {
        FUSED[variant]->softmax_grad(g + r * columns, y + r * columns, out + r * columns, end - r, columns);
    });
}

ASSAY_EXPORT void assay_sum_rows(int32_t variant, const float *x, float *out, int64_t rows, int64_t columns,
                                 int32_t threads) {
    divide(rows, SHARE / columns, threads,
           [=](int64_t r, int64_t end) { FUSED[variant]->sum_rows(x + r * columns, out + r, end - r, columns); });
}

ASSAY_EXPORT void assay_layer_norm(int32_t variant, const float *x, const float *gain, const float *bias, float eps,
                                   float *y, float *mean, float *rstd, int64_t rows, int64_t columns, int32_t threads) {
    const assay::LayerNorm t = {nullptr, x, nullptr, nullptr, gain, bias, y, mean, rstd, columns, eps};
    divide(rows, SHARE / columns, threads,
           [&](int64_t r, int64_t end) { FUSED[variant]->layer_norm(t, r, end); });
}

ASSAY_EXPORT void assay_layer_norm_grad(int32_t variant, const float *g, const float *x, const float *mean,
                                        const float *rstd, const float *gain, float *y, int64_t rows, int64_t columns,
                                        int32_t threads) {
    const assay::LayerNorm t = {g, x, mean, rstd, gain, nullptr, y, nullptr, nullptr, columns, 0.0f};
    divide(rows, SHARE / columns, threads,
           [&](int64_t r, int64_t end) { FUSED[variant]->layer_norm_grad(t, r, end); });
}

// x, mean and rstd null: plain sums of g.
ASSAY_EXPORT void assay_sum_columns(int32_t variant, const float *g, const float *x, const float *mean,
                                    const float *rstd, float *y, int64_t rows, int64_t columns, int32_t threads) {
    const assay::LayerNorm t = {g, x, mean, rstd, nullptr, nullptr, y, nullptr, nullptr, columns, 0.0f};
    divide(columns, 128, threads,
           [&](int64_t first, int64_t end) { FUSED[variant]->sum_columns(t, rows, first, end - first); });
}

ASSAY_EXPORT void assay_adamw(int32_t variant, const assay::Adam *a, int64_t count, int32_t threads) {
    divide(count, SHARE, threads, [=](int64_t i, int64_t end) { FUSED[variant]->adamw(*a, i, end); });
}

ASSAY_EXPORT void assay_canonical(int32_t variant, float *x, int64_t count, int32_t threads) {
    divide(count, 4 * SHARE, threads, [=](int64_t i, int64_t end) { FUSED[variant]->canonical(x + i, end - i); });
}
}
