// Messages between lanes for one instruction set; included by every variant_*.cpp after fused_body.h.
#include "lanes.h"

namespace assay {
namespace {

constexpr int BITS = 13, DROPPED = 6, POINT = BITS - DROPPED, LARGEST = 127, SCALE_LIMIT = 400, SUM_BITS = 30;

// v 2^(e - 7), rounded once; defined for any e.
inline float number_of(int32_t v, int32_t e) {
    const int32_t k = op_sub_i32(e, POINT);
    const int32_t bounded = k < -SCALE_LIMIT ? -SCALE_LIMIT : k > SCALE_LIMIT ? SCALE_LIMIT : k;
    return static_cast<float>(static_cast<double>(v) * double_power_of_two(bounded));
}

// The lowest index of the largest magnitude, or of the first NaN. Magnitudes order like their bits; NaN is
// canonical.
inline int64_t largest_place(const float *x, int64_t count) {
    int32_t largest = -1;
    for (int64_t i = 0; i < count; ++i) largest = magnitude(x[i]) > largest ? magnitude(x[i]) : largest;
    int64_t place = 0;
    while (magnitude(x[place]) != largest) ++place;
    return place;
}

void lane_emit(const Emit &t, int64_t first, int64_t end) {
    const int64_t size = SHARED * t.block;
    const float decay = t.decay;
    for (int64_t group = first; group < end; ++group) {
        const float *__restrict base = t.base + group * size, *__restrict local = t.local + group * size;
        const float *__restrict feedback = t.feedback + group * size;
        float *__restrict kept = t.kept + group * size;
        for (int64_t i = 0; i < size; ++i) kept[i] = canonical(decay * feedback[i] + (base[i] - local[i]));
        float values[SHARED];
        int64_t places[SHARED];
        for (int64_t k = 0; k < SHARED; ++k) {
            places[k] = k * t.block + (t.block > 1 ? largest_place(kept + k * t.block, t.block) : 0);
            values[k] = op_maximum(op_minimum(kept[places[k]], t.top), -t.top);
        }
        const int32_t e = exponent_of(largest_of_row(values, 1, SHARED));
        const RowScale s = row_scale(e, BITS);
        t.exponent[group] = e;
        for (int64_t k = 0; k < SHARED; ++k) {
            int32_t v = (integer(values[k], s) + (1 << (DROPPED - 1))) >> DROPPED;
            v = v < LARGEST ? v : LARGEST;
            t.value[group * SHARED + k] = static_cast<uint8_t>(v);
            if (t.block > 1) t.index[group * SHARED + k] = static_cast<uint8_t>(places[k] - k * t.block);
            kept[places[k]] = canonical(kept[places[k]] - number_of(v, e));
        }
    }
}

struct Group {
    float numbers[SHARED];
    const uint8_t *index;
};

inline void read(const Message &message, int64_t group, int32_t limit, Group &to) {
    const int32_t e = limit < message.exponent[group] ? limit : message.exponent[group];
    const uint8_t *value = message.value + group * SHARED;
    for (int64_t k = 0; k < SHARED; ++k) to.numbers[k] = number_of(static_cast<int8_t>(value[k]), e);
    to.index = message.index ? message.index + group * SHARED : nullptr;
}

constexpr int64_t PART = SHARED * 8;  // numbers whose sums are computed together

// base - rate (sum / divisor), for exact sums `sums` under the exponents of the largest magnitudes.
void move(const Absorb &t, const float *__restrict base, const int32_t *__restrict largest,
          const double *__restrict sums, float *__restrict moved, int64_t count) {
    const float rate = t.rate, divisor = t.divisor;
    for (int64_t i = 0; i < count; ++i) {
        const float sum = canonical(static_cast<float>(sums[i] * row_scale(exponent_of(largest[i]), SUM_BITS).scale));
        moved[i] = canonical(base[i] - canonical(rate * canonical(sum / divisor)));
    }
}

void lane_absorb(const Absorb &t, int64_t first, int64_t end) {
    const int64_t size = SHARED * t.block, blocks = t.block < 8 ? SHARED : PART / t.block, part = blocks * t.block;
    const auto back = [&t](float sent) { return canonical(t.returned * sent); };
    const float none_back = back(0.0f);
    Group own, inbox[MOST_LANES];
    alignas(64) int32_t largest[PART];
    alignas(64) double sums[PART];
    for (int64_t group = first; group < end; ++group) {
        read(t.own, group, t.limit, own);
        for (int32_t w = 0; w < t.messages; ++w) read(t.inbox[w], group, t.limit, inbox[w]);
        const float *__restrict base = t.base + group * size, *__restrict feedback = t.feedback + group * size;
        float *__restrict moved = t.moved + group * size, *__restrict kept = t.kept + group * size;
        const auto place = [&](const Group &g, int64_t k) { return g.index ? static_cast<int64_t>(g.index[k]) : 0; };
        for (int64_t i = 0; i < size; ++i) kept[i] = canonical(feedback[i] + none_back);
        for (int64_t k = 0; k < SHARED; ++k)
            if (place(own, k) < t.block) {
                const int64_t at = k * t.block + place(own, k);
                kept[at] = canonical(feedback[at] + back(own.numbers[k]));
            }
        for (int64_t k0 = 0; k0 < SHARED; k0 += blocks) {
            std::memset(largest, 0, sizeof(int32_t) * part);
            std::memset(sums, 0, sizeof(double) * part);
            const auto each = [&](const auto &run) {
                for (int32_t w = 0; w < t.messages; ++w)
                    for (int64_t k = k0; k < k0 + blocks; ++k)
                        if (place(inbox[w], k) < t.block)
                            run((k - k0) * t.block + place(inbox[w], k), inbox[w].numbers[k]);
            };
            each([&](int64_t at, float x) { largest[at] = magnitude(x) > largest[at] ? magnitude(x) : largest[at]; });
            each([&](int64_t at, float x) {
                const RowScale s = row_scale(exponent_of(largest[at]), SUM_BITS);
                sums[at] += s.mask ? static_cast<double>(op_rint(x * s.factor)) : 0.0;
            });
            move(t, base + k0 * t.block, largest, sums, moved + k0 * t.block, part);
        }
    }
}

}  // namespace

#define ASSAY_LANES(name) ASSAY_JOIN(LANES_, name)
extern const Lanes ASSAY_LANES(ASSAY_VARIANT);
const Lanes ASSAY_LANES(ASSAY_VARIANT) = {lane_emit, lane_absorb};

}  // namespace assay
