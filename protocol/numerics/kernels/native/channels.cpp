// Batch norm for Python: channels, or rows of them, divided among OpenMP threads. No result depends on the
// division.
#include "channels.h"

#include "divide.h"
#include "sets.h"

namespace assay {
namespace {

using Run = void (*)(const AssayChannels &, int64_t first, int64_t end);

// A channel has samples * size elements of work, a row has size elements.
void by_channel(Run run, const AssayChannels &t, int32_t threads) {
    divide(t.channels, SHARE / (t.samples * t.size), threads, [&](int64_t c, int64_t end) { run(t, c, end); });
}

void by_row(Run run, const AssayChannels &t, int32_t threads) {
    divide(t.samples * t.channels, SHARE / t.size, threads, [&](int64_t row, int64_t end) { run(t, row, end); });
}

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))
using assay::by_channel;
using assay::by_row;
using assay::SETS;

extern "C" {

// Writes mean, 1 / deviation and the variance used for the running variance to first, second and third.
ASSAY_EXPORT void assay_channel_statistics(int32_t variant, const AssayChannels *t, int32_t threads) {
    by_channel(SETS[variant].channels.statistics, *t, threads);
}

// Writes the sums of g and of g (x - mean) rstd to first and second.
ASSAY_EXPORT void assay_channel_sums(int32_t variant, const AssayChannels *t, int32_t threads) {
    by_channel(SETS[variant].channels.sums, *t, threads);
}

ASSAY_EXPORT void assay_channel_normalise(int32_t variant, const AssayChannels *t, int32_t threads) {
    by_row(SETS[variant].channels.normalise, *t, threads);
}

ASSAY_EXPORT void assay_channel_grad(int32_t variant, const AssayChannels *t, int32_t threads) {
    by_row(SETS[variant].channels.grad, *t, threads);
}
}
