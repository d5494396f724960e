// Functions of one instruction set for convolutions with one channel per group; included by every
// variant_*.cpp after convolution_body.h. Integers are float64 here: sums of their products stay below 2^53,
// so each sum is exact in any order. The channels are stored side by side, so that small images fill vectors
// as well as large ones.
#include "convolution.h"

namespace assay {
namespace {

#if defined(ASSAY_AVX512VNNI)
typedef double Vector __attribute__((vector_size(64), may_alias));
#elif defined(ASSAY_AVX2)
typedef double Vector __attribute__((vector_size(32), may_alias));
#elif defined(__x86_64__) && !defined(ASSAY_PORTABLE)
typedef double Vector __attribute__((vector_size(16), may_alias));
#else
typedef double Vector;
#endif

constexpr int PARTS = BESIDE * sizeof(double) / sizeof(Vector);
constexpr int ABREAST = 4;  // results, or elements of the kernel, with sums in registers at a time

inline const Vector *vectors(const double *from) { return reinterpret_cast<const Vector *>(from); }

template <int COUNT> inline void store(const Vector (&sums)[COUNT][PARTS], double *to) {
#pragma GCC unroll 4
    for (int k = 0; k < COUNT; ++k)
#pragma GCC unroll 8
        for (int v = 0; v < PARTS; ++v) reinterpret_cast<Vector *>(to)[k * PARTS + v] = sums[k][v];
}

void beside(const float *const *rows, int64_t count, const Scale *scales, double *to) {
    constexpr int64_t LONG = 16;
    alignas(64) float block[LONG][BESIDE], factor[BESIDE];
    alignas(64) int32_t mask[BESIDE];
    for (int c = 0; c < BESIDE; ++c) factor[c] = scales[c].factor, mask[c] = scales[c].mask;
    for (int64_t first = 0; first < count; first += LONG, to += LONG * BESIDE) {
        const int64_t length = count - first < LONG ? count - first : LONG;
        for (int c = 0; c < BESIDE; ++c)
            for (int64_t i = 0; i < length; ++i) block[i][c] = rows[c][first + i];
        for (int64_t i = 0; i < length; ++i)
            for (int c = 0; c < BESIDE; ++c)
                to[i * BESIDE + c] = integer(block[i][c], RowScale{factor[c], mask[c], 0.0});
    }
}

template <int COUNT> inline void depthwise_results(const Taps &taps, const double *image, int64_t step, double *to) {
    Vector sums[COUNT][PARTS] = {};
    for (int64_t t = 0; t < taps.count; ++t) {
        const Vector *const w = vectors(taps.weights + taps.numbers[t] * BESIDE), *const from = vectors(image + taps.places[t]);
#pragma GCC unroll 4
        for (int k = 0; k < COUNT; ++k)
#pragma GCC unroll 8
            for (int v = 0; v < PARTS; ++v) sums[k][v] += w[v] * from[k * step / BESIDE * PARTS + v];
    }
    store(sums, to);
}

void depthwise(const Taps &taps, const double *image, int64_t step, int64_t count, const Finish &finish,
               float *const *out, int64_t out_step) {
    alignas(64) double sums[ABREAST][BESIDE];
    for (int64_t i = 0; i < count; i += ABREAST, image += ABREAST * step) {
        const int length = static_cast<int>(count - i < ABREAST ? count - i : ABREAST);
        if (length == ABREAST)
            depthwise_results<ABREAST>(taps, image, step, sums[0]);
        else
            for (int k = 0; k < length; ++k) depthwise_results<1>(taps, image + k * step, step, sums[k]);
        for (int k = 0; k < length; ++k) {
            float rounded[BESIDE];
            for (int c = 0; c < BESIDE; ++c) rounded[c] = static_cast<float>(sums[k][c] * finish.row_scales[c] * finish.scale);
            if (finish.bias)
                for (int c = 0; c < BESIDE; ++c) rounded[c] = canonical(rounded[c] + finish.bias[c]);
            for (int c = 0; c < finish.channels; ++c) out[c][(i + k) * out_step] = rounded[c];
        }
    }
}

template <int COUNT>
inline void depthwise_sums(const double *g, const double *image, const int64_t *places, int64_t step, int64_t count,
                           double *to) {
    Vector sums[COUNT][PARTS];
#pragma GCC unroll 4
    for (int k = 0; k < COUNT; ++k)
#pragma GCC unroll 8
        for (int v = 0; v < PARTS; ++v) sums[k][v] = vectors(to)[k * PARTS + v];
    for (int64_t i = 0; i < count; ++i, g += BESIDE, image += step) {
#pragma GCC unroll 4
        for (int k = 0; k < COUNT; ++k) {
            const Vector *const from = vectors(image + places[k]);
#pragma GCC unroll 8
            for (int v = 0; v < PARTS; ++v) sums[k][v] += vectors(g)[v] * from[v];
        }
    }
    store(sums, to);
}

void depthwise_weights(const double *g, const double *image, const int64_t *places, int64_t taps, int64_t step,
                       int64_t count, double *sums) {
    int64_t t = 0;
    for (; t + ABREAST <= taps; t += ABREAST)
        depthwise_sums<ABREAST>(g, image, places + t, step, count, sums + t * BESIDE);
    for (; t < taps; ++t) depthwise_sums<1>(g, image, places + t, step, count, sums + t * BESIDE);
}

}  // namespace

#define ASSAY_DEPTHWISE(name) ASSAY_JOIN(DEPTHWISE_, name)
extern const Depthwise ASSAY_DEPTHWISE(ASSAY_VARIANT);
const Depthwise ASSAY_DEPTHWISE(ASSAY_VARIANT) = {beside, depthwise, depthwise_weights};

}  // namespace assay
