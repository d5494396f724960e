// The fused functions for Python: arrays divided among OpenMP threads. No result depends on the division.
#include "fused.h"

#include <algorithm>
#include <vector>

#include "divide.h"
#include "sets.h"

namespace assay {
namespace {

// Scales of all columns of t.g and, if `summed`, their sums in fixed point. Rows are divided among threads;
// each thread has separate integers, which are added up at the end.
class ColumnSums {
  public:
    std::vector<float> factors;
    std::vector<double> scales;
    std::vector<int64_t> sums;

    ColumnSums(const Fused &fused, const LayerNorm &t, int64_t rows, int32_t threads, bool summed)
        : factors(t.columns), scales(t.columns), sums(t.columns, 0) {
        const int64_t size = 2 * SHARE / t.columns < 1 ? 1 : 2 * SHARE / t.columns, pieces = (rows + size - 1) / size;
        std::vector<int32_t> largest(t.columns, 0);
#pragma omp parallel num_threads(threads) if (pieces > 1 && threads > 1)
        {
            const Mode mode;
            std::vector<int32_t> most(t.columns, 0);
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < pieces; ++i)
                fused.largest_of_columns(t, i * size, std::min((i + 1) * size, rows), most.data());
#pragma omp critical(assay_columns)
            for (int64_t c = 0; c < t.columns; ++c) largest[c] = std::max(largest[c], most[c]);
#pragma omp barrier
#pragma omp single
            fused.scale_columns(largest.data(), factors.data(), scales.data(), t.columns);
            if (summed) {
                std::vector<int64_t> own(t.columns, 0);
#pragma omp for schedule(dynamic)
                for (int64_t i = 0; i < pieces; ++i)
                    fused.sums_of_columns(t, i * size, std::min((i + 1) * size, rows), factors.data(), own.data());
#pragma omp critical(assay_columns)
                for (int64_t c = 0; c < t.columns; ++c) sums[c] += own[c];
            }
        }
    }
};

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))
using assay::divide;
using assay::SETS;
using assay::SHARE;

extern "C" {

ASSAY_EXPORT void assay_map(int32_t variant, int32_t which, const float *g, const float *x, float *y, int64_t count,
                            int32_t threads) {
    divide(count, SHARE, threads, [=](int64_t i, int64_t end) {
        SETS[variant].fused.map(which, g ? g + i : nullptr, x + i, y + i, end - i);
    });
}

ASSAY_EXPORT void assay_pair(int32_t variant, int32_t which, const float *x, const float *y, void *out, int64_t count,
                             int32_t x_one, int32_t y_one, int32_t threads) {
    const int64_t size = which == assay::LT || which == assay::LE ? 1 : sizeof(float);
    divide(count, SHARE, threads, [=](int64_t i, int64_t end) {
        SETS[variant].fused.pair(which, x_one ? x : x + i, y_one ? y : y + i, static_cast<char *>(out) + i * size,
                                 end - i, x_one != 0, y_one != 0);
    });
}

ASSAY_EXPORT void assay_select(int32_t variant, const uint8_t *condition, const float *x, const float *y, float *out,
                               int64_t count, int32_t x_one, int32_t y_one, int32_t threads) {
    divide(count, SHARE, threads, [=](int64_t i, int64_t end) {
        SETS[variant].fused.select(condition + i, x_one ? x : x + i, y_one ? y : y + i, out + i, end - i,
                                   x_one != 0, y_one != 0);
    });
}

ASSAY_EXPORT void assay_softmax(int32_t variant, const float *x, float *y, int64_t rows, int64_t columns, int32_t safe,
                                int32_t threads) {
    divide(rows, SHARE / columns, threads, [=](int64_t r, int64_t end) {
        SETS[variant].fused.softmax(x + r * columns, y + r * columns, end - r, columns, safe != 0);
    });
}

ASSAY_EXPORT void assay_softmax_grad(int32_t variant, const float *g, const float *y, float *out, int64_t rows,
                                     int64_t columns, int32_t threads) {
    divide(rows, SHARE / columns, threads, [=](int64_t r, int64_t end) {
        SETS[variant].fused.softmax_grad(g + r * columns, y + r * columns, out + r * columns, end - r, columns);
    });
}

ASSAY_EXPORT void assay_sum_rows(int32_t variant, const float *x, float *out, int64_t rows, int64_t columns,
                                 int32_t threads) {
    divide(rows, SHARE / columns, threads,
           [=](int64_t r, int64_t end) { SETS[variant].fused.sum_rows(x + r * columns, out + r, end - r, columns); });
}

ASSAY_EXPORT void assay_layer_norm(int32_t variant, const float *x, const float *gain, const float *bias, float eps,
                                   float *y, float *mean, float *rstd, int64_t rows, int64_t columns, int32_t threads) {
    const assay::LayerNorm t = {nullptr, x, nullptr, nullptr, gain, bias, y, mean, rstd, columns, eps};
    divide(rows, SHARE / columns, threads,
           [&](int64_t r, int64_t end) { SETS[variant].fused.layer_norm(t, r, end); });
}

ASSAY_EXPORT void assay_layer_norm_grad(int32_t variant, const float *g, const float *x, const float *mean,
                                        const float *rstd, const float *gain, float *y, int64_t rows, int64_t columns,
                                        int32_t threads) {
    const assay::LayerNorm t = {g, x, mean, rstd, gain, nullptr, y, nullptr, nullptr, columns, 0.0f};
    divide(rows, SHARE / columns, threads,
           [&](int64_t r, int64_t end) { SETS[variant].fused.layer_norm_grad(t, r, end); });
}

// With x, mean and rstd null: plain sums of g.
ASSAY_EXPORT void assay_sum_columns(int32_t variant, const float *g, const float *x, const float *mean,
                                    const float *rstd, float *y, int64_t rows, int64_t columns, int32_t threads) {
    const assay::LayerNorm t = {g, x, mean, rstd, nullptr, nullptr, y, nullptr, nullptr, columns, 0.0f};
    const assay::Mode mode;
    const assay::ColumnSums found(SETS[variant].fused, t, rows, threads, true);
    SETS[variant].fused.round_scaled_columns(found.sums.data(), found.scales.data(), y, columns);
}

ASSAY_EXPORT void assay_adamw(int32_t variant, const assay::Adam *a, int64_t count, int32_t threads) {
    divide(count, SHARE, threads, [=](int64_t i, int64_t end) { SETS[variant].fused.adamw(*a, i, end); });
}

ASSAY_EXPORT void assay_sgd(int32_t variant, const assay::Sgd *a, int64_t count, int32_t threads) {
    divide(count, SHARE, threads, [=](int64_t i, int64_t end) { SETS[variant].fused.sgd(*a, i, end); });
}

ASSAY_EXPORT void assay_lstm_cell(int32_t variant, const assay::LstmCell *t, int64_t rows, int32_t threads) {
    divide(rows, SHARE / t->size, threads,
           [=](int64_t r, int64_t end) { SETS[variant].fused.lstm_cell(*t, r, end); });
}

ASSAY_EXPORT void assay_lstm_cell_grad(int32_t variant, const assay::LstmCellGrad *t, int64_t rows, int32_t threads) {
    divide(rows, SHARE / t->size, threads,
           [=](int64_t r, int64_t end) { SETS[variant].fused.lstm_cell_grad(*t, r, end); });
}

ASSAY_EXPORT void assay_log_softmax(int32_t variant, const float *x, float *y, int64_t rows, int64_t columns,
                                    int32_t threads) {
    divide(rows, SHARE / columns, threads, [=](int64_t r, int64_t end) {
        SETS[variant].fused.log_softmax(x + r * columns, y + r * columns, end - r, columns);
    });
}

ASSAY_EXPORT void assay_log_softmax_grad(int32_t variant, const float *g, const float *y, float *out, int64_t rows,
                                         int64_t columns, int32_t threads) {
    divide(rows, SHARE / columns, threads, [=](int64_t r, int64_t end) {
        SETS[variant].fused.log_softmax_grad(g + r * columns, y + r * columns, out + r * columns, end - r, columns);
    });
}

// Adds rows of g [count, columns] by index into y [rows, columns], with one exponent per column. Rows that no
// index names are all the same: zero, or NaN in a column whose exponent is the sentinel.
ASSAY_EXPORT void assay_scatter_sum(int32_t variant, const float *g, const int32_t *index, float *y, int64_t count,
                                    int64_t columns, int64_t rows, int32_t threads) {
    const assay::Mode mode;
    const assay::Fused &fused = SETS[variant].fused;
    const assay::LayerNorm t = {g, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr, columns, 0.0f};
    const assay::ColumnSums found(fused, t, count, threads, false);
    std::vector<int64_t> first(rows, -1), next(count);
    for (int64_t i = count - 1; i >= 0; --i)
        if (index[i] >= 0 && index[i] < rows) {
            next[i] = first[index[i]];
            first[index[i]] = i;
        }
    std::vector<float> nothing(columns);
    fused.round_scaled_columns(found.sums.data(), found.scales.data(), nothing.data(), columns);
    divide(rows, SHARE / columns, threads, [&](int64_t row, int64_t end) {
        std::vector<int64_t> sums(columns);
        for (; row < end; ++row) {
            float *out = y + row * columns;
            if (first[row] < 0) {
                std::copy(nothing.begin(), nothing.end(), out);
                continue;
            }
            std::fill(sums.begin(), sums.end(), 0);
            for (int64_t i = first[row]; i >= 0; i = next[i])
                fused.sums_of_columns(t, i, i + 1, found.factors.data(), sums.data());
            fused.round_scaled_columns(sums.data(), found.scales.data(), out, columns);
        }
    });
}

ASSAY_EXPORT void assay_canonical(int32_t variant, float *x, int64_t count, int32_t threads) {
    divide(count, 4 * SHARE, threads, [=](int64_t i, int64_t end) { SETS[variant].fused.canonical(x + i, end - i); });
}
}
