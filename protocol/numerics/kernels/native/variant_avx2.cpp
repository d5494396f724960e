// All kernels for processors with AVX2. On other architectures than x86-64, or if the compiler does not know
// the pragma, this is the baseline's code under another name, and `supported` returns false.
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#pragma GCC target("avx2")
#define ASSAY_AVX2
#endif

namespace assay {
namespace {
bool supported() {
#if defined(ASSAY_AVX2)
    return __builtin_cpu_supports("avx2");
#else
    return false;
#endif
}
}  // namespace
}  // namespace assay

#define ASSAY_VARIANT AVX2
#define ASSAY_NAME "avx2"
#include "variant_body.h"
#include "fused_body.h"
#include "convolution_body.h"
#include "depthwise_body.h"
#include "channels_body.h"
#include "lanes_body.h"
