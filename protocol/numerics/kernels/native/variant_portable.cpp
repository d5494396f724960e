// Products without an instruction of any set by name: what other processors run, kept under test on this one.
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
