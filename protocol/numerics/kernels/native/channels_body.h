// Batch norm for one instruction set; included by every variant_*.cpp after fused_body.h.
#include "channels.h"

namespace assay {
namespace {

// The largest magnitude, and the fixed-point sum, of the `count` terms `term(i)` of a row.
template <class Term> int32_t largest_term(int64_t count, const Term &term) {
    int32_t largest = 0;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t m = magnitude(term(i));
        largest = m > largest ? m : largest;
    }
    return largest;
}

template <class Term> int64_t sum_of_terms(int64_t count, const RowScale &s, const Term &term) {
    int64_t sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += fixed30(term(i), s);
    return sum;
}

// The sum of a channel over all samples. `at(row)` returns the function that maps an element's index to its
// term.
template <class At> float channel_sum(const AssayChannels &t, int64_t c, const At &at) {
    int32_t largest = 0;
    for (int64_t n = 0; n < t.samples; ++n) {
        const int32_t m = largest_term(t.size, at((n * t.channels + c) * t.size));
        largest = m > largest ? m : largest;
    }
    const RowScale s = row_scale(exponent_of(largest), 30);
    if (!s.mask) return float_of(0x7fc00000u);
    int64_t sum = 0;
    for (int64_t n = 0; n < t.samples; ++n) sum += sum_of_terms(t.size, s, at((n * t.channels + c) * t.size));
    return round_scaled(sum, s.scale);
}

void channel_statistics(const AssayChannels &t, int64_t first, int64_t end) {
    const int64_t count = t.samples * t.size;
    for (int64_t c = first; c < end; ++c) {
        const float total = channel_sum(t, c, [&](int64_t row) {
            const float *x = t.x + row;
            return [x](int64_t i) { return x[i]; };
        });
        const float mean = canonical(total / static_cast<float>(count));
        const float squares = channel_sum(t, c, [&](int64_t row) {
            const float *x = t.x + row;
            return [x, mean](int64_t i) {
                const float centred = x[i] - mean;
                return centred * centred;
            };
        });
        t.first[c] = mean;
        t.second[c] = canonical(1.0f / canonical(op_sqrt(squares / static_cast<float>(count) + t.eps)));
        t.third[c] = canonical(squares / static_cast<float>(count - 1));
    }
}

void channel_sums(const AssayChannels &t, int64_t first, int64_t end) {
    for (int64_t c = first; c < end; ++c) {
        const float mean = t.mean[c], rstd = t.rstd[c];
        t.first[c] = channel_sum(t, c, [&](int64_t row) {
            const float *g = t.g + row;
            return [g](int64_t i) { return g[i]; };
        });
        t.second[c] = channel_sum(t, c, [&](int64_t row) {
            const float *g = t.g + row, *x = t.x + row;
            return [g, x, mean, rstd](int64_t i) { return g[i] * ((x[i] - mean) * rstd); };
        });
    }
}

void channel_normalise(const AssayChannels &t, int64_t first, int64_t end) {
    for (int64_t row = first; row < end; ++row) {
        const int64_t c = row % t.channels;
        const float mean = t.mean[c], rstd = t.rstd[c];
        const float *__restrict x = t.x + row * t.size;
        float *__restrict y = t.y + row * t.size;
        if (!t.gain) {
            for (int64_t i = 0; i < t.size; ++i) y[i] = canonical((x[i] - mean) * rstd);
            continue;
        }
        const float gain = t.gain[c];
        if (!t.bias) {
            for (int64_t i = 0; i < t.size; ++i) y[i] = canonical(((x[i] - mean) * rstd) * gain);
            continue;
        }
        const float bias = t.bias[c];
        for (int64_t i = 0; i < t.size; ++i) y[i] = canonical(((x[i] - mean) * rstd) * gain + bias);
    }
}

void channel_grad(const AssayChannels &t, int64_t first, int64_t end) {
    const float count = static_cast<float>(t.samples * t.size);
    for (int64_t row = first; row < end; ++row) {
        const int64_t c = row % t.channels;
        const float mean = t.mean[c], rstd = t.rstd[c], total = t.total[c] / count, along = t.along[c] / count;
        const float slope = t.gain ? rstd * t.gain[c] : rstd;
        const float *__restrict g = t.g + row * t.size, *__restrict x = t.x + row * t.size;
        float *__restrict y = t.y + row * t.size;
        for (int64_t i = 0; i < t.size; ++i)
            y[i] = canonical(((g[i] - total) - ((x[i] - mean) * rstd) * along) * slope);
    }
}

}  // namespace

#define ASSAY_CHANNELS(name) ASSAY_JOIN(CHANNELS_, name)
extern const Channels ASSAY_CHANNELS(ASSAY_VARIANT);
const Channels ASSAY_CHANNELS(ASSAY_VARIANT) = {channel_statistics, channel_sums, channel_normalise, channel_grad};

}  // namespace assay
