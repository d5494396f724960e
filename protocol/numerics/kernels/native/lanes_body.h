// Messages between lanes for one instruction set; included by every variant_*.cpp after fused_body.h.
#include "lanes.h"

namespace assay {
namespace {

constexpr int BITS = 13, DROPPED = 6, POINT = BITS - DROPPED, LARGEST = 127, SCALE_LIMIT = 400;

// v 2^(e - 7), rounded once; of any e.
inline float number_of(int32_t v, int32_t e) {
    const int32_t k = op_sub_i32(e, POINT);
    const int32_t bounded = k < -SCALE_LIMIT ? -SCALE_LIMIT : k > SCALE_LIMIT ? SCALE_LIMIT : k;
    return static_cast<float>(static_cast<double>(v) * double_power_of_two(bounded));
}

// The lowest place of the largest magnitude, or of the first NaN: magnitudes order as their bits do, NaN is canonical.
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

void lane_absorb(const Absorb &t, int64_t first, int64_t end) {
    const int64_t size = SHARED * t.block;
    const auto step = [&t](float sum) { return canonical(t.rate * canonical(sum / t.divisor)); };
    const auto back = [&t](float sent) { return canonical(t.returned * sent); };
    const float nothing = step(0.0f), none_back = back(0.0f);
    Group own, inbox[MOST_LANES];
    float terms[MOST_LANES];
    for (int64_t group = first; group < end; ++group) {
        read(t.own, group, t.limit, own);
        for (int32_t w = 0; w < t.messages; ++w) read(t.inbox[w], group, t.limit, inbox[w]);
        const float *__restrict base = t.base + group * size, *__restrict feedback = t.feedback + group * size;
        float *__restrict moved = t.moved + group * size, *__restrict kept = t.kept + group * size;
        for (int64_t i = 0; i < size; ++i) moved[i] = canonical(base[i] - nothing);
        for (int64_t i = 0; i < size; ++i) kept[i] = canonical(feedback[i] + none_back);
        for (int64_t k = 0; k < SHARED; ++k) {
            const int64_t start = k * t.block;
            const auto place = [&](const Group &g) { return g.index ? static_cast<int64_t>(g.index[k]) : 0; };
            if (place(own) < t.block) {
                const int64_t at = start + place(own);
                kept[at] = canonical(feedback[at] + back(own.numbers[k]));
            }
            for (int32_t w = 0; w < t.messages; ++w) {
                const int64_t here = place(inbox[w]);
                bool earlier = here >= t.block;
                for (int32_t other = 0; other < w; ++other) earlier = earlier || place(inbox[other]) == here;
                if (earlier) continue;
                for (int32_t other = 0; other < t.messages; ++other)
                    terms[other] = place(inbox[other]) == here ? inbox[other].numbers[k] : 0.0f;
                moved[start + here] = canonical(base[start + here] - step(sum_of(terms, t.messages)));
            }
        }
    }
}

}  // namespace

#define ASSAY_LANES(name) ASSAY_JOIN(LANES_, name)
extern const Lanes ASSAY_LANES(ASSAY_VARIANT);
const Lanes ASSAY_LANES(ASSAY_VARIANT) = {lane_emit, lane_absorb};

}  // namespace assay
