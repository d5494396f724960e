// The instruction sets, fastest first: the `variant` of every call is an index into this list. Python finds
// the indices by name (assay_variant_name), and otherwise uses the order only to tell the fastest set in a
// warning.
#pragma once
#include <cstdint>

#include "channels.h"
#include "convolution.h"
#include "fused.h"
#include "lanes.h"
#include "slices.h"
#include "variant.h"

namespace assay {
namespace {

// Everything that one instruction set provides.
struct InstructionSet {
    const Variant &products;
    const Fused &fused;
    const Channels &channels;
    const Convolver &convolver;
    const Depthwise &depthwise;
    const Lanes &lanes;
    const Slices *slices = nullptr;  // if set, multiplies instead of `products`, which still serves convolutions

    const char *name() const { return slices ? slices->name : products.name; }
    bool supported() const { return products.supported() && (!slices || slices->supported()); }
};

constexpr InstructionSet SETS[] = {
    {AVX512VNNI, FUSED_AVX512VNNI, CHANNELS_AVX512VNNI, CONVOLVER_AVX512VNNI, DEPTHWISE_AVX512VNNI, LANES_AVX512VNNI, &AMX},
    {AVX512VNNI, FUSED_AVX512VNNI, CHANNELS_AVX512VNNI, CONVOLVER_AVX512VNNI, DEPTHWISE_AVX512VNNI, LANES_AVX512VNNI},
    {AVX2, FUSED_AVX2, CHANNELS_AVX2, CONVOLVER_AVX2, DEPTHWISE_AVX2, LANES_AVX2},
    {BASELINE, FUSED_BASELINE, CHANNELS_BASELINE, CONVOLVER_BASELINE, DEPTHWISE_BASELINE, LANES_BASELINE},
    {PORTABLE, FUSED_PORTABLE, CHANNELS_PORTABLE, CONVOLVER_PORTABLE, DEPTHWISE_PORTABLE, LANES_PORTABLE},
};
constexpr int32_t SET_COUNT = sizeof(SETS) / sizeof(SETS[0]);

}  // namespace
}  // namespace assay
