// Batch norm in the compiled library: the functions of protocol/program/library/batch_norm.py, channel by
// channel, so that repeated passes find a channel in the cache if it fits. x is [samples, channels, size];
// sums follow arithmetic.md section 5, the rest section 2. NaN results are canonical.
#pragma once
#include <cstdint>

extern "C" {

// Mirrored in channels.py. Pointers that a function does not use are null.
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
    // For channels first … end - 1.
    void (*statistics)(const AssayChannels &, int64_t first, int64_t end);
    void (*sums)(const AssayChannels &, int64_t first, int64_t end);
    // For rows of x, each one channel of one sample.
    void (*normalise)(const AssayChannels &, int64_t first, int64_t end);
    void (*grad)(const AssayChannels &, int64_t first, int64_t end);
};

extern const Channels CHANNELS_AVX512VNNI, CHANNELS_AVX2, CHANNELS_BASELINE, CHANNELS_PORTABLE;

}  // namespace assay
