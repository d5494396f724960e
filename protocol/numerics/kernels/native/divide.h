// Divides work into pieces for OpenMP's threads, each of which sets the processor's mode.
#pragma once
#include <cstdint>

#include "mode.h"

namespace assay {
namespace {

constexpr int64_t SHARE = 1 << 14;  // elements of a piece of work: 64 KiB of input and of output stay in cache

// Calls run(first, end) for pieces of 0 … total - 1 with at least `least` elements each (the last may have
// fewer).
template <class Run> void divide(int64_t total, int64_t least, int32_t threads, const Run &run) {
    const int64_t size = least < 1 ? 1 : least, pieces = (total + size - 1) / size;
#pragma omp parallel num_threads(threads) if (pieces > 1 && threads > 1)
    {
        const Mode mode;
#pragma omp for schedule(dynamic)
        for (int64_t i = 0; i < pieces; ++i) run(i * size, (i + 1) * size < total ? (i + 1) * size : total);
    }
}

}  // namespace
}  // namespace assay
