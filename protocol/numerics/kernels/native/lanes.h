// Messages between machines that train one model: protocol/program/library/lanes.py. lanes.cpp divides groups
// among threads; a group is 64 blocks, whose numbers share one exponent in a message.
#pragma once
#include <cstdint>

namespace assay {

constexpr int64_t SHARED = 64;  // blocks of a group
constexpr int32_t MOST_LANES = 16;

struct Emit {
    const float *base, *local, *feedback;  // [groups * SHARED * block]
    uint8_t *index, *value;                // [groups * SHARED]; no index where block is 1
    int32_t *exponent;                     // [groups]
    float *kept;                           // the next feedback
    int64_t block;
    float decay, top;
};

struct Message {
    const uint8_t *index, *value;
    const int32_t *exponent;
};

struct Absorb {
    const float *base, *feedback;
    Message own, inbox[MOST_LANES];
    float *moved, *kept;
    int64_t block;
    int32_t messages, limit;
    float rate, divisor, returned;
};

// Both process groups first … end - 1.
struct Lanes {
    void (*emit)(const Emit &, int64_t first, int64_t end);
    void (*absorb)(const Absorb &, int64_t first, int64_t end);
};

extern const Lanes LANES_AVX512VNNI, LANES_AVX2, LANES_BASELINE, LANES_PORTABLE;

}  // namespace assay
