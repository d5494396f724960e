// All kernels without instructions of any specific set: the code that the baseline has on processors other
// than x86-64, which tests can thus run on x86-64 too.
namespace assay {
namespace {
bool supported() { return true; }
}  // namespace
}  // namespace assay

#define ASSAY_PORTABLE
#define ASSAY_VARIANT PORTABLE
#define ASSAY_NAME "portable"
#include "variant_body.h"
#include "fused_body.h"
#include "convolution_body.h"
#include "depthwise_body.h"
#include "channels_body.h"
#include "lanes_body.h"
