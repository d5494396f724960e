// Convolutions for Python: who quantises, packs and multiplies what, among OpenMP threads. No result depends on how.
#include "convolution_positions.h"
#include "convolution_weights.h"

extern "C" {

// 0, or 1 when out of memory.
__attribute__((visibility("default"))) int32_t assay_convolution(const AssayConvolution *p) {
    const bool done = p->kind == assay::AT_WEIGHT ? assay::Weights(*p).run() : assay::Positions(*p).run();
    return done ? 0 : 1;
}
}
