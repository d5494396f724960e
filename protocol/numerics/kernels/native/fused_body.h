// The fused functions for one instruction set; included by every variant_*.cpp after variant_body.h.
#include "attention.h"
#include "elements_body.h"
#include "fused.h"
#include "lists.h"

namespace assay {
namespace {

constexpr int BLOCK = 256;       // elements of a temporary, 1 KiB
constexpr int STRIP_OF_COLUMNS = 1024;  // columns summed side by side: 16 KiB of largest, factors and sums

// --- functions of one element ---------------------------------------------------------------------------------------

constexpr uint32_t SQRT_HALF = 0x3f3504f3u, NORMAL_DENSITY = 0x3ecc422au;            // sqrt(1/2), 1 / sqrt(2 pi)
constexpr uint32_t TANH_SCALE = 0x3f4c422au, TANH_CUBIC = 0x3d372713u, TANH_CUBIC_3 = 0x3e095d4fu;

inline float gelu_inner(float x) {
    const float cube = (x * x) * x;
    return (x + cube * float_of(TANH_CUBIC)) * float_of(TANH_SCALE);
}

template <int WHICH> inline float mapped(float x) {
    if (WHICH == EXP) return list_exp(x);
    if (WHICH == LOG) return list_log(x);
    if (WHICH == TANH) return list_tanh(x);
    if (WHICH == SIGMOID) return list_sigmoid(x);
    if (WHICH == ERF) return list_erf(x);
    if (WHICH == SIN) return list_sin(x);
    if (WHICH == COS) return list_cos(x);
    if (WHICH == RSQRT) return list_rsqrt(x);
    if (WHICH == GELU_ERF) return (x * 0.5f) * (list_erf(x * float_of(SQRT_HALF)) + 1.0f);
    if (WHICH == GELU_TANH) return (x * 0.5f) * (list_tanh(gelu_inner(x)) + 1.0f);
    if (WHICH == SILU) return x * list_sigmoid(x);
    if (WHICH == GELU_ERF_GRAD) {
        const float below = (list_erf(x * float_of(SQRT_HALF)) + 1.0f) * 0.5f;
        const float density = list_exp((x * x) * -0.5f) * float_of(NORMAL_DENSITY);
        return below + x * density;
    }
    if (WHICH == GELU_TANH_GRAD) {
        const float curve = list_tanh(gelu_inner(x));
        const float slope = ((x * x) * float_of(TANH_CUBIC_3) + 1.0f) * float_of(TANH_SCALE);
        const float along = ((x * 0.5f) * (1.0f - curve * curve)) * slope;
        return (curve + 1.0f) * 0.5f + along;
    }
    const float s = list_sigmoid(x);
    return s * (x * (1.0f - s) + 1.0f);
}

template <int WHICH> void map_one(const float *__restrict g, const float *__restrict x, float *__restrict y, int64_t n) {
    if (WHICH < GELU_ERF_GRAD)
        for (int64_t i = 0; i < n; ++i) y[i] = canonical(mapped<WHICH>(x[i]));
    else
        for (int64_t i = 0; i < n; ++i) y[i] = canonical(g[i] * mapped<WHICH>(x[i]));
}

template <int WHICH = 0> void map_any(int32_t which, const float *g, const float *x, float *y, int64_t n) {
    if (which == WHICH) return map_one<WHICH>(g, x, y, n);
    if constexpr (WHICH + 1 < MAPS) map_any<WHICH + 1>(which, g, x, y, n);
}

// --- sums: arithmetic.md section 5 ----------------------------------------------------------------------------------

inline int32_t fixed30(float x, const RowScale &s) { return static_cast<int32_t>(op_rint(x * s.factor)); }

inline RowScale scale_of(const float *x, int64_t n) {
    int32_t largest = 0;
    for (int64_t i = 0; i < n; ++i) largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    return row_scale(exponent_of(largest), 30);
}

float sum_of(const float *x, int64_t n) {
    const RowScale s = scale_of(x, n);
    if (!s.mask) return float_of(0x7fc00000u);
    int64_t sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += fixed30(x[i], s);
    return round_scaled(sum, s.scale);
}

void sum_rows(const float *x, float *out, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) out[r] = sum_of(x + r * columns, columns);
}

inline float mean_of(const float *x, int64_t n) { return canonical(sum_of(x, n) / static_cast<float>(n)); }

// The largest element; NaN if any is NaN. +0.0 is added. f32 order like numbers when compared as integers
// with the magnitude bits of negative values inverted.
float max_of(const float *x, int64_t n) {
    int32_t top = INT32_MIN, largest = 0;
    for (int64_t i = 0; i < n; ++i) {
        const int32_t b = op_bits_i32(x[i]), key = b ^ ((b >> 31) & 0x7fffffff);
        top = key > top ? key : top;
        largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    }
    if (largest > 0x7f800000) return float_of(0x7fc00000u);
    return op_from_bits_i32(top ^ ((top >> 31) & 0x7fffffff)) + 0.0f;
}

// --- rows -----------------------------------------------------------------------------------------------------------

void softmax(const float *x, float *y, int64_t rows, int64_t columns, bool safe) {
    for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
        const float largest = max_of(x, columns);
        if (safe && largest == float_of(0xff800000u)) {
            std::memset(y, 0, sizeof(float) * columns);
            continue;
        }
        const float *__restrict from = x;
        float *__restrict to = y;
        for (int64_t i = 0; i < columns; ++i) to[i] = list_exp(from[i] - largest);
        const float sum = sum_of(y, columns);
        for (int64_t i = 0; i < columns; ++i) to[i] = canonical(to[i] / sum);
    }
}

void softmax_grad(const float *g, const float *y, float *out, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r, g += columns, y += columns, out += columns) {
        float *__restrict to = out;
        for (int64_t i = 0; i < columns; ++i) to[i] = g[i] * y[i];
        const float sum = sum_of(out, columns);
        for (int64_t i = 0; i < columns; ++i) to[i] = canonical(y[i] * (g[i] - sum));
    }
}

// The largest exponential of a row is exactly 1, so the exponent of the row is 1. A row whose maximum is not
// finite is all NaN.
void log_softmax(const float *x, float *y, int64_t rows, int64_t columns) {
    const RowScale s = row_scale(1, 30);
    alignas(64) float powers[BLOCK];
    for (int64_t r = 0; r < rows; ++r, x += columns, y += columns) {
        const float *__restrict from = x;
        float *__restrict to = y;
        const float largest = max_of(x, columns);
        if (!(op_abs(largest) < float_of(0x7f800000u))) {
            for (int64_t i = 0; i < columns; ++i) to[i] = float_of(0x7fc00000u);
            continue;
        }
        int64_t sum = 0;
        for (int64_t start = 0; start < columns; start += BLOCK) {
            const int64_t n = columns - start < BLOCK ? columns - start : BLOCK;
            for (int64_t i = 0; i < n; ++i) powers[i] = list_exp(from[start + i] - largest);
            for (int64_t i = 0; i < n; ++i) sum += fixed30(powers[i], s);
        }
        const float whole = canonical(list_log(round_scaled(sum, s.scale)));
        for (int64_t i = 0; i < columns; ++i) to[i] = canonical((from[i] - largest) - whole);
    }
}

void log_softmax_grad(const float *g, const float *y, float *out, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r, g += columns, y += columns, out += columns) {
        const float *__restrict gradient = g, *__restrict from = y;
        float *__restrict to = out;
        const float sum = sum_of(g, columns);
        for (int64_t i = 0; i < columns; ++i) to[i] = canonical(gradient[i] - list_exp(from[i]) * sum);
    }
}

void layer_norm(const LayerNorm &t, int64_t first, int64_t end) {
    const int64_t n = t.columns;
    for (int64_t r = first; r < end; ++r) {
        const float *__restrict x = t.x + r * n;
        float *__restrict y = t.y + r * n;
        const float mean = mean_of(x, n);
        for (int64_t i = 0; i < n; ++i) {
            const float centred = x[i] - mean;
            y[i] = centred * centred;
        }
        const float rstd = canonical(1.0f / canonical(op_sqrt(mean_of(y, n) + t.eps)));
        for (int64_t i = 0; i < n; ++i) {
            float value = (x[i] - mean) * rstd;
            y[i] = value;
        }
        if (t.gain)
            for (int64_t i = 0; i < n; ++i) y[i] *= t.gain[i];
        if (t.bias)
            for (int64_t i = 0; i < n; ++i) y[i] += t.bias[i];
        for (int64_t i = 0; i < n; ++i) y[i] = canonical(y[i]);
        t.new_mean[r] = mean;
        t.new_rstd[r] = rstd;
    }
}

void layer_norm_grad(const LayerNorm &t, int64_t first, int64_t end) {
    const int64_t n = t.columns;
    for (int64_t r = first; r < end; ++r) {
        const float *__restrict g = t.g + r * n, *__restrict x = t.x + r * n;
        const float mean = t.mean[r], rstd = t.rstd[r];
        float *__restrict y = t.y + r * n;
        for (int64_t i = 0; i < n; ++i) y[i] = (t.gain ? g[i] * t.gain[i] : g[i]) * ((x[i] - mean) * rstd);
        const float along = mean_of(y, n);
        for (int64_t i = 0; i < n; ++i) y[i] = t.gain ? g[i] * t.gain[i] : g[i];
        const float average = mean_of(y, n);
        for (int64_t i = 0; i < n; ++i) {
            const float normal = (x[i] - mean) * rstd;
            y[i] = canonical(rstd * ((y[i] - average) - normal * along));
        }
    }
}

// --- columns --------------------------------------------------------------------------------------------------------

// What a row adds to the columns' sums: g, or with a mean g (x - mean) rstd.
template <bool NORMAL> struct Terms {
    const float *__restrict g, *__restrict x;
    float mean, rstd;
    Terms(const LayerNorm &t, int64_t r)
        : g(t.g + r * t.columns), x(NORMAL ? t.x + r * t.columns : nullptr), mean(NORMAL ? t.mean[r] : 0.0f),
          rstd(NORMAL ? t.rstd[r] : 0.0f) {}
    float operator()(int64_t i) const { return NORMAL ? g[i] * ((x[i] - mean) * rstd) : g[i]; }
};

template <bool NORMAL>
inline void largest_terms(const Terms<NORMAL> &term, int32_t *__restrict largest, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
        const int32_t m = magnitude(term(i));
        largest[i] = m > largest[i] ? m : largest[i];
    }
}

// Under the sentinel, infinity times 0 is NaN; the column's result is NaN regardless of what is added.
template <bool NORMAL>
inline void add_terms(const Terms<NORMAL> &term, const float *__restrict factors, int64_t *__restrict sums,
                      int64_t first, int64_t end) {
    for (int64_t i = first; i < end; ++i) {
        const float product = op_rint(term(i) * factors[i]);
        sums[i] += static_cast<int32_t>(product == product ? product : 0.0f);
    }
}

// Processes rows in memory order, by strips of columns whose sums stay in the L1 cache.
template <class Run> inline void by_strips(const LayerNorm &t, int64_t first, int64_t end, const Run &run) {
    for (int64_t from = 0; from < t.columns; from += STRIP_OF_COLUMNS) {
        const int64_t to = t.columns - from < STRIP_OF_COLUMNS ? t.columns : from + STRIP_OF_COLUMNS;
        for (int64_t r = first; r < end; ++r) run(r, from, to);
    }
}

void largest_of_columns(const LayerNorm &t, int64_t first, int64_t end, int32_t *largest) {
    by_strips(t, first, end, [&](int64_t r, int64_t from, int64_t to) {
        t.mean ? largest_terms(Terms<true>(t, r), largest, from, to) : largest_terms(Terms<false>(t, r), largest, from, to);
    });
}

void sums_of_columns(const LayerNorm &t, int64_t first, int64_t end, const float *factors, int64_t *sums) {
    by_strips(t, first, end, [&](int64_t r, int64_t from, int64_t to) {
        t.mean ? add_terms(Terms<true>(t, r), factors, sums, from, to)
               : add_terms(Terms<false>(t, r), factors, sums, from, to);
    });
}

void round_scaled_columns(const int64_t *sums, const double *scales, float *out, int64_t columns) {
    for (int64_t i = 0; i < columns; ++i)
        out[i] = round_scaled(sums[i], scales[i]);
}

void scale_columns(const int32_t *largest, float *factors, double *scales, int64_t columns) {
    for (int64_t i = 0; i < columns; ++i) {
        const RowScale s = row_scale(exponent_of(largest[i]), 30);
        factors[i] = s.mask ? s.factor : 0.0f;
        scales[i] = s.scale;
    }
}

// --- the optimiser --------------------------------------------------------------------------------------------------

void adamw(const Adam &a, int64_t first, int64_t end) {
    const float *__restrict p = a.p, *__restrict g = a.g, *__restrict m = a.m, *__restrict v = a.v;
    float *__restrict p_new = a.p_new, *__restrict m_new = a.m_new, *__restrict v_new = a.v_new;
    for (int64_t i = first; i < end; ++i) {
        const float mean = a.beta1 * m[i] + a.rest1 * g[i];
        const float square = a.beta2 * v[i] + a.rest2 * (g[i] * g[i]);
        const float direction = mean / (op_sqrt(square) + a.eps);
        p_new[i] = canonical(a.kept * p[i] - a.size * direction);
        m_new[i] = canonical(mean);
        v_new[i] = canonical(square);
    }
}

template <bool BUFFER, bool DECAYS, bool NESTEROV> void sgd_of(const Sgd &a, int64_t first, int64_t end) {
    const float *__restrict p = a.p, *__restrict g = a.g, *__restrict buffer = a.buffer;
    float *__restrict p_new = a.p_new, *__restrict buffer_new = a.buffer_new;
    for (int64_t i = first; i < end; ++i) {
        const float decayed = DECAYS ? g[i] + a.decay * p[i] : g[i];
        if (!BUFFER) {
            p_new[i] = canonical(p[i] - a.rate * decayed);
            continue;
        }
        const float next = a.momentum * buffer[i] + decayed;
        const float direction = NESTEROV ? decayed + a.momentum * next : next;
        p_new[i] = canonical(p[i] - a.rate * direction);
        buffer_new[i] = canonical(next);
    }
}

// Without decay nothing is added: g + 0 p would be NaN for an infinite p.
void sgd(const Sgd &a, int64_t first, int64_t end) {
    const bool decays = a.decays != 0;
    if (!a.buffer)
        decays ? sgd_of<false, true, false>(a, first, end) : sgd_of<false, false, false>(a, first, end);
    else if (a.nesterov)
        decays ? sgd_of<true, true, true>(a, first, end) : sgd_of<true, false, true>(a, first, end);
    else
        decays ? sgd_of<true, true, false>(a, first, end) : sgd_of<true, false, false>(a, first, end);
}

// --- recurrent layers -----------------------------------------------------------------------------------------------

void lstm_cell(const LstmCell &t, int64_t first, int64_t end) {
    const int64_t n = t.size;
    float block[BLOCK];
    for (int64_t row = first; row < end; ++row) {
        float *const gates = t.gates + row * 4 * n;
        for (int64_t part = 0; part < 4; ++part)
            for (int64_t start = part * n; start < (part + 1) * n; start += BLOCK) {
                const int64_t count = (part + 1) * n - start < BLOCK ? (part + 1) * n - start : BLOCK;
                const float *__restrict x = t.x + row * 4 * n + start;
                const float *__restrict product = t.product + row * 4 * n + start;
                for (int64_t k = 0; k < count; ++k) block[k] = canonical(x[k] + product[k]);
                part == 2 ? map_one<TANH>(nullptr, block, gates + start, count)
                          : map_one<SIGMOID>(nullptr, block, gates + start, count);
            }
        for (int64_t start = 0; start < n; start += BLOCK) {
            const int64_t count = n - start < BLOCK ? n - start : BLOCK;
            const float *__restrict i = gates + start, *__restrict f = i + n, *__restrict g = f + n, *__restrict o = g + n;
            const float *__restrict cell = t.cell + row * n + start;
            float *__restrict next = t.next + row * n + start, *__restrict h = t.hidden + row * n + start;
            for (int64_t k = 0; k < count; ++k) next[k] = canonical(f[k] * cell[k] + i[k] * g[k]);
            map_one<TANH>(nullptr, next, block, count);
            for (int64_t k = 0; k < count; ++k) h[k] = canonical(o[k] * block[k]);
        }
    }
}

void lstm_cell_grad(const LstmCellGrad &t, int64_t first, int64_t end) {
    const int64_t n = t.size;
    float block[BLOCK];
    for (int64_t row = first; row < end; ++row)
        for (int64_t start = 0; start < n; start += BLOCK) {
            const int64_t count = n - start < BLOCK ? n - start : BLOCK, at = row * n + start;
            const float *__restrict i = t.gates + row * 4 * n + start, *__restrict f = i + n, *__restrict g = f + n;
            const float *__restrict o = g + n, *__restrict before = t.before + at;
            const float *__restrict own_h = t.own_h + at, *__restrict later_h = t.later_h + at;
            const float *__restrict own_c = t.own_c + at, *__restrict later_c = t.later_c + at;
            float *__restrict raw = t.raw + row * 4 * n + start, *__restrict earlier_c = t.earlier_c + at;
            map_one<TANH>(nullptr, t.cell + at, block, count);
            for (int64_t k = 0; k < count; ++k) {
                const float dh = own_h[k] + later_h[k], y = block[k];
                const float dc = (own_c[k] + later_c[k]) + (dh * o[k]) * (1.0f - y * y);
                raw[k] = canonical((dc * g[k]) * (i[k] * (1.0f - i[k])));
                raw[n + k] = canonical((dc * before[k]) * (f[k] * (1.0f - f[k])));
                raw[2 * n + k] = canonical((dc * i[k]) * (1.0f - g[k] * g[k]));
                raw[3 * n + k] = canonical((dh * y) * (o[k] * (1.0f - o[k])));
                earlier_c[k] = canonical(dc * f[k]);
            }
        }
}

// --- attention ------------------------------------------------------------------------------------------------------

void change_row(const RowChange &c, float *__restrict x, int64_t n) {
    const float value = c.value;
    const float *__restrict table = static_cast<const float *>(c.data);
    const uint8_t *__restrict mask = static_cast<const uint8_t *>(c.data);
    const bool wanted = c.kind == ASSAY_FILL_TRUE;
    if (c.kind == ASSAY_TIMES)
        for (int64_t i = 0; i < n; ++i) x[i] *= value;
    else if (c.kind == ASSAY_OVER)
        for (int64_t i = 0; i < n; ++i) x[i] /= value;
    else if (c.kind == ASSAY_PLUS && c.stride == 1)
        for (int64_t i = 0; i < n; ++i) x[i] += table[i];
    else if (c.kind == ASSAY_PLUS)
        for (int64_t i = 0; i < n; ++i) x[i] += table[0];
    else if (c.stride == 1)
        for (int64_t i = 0; i < n; ++i) x[i] = (mask[i] != 0) == wanted ? value : x[i];
    else if ((mask[0] != 0) == wanted)
        for (int64_t i = 0; i < n; ++i) x[i] = value;
}

void drop_row(const float *__restrict keep, float kept, float *__restrict x, int64_t n) {
    for (int64_t i = 0; i < n; ++i) x[i] *= keep[i] * kept;
}

void largest_columns(const float *__restrict x, int32_t *__restrict largest, int64_t n) {
    for (int64_t i = 0; i < n; ++i) largest[i] = magnitude(x[i]) > largest[i] ? magnitude(x[i]) : largest[i];
}

int32_t largest_of_row(const float *x, int64_t stride, int64_t n) {
    int32_t largest = 0;
    if (stride == 1)
        for (int64_t i = 0; i < n; ++i) largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    else
        for (int64_t i = 0; i < n; ++i)
            largest = magnitude(x[i * stride]) > largest ? magnitude(x[i * stride]) : largest;
    return largest;
}

void integers(const float *__restrict x, const float *__restrict factor, const int32_t *__restrict mask,
              int32_t *__restrict out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = whole(x[i], factor[i]) & mask[i];
}

void canonical_all(float *x, int64_t count) {
    for (int64_t start = 0; start < count; start += 4 * BLOCK) {
        const int64_t n = count - start < 4 * BLOCK ? count - start : 4 * BLOCK;
        int32_t largest = 0;
        for (int64_t i = 0; i < n; ++i) largest = magnitude(x[start + i]) > largest ? magnitude(x[start + i]) : largest;
        if (largest > 0x7f800000)
            for (int64_t i = 0; i < n; ++i) x[start + i] = canonical(x[start + i]);
    }
}

}  // namespace

#define ASSAY_JOIN(a, b) a##b
#define ASSAY_FUSED(name) ASSAY_JOIN(FUSED_, name)
extern const Fused ASSAY_FUSED(ASSAY_VARIANT);
const Fused ASSAY_FUSED(ASSAY_VARIANT) = {
    map_any<>,          softmax,         softmax_grad,  sum_rows,      layer_norm, layer_norm_grad, log_softmax,
    log_softmax_grad,   largest_of_columns, sums_of_columns, round_scaled_columns, scale_columns, sgd,
    lstm_cell, lstm_cell_grad, adamw,
    pair_any<>,         select_any,      canonical_all,      change_row,      drop_row,      largest_columns, largest_of_row, integers};

}  // namespace assay
