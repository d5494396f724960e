// Convolutions as exact products whose windows are never materialised: arithmetic.md sections 3, 4 and 8; the
// functions of protocol/program/library/convolution.py. Operands are quantised once, as pairs of i16 (with
// one channel per group, as float64). Panels of columns are copied directly from them, run by run, and
// multiplied by the tiles of products (variant.h). Mirrored in convolution.py.
//
// | kind        | left, rows            | image, columns                         | pairs of terms                    |
// |-------------|-----------------------|----------------------------------------|-----------------------------------|
// | FORWARD     | w, output channels    | x, positions of the result             | kernel element, two channels      |
// | AT_INPUT    | w, input channels     | g, positions of x by remainder         | kernel element, two channels of g |
// | AT_WEIGHT   | g, output channels    | x, kernel element and channel          | position of g, two samples        |
#pragma once
#include <cstdint>

extern "C" {

struct AssayConvolution {
    const float *left, *image;
    const float *bias;        // [groups * outputs] of FORWARD, or null
    float *out;
    int64_t samples, groups;
    int64_t inputs, outputs;  // channels of x and of g in a group
    int64_t height, width;    // of x
    int64_t rows, columns;    // of g
    int64_t kernel[2], stride[2], padding[2], dilation[2];  // along the height and the width
    int32_t kind;
    int32_t left_bits, image_bits;  // 13 or 20
    int32_t variant;          // which instruction set, as numbered by assay_variant_name
    int32_t threads;
};
}

namespace assay {

enum Kind : int32_t { FORWARD, AT_INPUT, AT_WEIGHT };

// A power-of-two scale, its factor and mask: RowScale of quantise.h, for callers outside a variant.
struct Scale {
    float factor;
    int32_t mask;
    double back;
};

// A part of a pair of terms, starting at `to` in a panel: `length` pairs of i16, `step` apart. `plane` is the
// distance to the same part of the next pair of terms; if it is 0, the part is zeros.
struct Part {
    const uint32_t *from;
    int64_t plane;
    int32_t to, length;
};

// Functions of an instruction set for convolutions, in addition to its products.
struct Convolver {
    int32_t (*largest)(const float *x, int64_t count);  // magnitude, as bits
    void (*raise)(const float *x, int64_t count, int32_t *largest);  // merges magnitudes into the largest so far
    Scale (*scale)(int32_t largest, int bits);
    // Plane `plane` (0 or 1) of `planes`, for two rows with the same scale, as pairs. If `high` is null,
    // zeros.
    void (*pairs)(const float *low, const float *high, int64_t count, const Scale &, int planes, int plane,
                  uint32_t *out);
    // Packs weights into a panel of 12 rows: [taps][pairs of channels][12]. Element (row, channel, tap) is at
    // w[row * row_stride + channel * channel_stride + taps[tap]]. Writes the planes h and l, or with `low`
    // null the only plane. `sums` [12] are the sums of each row's terms of plane l.
    void (*weights)(const float *w, int64_t row_stride, int64_t channel_stride, int64_t channels, const int64_t *taps,
                    int64_t tap_count, const Scale *scales, int inside, uint32_t *out, uint32_t *low,
                    int32_t *sums);
    // The plane h + l from those of h and l.
    void (*added)(const uint32_t *high, const uint32_t *low, int64_t count, uint32_t *out);
    // Packs `count` pairs of terms of a panel of 32 columns; may read and write up to three elements beyond
    // each part.
    void (*columns)(const Part *parts, int part_count, int64_t step, int64_t count, uint32_t *out);
    // to[i step] = from[i]; elements between them are not touched.
    void (*spread)(const float *from, int64_t count, int64_t step, float *to);
    void (*norms)(const uint32_t *panel, int width, int64_t pairs, float *out);  // by chunk: see variant.h
    // Plane l of a panel, |l| <= 64, as bytes l + offset: [up(pairs, 2)][width][4].
    void (*bytes)(const uint32_t *panel, int width, int64_t pairs, int offset, uint32_t *out);
    // c[12][32] = start[row] + the product of `quads` quads of bytes, signed for x and unsigned for y, for at
    // least the first `rows` rows. Null if pairs of i16 are not slower.
    void (*byte_tile)(int64_t quads, const uint32_t *x, const uint32_t *y, const int32_t *start, int rows, int32_t *c);
};

constexpr int BESIDE = 8;  // channels stored side by side in convolutions with one channel per group

// Elements of the kernel: the offset of each one's image from that of a result, and the index of its weight.
struct Taps {
    const int64_t *places, *numbers;
    const double *weights;  // [kernel][BESIDE]
    int64_t count;
};

// How sums become results: multiplied by each channel's scale, then by a common scale, plus an optional bias
// [BESIDE].
struct Finish {
    const double *row_scales;  // [BESIDE]
    double scale;
    const float *bias;
    int channels;              // of BESIDE
};

// Functions of an instruction set for convolutions with one channel per group. Images are
// [positions][BESIDE], integers as float64; steps are counted in float64.
struct Depthwise {
    // Converts `count` elements of each channel's row to integers, side by side.
    void (*beside)(const float *const *rows, int64_t count, const Scale *scales, double *to);
    // out[c][i out_step] is result i of channel c, from taps of the image at i step.
    void (*results)(const Taps &, const double *image, int64_t step, int64_t count, const Finish &, float *const *out,
                    int64_t out_step);
    // sums[t] += g[i] image[places[t] + i step] over `count` results i.
    void (*weights)(const double *g, const double *image, const int64_t *places, int64_t taps, int64_t step,
                    int64_t count, double *sums);
};

extern const Depthwise DEPTHWISE_AVX512VNNI, DEPTHWISE_AVX2, DEPTHWISE_BASELINE, DEPTHWISE_PORTABLE;
extern const Convolver CONVOLVER_AVX512VNNI, CONVOLVER_AVX2, CONVOLVER_BASELINE, CONVOLVER_PORTABLE;

}  // namespace assay
