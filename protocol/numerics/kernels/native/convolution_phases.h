// Results of a convolution, forward or at the input, in phases: the results of a phase use the same elements
// of the kernel.
#pragma once
#include "convolution_shared.h"

namespace assay {
namespace {

// An element of the kernel: its number, and for result (a, b), the offset of its image element from element
// (step a, step b).
struct Tap {
    int64_t number, y, x;
};

// Results whose columns have the same taps: forward all of them; at the input those with one remainder modulo
// the stride. The first phase has the largest extent along both axes.
struct Phase {
    std::vector<Tap> taps;
    std::vector<int64_t> numbers;
    int64_t down, across;          // results along both axes
    int64_t step_y, step_x;        // image steps from one result to the next
    int64_t out_step_y, out_step_x, out_y, out_x;
    int64_t pairs, chunks, left, norms;  // terms; offsets of its packed left operand and its norms
};

// x = step o - padding + k dilation for results x = step a + remainder: o = a + (remainder + padding - k dilation) / step.
Phase phase_at_input(const AssayConvolution &p, int64_t y, int64_t x) {
    Phase phase{{}, {}, up(p.height - y, p.stride[0]), up(p.width - x, p.stride[1]), 1, 1, p.stride[0], p.stride[1],
                y, x, 0, 0, 0, 0};
    for (int64_t ky = 0; ky < p.kernel[0]; ++ky)
        for (int64_t kx = 0; kx < p.kernel[1]; ++kx) {
            const int64_t dy = y + p.padding[0] - ky * p.dilation[0], dx = x + p.padding[1] - kx * p.dilation[1];
            const int64_t oy = floored(dy, p.stride[0]), ox = floored(dx, p.stride[1]);
            if (oy * p.stride[0] == dy && ox * p.stride[1] == dx)
                phase.taps.push_back({ky * p.kernel[1] + kx, oy, ox});
        }
    return phase;
}

// The phases of a convolution; for a weight gradient, those of the forward convolution.
std::vector<Phase> phases_of(const AssayConvolution &p) {
    std::vector<Phase> phases;
    if (p.kind != AT_INPUT) {
        Phase one{{}, {}, p.rows, p.columns, p.stride[0], p.stride[1], 1, 1, 0, 0, 0, 0, 0, 0};
        for (int64_t y = 0; y < p.kernel[0]; ++y)
            for (int64_t x = 0; x < p.kernel[1]; ++x)
                one.taps.push_back({y * p.kernel[1] + x, y * p.dilation[0] - p.padding[0],
                                    x * p.dilation[1] - p.padding[1]});
        phases.push_back(one);
    } else {
        for (int64_t y = 0; y < std::min(p.stride[0], p.height); ++y)
            for (int64_t x = 0; x < std::min(p.stride[1], p.width); ++x) phases.push_back(phase_at_input(p, y, x));
    }
    for (Phase &phase : phases)
        for (const Tap &tap : phase.taps) phase.numbers.push_back(tap.number);
    return phases;
}

}  // namespace
}  // namespace assay
