// Convolutions for Python: who quantises, packs and multiplies what, among OpenMP threads. No result depends on how.
#include "convolution_depthwise.h"
#include "convolution_positions.h"
#include "convolution_weights.h"

namespace {

// Of the one kind or the other.
template <class Weights, class Positions> bool run(const AssayConvolution &p) {
    return p.kind == assay::AT_WEIGHT ? Weights(p).run() : Positions(p).run();
}

}  // namespace

extern "C" {

// 0, or 1 when out of memory.
__attribute__((visibility("default"))) int32_t assay_convolution(const AssayConvolution *p) {
    const bool done = assay::is_depthwise(*p) ? run<assay::DepthwiseWeights, assay::DepthwisePositions>(*p)
                                              : run<assay::Weights, assay::Positions>(*p);
    return done ? 0 : 1;
}
}
