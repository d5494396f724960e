// All kernels for processors with AVX512VNNI. On other architectures than x86-64, or if the compiler does not
// know the pragma, this is the baseline's code under another name, and `supported` returns false.
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,prefer-vector-width=512")
#define ASSAY_AVX512VNNI
#endif

namespace assay {
namespace {
bool supported() {
#if defined(ASSAY_AVX512VNNI)
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
    return false;
#endif
}
}  // namespace
}  // namespace assay

#define ASSAY_VARIANT AVX512VNNI
#define ASSAY_NAME "avx512vnni"
#include "variant_body.h"
#include "fused_body.h"
#include "convolution_body.h"
#include "depthwise_body.h"
#include "channels_body.h"
#include "lanes_body.h"
