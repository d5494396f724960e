// Convolutions for Python: quantising, packing and multiplying are divided among OpenMP threads. No result
// depends on the division.
#include "convolution_depthwise.h"
#include "convolution_positions.h"
#include "convolution_weights.h"

namespace {

// Runs a weight gradient, or a convolution of one of the other two kinds.
template <class Weights, class Positions> bool run(const AssayConvolution &p) {
    return p.kind == assay::AT_WEIGHT ? Weights(p).run() : Positions(p).run();
}

}  // namespace

extern "C" {

// Returns 0, or 1 when out of memory.
__attribute__((visibility("default"))) int32_t assay_convolution(const AssayConvolution *p) {
    const bool done = assay::is_depthwise(*p) ? run<assay::DepthwiseWeights, assay::DepthwisePositions>(*p)
                                              : run<assay::Weights, assay::Positions>(*p);
    return done ? 0 : 1;
}
}
