// Batch norm for Python: channels, or rows of them, divided among OpenMP threads. No result depends on how.
#include "channels.h"

#include "mode.h"

namespace assay {
namespace {

const Channels *const CHANNELS[] = {&CHANNELS_AVX512VNNI, &CHANNELS_AVX2, &CHANNELS_BASELINE, &CHANNELS_PORTABLE};
constexpr int64_t SHARE = 1 << 14;  // elements of a piece of work: 64 KiB in and out stay in cache

void divide(void (*run)(const AssayChannels &, int64_t, int64_t), const AssayChannels &t, int64_t total, int64_t least,
            int32_t threads) {
    const int64_t size = least < 1 ? 1 : least, pieces = (total + size - 1) / size;
#pragma omp parallel num_threads(threads) if (pieces > 1 && threads > 1)
    {
        const Mode mode;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < pieces; ++i) run(t, i * size, (i + 1) * size < total ? (i + 1) * size : total);
    }
}

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))

extern "C" {

// Into first, second, third: mean, 1 / deviation, the variance that is followed.
ASSAY_EXPORT void assay_channel_statistics(int32_t variant, const AssayChannels *t, int32_t threads) {
    assay::divide(assay::CHANNELS[variant]->statistics, *t, t->channels, assay::SHARE / (t->samples * t->size), threads);
}

// Into first and second: sums of g and of g (x - mean) rstd.
ASSAY_EXPORT void assay_channel_sums(int32_t variant, const AssayChannels *t, int32_t threads) {
    assay::divide(assay::CHANNELS[variant]->sums, *t, t->channels, assay::SHARE / (t->samples * t->size), threads);
}

ASSAY_EXPORT void assay_channel_normalise(int32_t variant, const AssayChannels *t, int32_t threads) {
    assay::divide(assay::CHANNELS[variant]->normalise, *t, t->samples * t->channels, assay::SHARE / t->size, threads);
}

ASSAY_EXPORT void assay_channel_grad(int32_t variant, const AssayChannels *t, int32_t threads) {
    assay::divide(assay::CHANNELS[variant]->grad, *t, t->samples * t->channels, assay::SHARE / t->size, threads);
}
}
