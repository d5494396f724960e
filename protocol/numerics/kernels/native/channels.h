// Batch norm in the compiled library: the functions of protocol/program/library/batch_norm.py, a channel read from memory
// once. x is [samples, channels, size]; sums by arithmetic.md section 5, the rest by section 2. NaN comes out canonical.
#pragma once
#include <cstdint>

extern "C" {

// Mirrored in channels.py. What a function does not take is null.
struct AssayChannels {
    const float *g, *x;                                       // [samples, channels, size]
    const float *mean, *rstd, *gain, *bias, *total, *along;   // [channels]
    float *y;                                                 // as x
    float *first, *second, *third;                            // [channels]
    int64_t samples, channels, size;
    float eps;
};
}

namespace assay {

struct Channels {
    // Channels first … end - 1.
    void (*statistics)(const AssayChannels &, int64_t first, int64_t end);
    void (*sums)(const AssayChannels &, int64_t first, int64_t end);
    // Rows of x: sample and channel.
    void (*normalise)(const AssayChannels &, int64_t first, int64_t end);
    void (*grad)(const AssayChannels &, int64_t first, int64_t end);
};

extern const Channels CHANNELS_AVX512VNNI, CHANNELS_AVX2, CHANNELS_BASELINE, CHANNELS_PORTABLE;

}  // namespace assay
