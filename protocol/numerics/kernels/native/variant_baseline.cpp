// All kernels for any processor of the target platform: SSE2 on x86-64, the compiler's choice elsewhere.
namespace assay {
namespace {
bool supported() { return true; }
}  // namespace
}  // namespace assay

#define ASSAY_VARIANT BASELINE
#define ASSAY_NAME "baseline"
#include "variant_body.h"
#include "fused_body.h"
#include "convolution_body.h"
#include "depthwise_body.h"
#include "channels_body.h"
#include "lanes_body.h"
