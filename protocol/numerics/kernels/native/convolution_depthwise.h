// Convolutions with one channel per group, of all three kinds. BESIDE channels at a time are quantised into a
// slab of rows, padded so that every element of the kernel reads an integer, and summed there.
#pragma once
#include "convolution_phases.h"

namespace assay {
namespace {

constexpr int64_t SLAB = 32;  // rows of a phase's results whose image is in memory at a time
constexpr int64_t REACH = 64; // elements from the first of a window to its last: a slab's memory grows with it
constexpr int64_t MOST_PLACES = 1 << 18;  // positions of a thread's slabs, BESIDE float64 each: 16 MiB
constexpr int64_t RUN = 32;   // results whose products are added to a weight's sums at a time

// Number of products whose sum stays below 2^51: float64 adds them exactly, and larger sums are rounded
// differently.
inline int64_t most_products(const AssayConvolution &p) { return int64_t(1) << (51 - p.left_bits - p.image_bits); }

inline int64_t reach_of(const AssayConvolution &p, int axis) { return (p.kernel[axis] - 1) * p.dilation[axis]; }

// Whether a thread's slabs have at most MOST_PLACES positions: strides and padding may have any size. The same
// bound as `_places` of convolution_shape_classes.py, of which a Slab never has more.
inline bool is_small(const AssayConvolution &p) {
    int64_t rows, width, others = 0;
    if (p.kind == AT_INPUT) {
        const int64_t step = p.stride[1], before = reach_of(p, 1) - p.padding[1];
        rows = std::min(SLAB, up(p.height, p.stride[0])) + reach_of(p, 0) / p.stride[0] + 1;
        width = std::max(p.columns, up(p.padding[1], step) + up(p.width, step)) + (before > 0 ? up(before, step) : 0);
    } else {
        rows = (std::min(SLAB, p.rows) - 1) * p.stride[0] + reach_of(p, 0) + 1;
        width = std::max(p.width + p.padding[1], (p.columns - 1) * p.stride[1] + reach_of(p, 1) + 1);
        if (p.kind == AT_WEIGHT) others = std::min(SLAB, p.rows) * p.columns;
    }
    return rows <= MOST_PLACES && width <= MOST_PLACES && rows * width + others <= MOST_PLACES;
}

inline bool is_depthwise(const AssayConvolution &p) {
    const bool is_exact = p.kernel[0] * p.kernel[1] <= most_products(p);
    const bool is_near = reach_of(p, 0) <= REACH && reach_of(p, 1) <= REACH;
    return p.inputs == 1 && p.outputs == 1 && is_exact && is_near && is_small(p);
}

// The rows of an image that a slab of results reads, with zeros outside the image.
struct Slab {
    int64_t image_height, image_width, channels;
    int64_t first_y, span, step_y;  // result row a reads `span` image rows from step_y a + first_y on
    int64_t left, width, count;     // zeros before the image; whole width; rows

    Slab(const std::vector<Phase> &phases, int64_t height, int64_t width, int64_t channels)
        : image_height(height), image_width(width), channels(channels), step_y(phases[0].step_y) {
        int64_t low_y = 0, high_y = 0, low_x = 0, high_x = width - 1, down = 1;
        bool any = false;
        for (const Phase &phase : phases) {
            down = std::max(down, phase.down);
            for (const Tap &tap : phase.taps) {
                low_y = any ? std::min(low_y, tap.y) : tap.y, high_y = any ? std::max(high_y, tap.y) : tap.y;
                low_x = std::min(low_x, tap.x), high_x = std::max(high_x, tap.x + (phase.across - 1) * phase.step_x);
                any = true;
            }
        }
        first_y = low_y, span = high_y - low_y + 1;
        left = -low_x, this->width = left + high_x + 1;
        count = (std::min(SLAB, down) - 1) * step_y + span;
    }

    int64_t size() const { return count * width * BESIDE; }
    int64_t row() const { return width * BESIDE; }
    int64_t place(const Tap &tap) const { return ((tap.y - first_y) * width + tap.x + left) * BESIDE; }

    // Fills in what `rows` rows of results from `a` on read, in channels 8 block … of a sample.
    void fill(const Depthwise &set, const float *sample, int64_t block, int64_t a, int64_t rows, const Scale *scales,
              double *to) const {
        const float *from[BESIDE];
        to += left * BESIDE;
        for (int64_t y = a * step_y + first_y, end = y + (rows - 1) * step_y + span; y < end; ++y, to += row()) {
            if (y < 0 || y >= image_height) {
                std::memset(to, 0, sizeof(double) * image_width * BESIDE);
                continue;
            }
            for (int64_t c = 0; c < BESIDE; ++c) {  // scales are 0 beyond the last channel
                const int64_t channel = std::min(block * BESIDE + c, channels - 1);
                from[c] = sample + (channel * image_height + y) * image_width;
            }
            set.beside(from, image_width, scales, to);
        }
    }
};

std::vector<int64_t> places_of(const Phase &phase, const Slab &slab) {
    std::vector<int64_t> places;
    for (const Tap &tap : phase.taps) places.push_back(slab.place(tap));
    return places;
}

struct DepthwisePositions {
    const AssayConvolution &p;
    const Set set;
    const std::vector<Phase> phases;
    const int64_t blocks, kernel;
    const int64_t height, width, out_height, out_width;  // of the image and of the result
    const Slab slab;
    std::vector<std::vector<int64_t>> places;  // of each phase

    explicit DepthwisePositions(const AssayConvolution &p)
        : p(p), set(set_of(p.variant)), phases(phases_of(p)), blocks(up(p.groups, BESIDE)),
          kernel(p.kernel[0] * p.kernel[1]), height(p.kind == FORWARD ? p.height : p.rows),
          width(p.kind == FORWARD ? p.width : p.columns), out_height(p.kind == FORWARD ? p.rows : p.height),
          out_width(p.kind == FORWARD ? p.columns : p.width), slab(phases, height, width, p.groups) {
        for (const Phase &phase : phases) places.push_back(places_of(phase, slab));
    }

    bool run() const {
        const Buffer<double> weights(blocks * kernel * BESIDE), row_scales(blocks * BESIDE);
        const Buffer<Scale> scales(p.samples);
        if (!weights || !row_scales || !scales) return false;
        bool enough = true;
#pragma omp parallel num_threads(p.threads)
        {
            const Mode mode;
#pragma omp for schedule(dynamic) nowait
            for (int64_t n = 0; n < p.samples; ++n)
                scales[n] = set.own.scale(set.own.largest(sample(n), p.groups * height * width), p.image_bits);
#pragma omp for schedule(dynamic)
            for (int64_t block = 0; block < blocks; ++block) quantise_weights(block, weights, row_scales);
            const Buffer<double> image(slab.size());
            if (image)
                std::memset(image, 0, sizeof(double) * slab.size());
            else {
#pragma omp atomic write
                enough = false;
            }
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < p.samples * blocks; ++t)
                if (image) convolve(t / blocks, t % blocks, weights, row_scales, scales[t / blocks], image);
        }
        return enough;
    }

    const float *sample(int64_t n) const { return p.image + n * p.groups * height * width; }

    void quantise_weights(int64_t block, double *weights, double *row_scales) const {
        const float *rows[BESIDE];
        Scale scales[BESIDE];
        for (int64_t c = 0; c < BESIDE; ++c) {
            const int64_t channel = block * BESIDE + c;
            rows[c] = p.left + std::min(channel, p.groups - 1) * kernel;
            scales[c] = channel < p.groups ? set.own.scale(set.own.largest(rows[c], kernel), p.left_bits) : Scale{0.0f, 0, 0.0};
            row_scales[channel] = scales[c].back;
        }
        set.depthwise.beside(rows, kernel, scales, weights + block * kernel * BESIDE);
    }

    void convolve(int64_t n, int64_t block, const double *weights, const double *row_scales, const Scale &scale,
                  double *image) const {
        const int64_t channels = std::min<int64_t>(BESIDE, p.groups - block * BESIDE);
        Scale scales[BESIDE];
        float bias[BESIDE] = {0};
        for (int64_t c = 0; c < BESIDE; ++c) scales[c] = c < channels ? scale : Scale{0.0f, 0, 0.0};
        for (int64_t c = 0; p.bias && c < channels; ++c) bias[c] = p.bias[block * BESIDE + c];
        const Finish finish{row_scales + block * BESIDE, scale.back, p.bias ? bias : nullptr, static_cast<int>(channels)};
        float *const out = p.out + (n * p.groups + block * BESIDE) * out_height * out_width;
        for (int64_t first = 0; first < phases[0].down; first += SLAB) {
            slab.fill(set.depthwise, sample(n), block, first, std::min(SLAB, phases[0].down - first), scales, image);
            for (size_t k = 0; k < phases.size(); ++k)
                results(k, first, weights + block * kernel * BESIDE, image, finish, out);
        }
    }

    // Rows `first` … of phase k, as many as the slab holds.
    void results(size_t k, int64_t first, const double *weights, const double *image, const Finish &finish,
                 float *out) const {
        const Phase &phase = phases[k];
        const Taps taps{places[k].data(), phase.numbers.data(), weights, static_cast<int64_t>(places[k].size())};
        for (int64_t a = first; a < std::min(first + SLAB, phase.down); ++a) {
            float *to[BESIDE];
            for (int64_t c = 0; c < BESIDE; ++c)
                to[c] = out + (c * out_height + a * phase.out_step_y + phase.out_y) * out_width + phase.out_x;
            set.depthwise.results(taps, image + (a - first) * slab.step_y * slab.row(), phase.step_x * BESIDE,
                                  phase.across, finish, to, phase.out_step_x);
        }
    }
};

struct DepthwiseWeights {
    const AssayConvolution &p;
    const Set set;
    const std::vector<Phase> phases;
    const int64_t blocks, kernel;
    const Slab x, g;
    const std::vector<int64_t> places;

    explicit DepthwiseWeights(const AssayConvolution &p)
        : p(p), set(set_of(p.variant)), phases(phases_of(p)), blocks(up(p.groups, BESIDE)),
          kernel(p.kernel[0] * p.kernel[1]), x(phases, p.height, p.width, p.groups),
          g({Phase{{{0, 0, 0}}, {}, p.rows, p.columns, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0}}, p.rows, p.columns, p.groups),
          places(places_of(phases[0], x)) {}

    bool run() const {
        const int64_t shares = std::max<int64_t>(1, std::min(p.samples, up(4 * p.threads, blocks)));
        const Buffer<int64_t> sums(blocks * shares * kernel * BESIDE);
        const Buffer<Scale> scales_x(blocks * BESIDE), scales_g(blocks * BESIDE);
        if (!sums || !scales_x || !scales_g) return false;
        bool enough = true;
#pragma omp parallel num_threads(p.threads)
        {
            const Mode mode;
#pragma omp for schedule(dynamic)
            for (int64_t c = 0; c < blocks * BESIDE; ++c) {
                scales_x[c] = scale(p.image, p.height * p.width, c, p.image_bits);
                scales_g[c] = scale(p.left, p.rows * p.columns, c, p.left_bits);
            }
            const Buffer<double> image(x.size()), left(g.size()), held(kernel * BESIDE);
            const bool room = image && left && held;
            if (room)
                std::memset(image, 0, sizeof(double) * x.size());
            else {
#pragma omp atomic write
                enough = false;
            }
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < blocks * shares; ++t)
                if (room) {
                    const int64_t block = t / shares, first = t % shares * p.samples / shares;
                    const int64_t end = (t % shares + 1) * p.samples / shares;
                    add_up(block, first, end, scales_x, scales_g, image, left, held, sums + t * kernel * BESIDE);
                }
#pragma omp for schedule(dynamic)
            for (int64_t block = 0; block < blocks; ++block)
                round(block, shares, sums + block * shares * kernel * BESIDE, scales_x, scales_g);
        }
        return enough;
    }

    // Scale of channel c of [samples, channels, size].
    Scale scale(const float *from, int64_t size, int64_t c, int bits) const {
        if (c >= p.groups) return {0.0f, 0, 0.0};
        int32_t largest = 0;
        for (int64_t n = 0; n < p.samples; ++n)
            largest = std::max(largest, set.own.largest(from + (n * p.groups + c) * size, size));
        return set.own.scale(largest, bits);
    }

    // The sums [kernel][BESIDE] of samples first … end - 1.
    void add_up(int64_t block, int64_t first, int64_t end, const Scale *scales_x, const Scale *scales_g, double *image,
                double *left, double *held, int64_t *sums) const {
        const int64_t step = p.stride[1] * BESIDE, most = most_products(p);
        int64_t terms = 0;
        std::fill_n(sums, kernel * BESIDE, 0);
        std::fill_n(held, kernel * BESIDE, 0.0);
        const auto move = [&] {
            for (int64_t i = 0; i < kernel * BESIDE; ++i) sums[i] += static_cast<int64_t>(held[i]), held[i] = 0.0;
            terms = 0;
        };
        for (int64_t n = first; n < end; ++n, move())
            for (int64_t a = 0; a < p.rows; a += SLAB) {
                const int64_t rows = std::min(SLAB, p.rows - a);
                x.fill(set.depthwise, p.image + n * p.groups * p.height * p.width, block, a, rows,
                       scales_x + block * BESIDE, image);
                g.fill(set.depthwise, p.left + n * p.groups * p.rows * p.columns, block, a, rows,
                       scales_g + block * BESIDE, left);
                for (int64_t row = 0; row < rows; ++row)
                    for (int64_t b = 0; b < p.columns; b += RUN) {
                        const int64_t count = std::min(RUN, p.columns - b);
                        if (terms + count > most) move();
                        set.depthwise.weights(left + row * g.row() + b * BESIDE,
                                              image + row * p.stride[0] * x.row() + b * step, places.data(), kernel,
                                              step, count, held);
                        terms += count;
                    }
            }
    }

    // Rounds the sums of all shares into results.
    void round(int64_t block, int64_t shares, int64_t *sums, const Scale *scales_x, const Scale *scales_g) const {
        for (int64_t i = kernel * BESIDE; i < shares * kernel * BESIDE; ++i) sums[i % (kernel * BESIDE)] += sums[i];
        const bool reaches_51_bits = 2 * up(p.samples, 2) * p.rows * p.columns >= most_products(p);
        const int64_t channels = std::min<int64_t>(BESIDE, p.groups - block * BESIDE);
        double scales[PANEL_X] = {0}, ones[PANEL_Y];
        std::fill_n(ones, PANEL_Y, 1.0);
        for (int64_t c = 0; c < channels; ++c)
            scales[c] = scales_g[block * BESIDE + c].back * scales_x[block * BESIDE + c].back;
        for (int64_t first = 0; first < kernel; first += PANEL_Y) {
            const int columns = static_cast<int>(std::min<int64_t>(PANEL_Y, kernel - first));
            int64_t tile[PANEL_X * PANEL_Y] = {0};
            for (int64_t c = 0; c < channels; ++c)
                for (int t = 0; t < columns; ++t) tile[c * PANEL_Y + t] = sums[(first + t) * BESIDE + c];
            set.product.round_scaled_i64(tile, scales, ones, nullptr, reaches_51_bits, static_cast<int>(channels),
                                         columns, p.out + block * BESIDE * kernel + first, kernel);
        }
    }
};

}  // namespace
}  // namespace assay
