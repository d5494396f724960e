// Convolutions as exact products whose windows are never written out: arithmetic.md sections 3, 4 and 8; the functions
// of protocol/program/library/convolution.py. Operands are quantised once, as pairs of i16; panels of columns are copied
// straight from them, run by run, and multiplied by the tiles of products (variant.h). Mirrored in convolution.py.
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
    const float *bias;        // [groups * rows] of FORWARD, or null
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

// A power-of-two scale and how to get there: RowScale of variant_body.h, for callers outside a variant.
struct Scale {
    float factor;
    int32_t mask;
    double back;
};

// A part of a pair of terms, from `to` on in a panel: `length` pairs of i16 that lie `step` apart. Zeros where `plane`,
// the distance to the same part of the next pair of terms, is 0.
struct Part {
    const uint32_t *from;
    int64_t plane;
    int32_t to, length;
};

// What an instruction set provides beside its products.
struct Convolver {
    int32_t (*largest)(const float *x, int64_t count);  // magnitude, as bits
    void (*raise)(const float *x, int64_t count, int32_t *largest);  // each one's magnitude, onto the largest so far
    Scale (*scale)(int32_t largest, int bits);
    // Plane `plane` of `planes`, 0 or 1, of two rows of the same scale, side by side; `high` null: zeros.
    void (*pairs)(const float *low, const float *high, int64_t count, const Scale &, int planes, int plane,
                  uint32_t *out);
    // Weights into a panel of 12 rows: [taps][pairs of channels][12]; element (row, channel, tap) lies at
    // w[row * row_stride + channel * channel_stride + taps[tap]]. The planes h and l, or with `low` null the only one.
    // `sums` [12]: of each row's terms of plane l.
    void (*weights)(const float *w, int64_t row_stride, int64_t channel_stride, int64_t channels, const int64_t *taps,
                    int64_t tap_count, const Scale *scales, int inside, uint32_t *out, uint32_t *low,
                    int32_t *sums);
    // The plane h + l out of those of h and l.
    void (*added)(const uint32_t *high, const uint32_t *low, int64_t count, uint32_t *out);
    // `count` pairs of terms of a panel of 32 columns; may write three beyond each part and read as much.
    void (*columns)(const Part *parts, int part_count, int64_t step, int64_t count, uint32_t *out);
    // to[i step] = from[i]; nothing between them is touched.
    void (*spread)(const float *from, int64_t count, int64_t step, float *to);
    void (*norms)(const uint32_t *panel, int width, int64_t pairs, float *out);  // by chunk: see variant.h
    // Plane l of a panel, |l| <= 64, as bytes l + offset: [up(pairs, 2)][width][4].
    void (*bytes)(const uint32_t *panel, int width, int64_t pairs, int offset, uint32_t *out);
    // c[12][32] = start[row] + the product of that many quads of bytes, signed ones of x and unsigned ones of y; of
    // the first `rows` rows at least. Null where pairs of i16 are not slower.
    void (*byte_tile)(int64_t quads, const uint32_t *x, const uint32_t *y, const int32_t *start, int rows, int32_t *c);
};

constexpr int BESIDE = 8;  // channels that lie side by side in convolutions of one channel a group

// Elements of the kernel: where each one's image lies beside that of a result, and which of the weights are its own.
struct Taps {
    const int64_t *places, *numbers;
    const double *weights;  // [kernel][BESIDE]
    int64_t count;
};

// How sums become results: by each channel's scale, then by all channels', then a bias [BESIDE] if any.
struct Finish {
    const double *row_scales;  // [BESIDE]
    double scale;
    const float *bias;
    int channels;              // of BESIDE
};

// What an instruction set provides for convolutions of one channel a group. Images are [positions][BESIDE], integers as
// float64; steps count float64.
struct Depthwise {
    // `count` elements of each channel's row as integers, side by side.
    void (*beside)(const float *const *rows, int64_t count, const Scale *scales, double *to);
    // out[c][i out_step]: result i of channel c, from taps of the image at i step.
    void (*results)(const Taps &, const double *image, int64_t step, int64_t count, const Finish &, float *const *out,
                    int64_t out_step);
    // sums[t] += g[i] image[places[t] + i step] over `count` results i.
    void (*weights)(const double *g, const double *image, const int64_t *places, int64_t taps, int64_t step,
                    int64_t count, double *sums);
};

extern const Depthwise DEPTHWISE_AVX512VNNI, DEPTHWISE_AVX2, DEPTHWISE_BASELINE, DEPTHWISE_PORTABLE;
extern const Convolver CONVOLVER_AVX512VNNI, CONVOLVER_AVX2, CONVOLVER_BASELINE, CONVOLVER_PORTABLE;

}  // namespace assay
