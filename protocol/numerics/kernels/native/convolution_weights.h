// Weight gradients of convolutions: terms of the product are positions of the result, two samples side by side.
#pragma once
#include "convolution_shared.h"

namespace assay {
namespace {

struct Weights {
    const AssayConvolution &p;
    const Set set;
    int64_t couples, positions, pairs, chunks, kernel, n, panels_m, panels_n, channels;
    int planes_left, planes_image;
    Term terms[3];
    int term_count;

    explicit Weights(const AssayConvolution &p) : p(p), set(set_of(p.variant)) {
        couples = up(p.samples, 2);
        positions = p.rows * p.columns;
        pairs = couples * positions, chunks = up(pairs, CHUNK_PAIRS);
        kernel = p.kernel[0] * p.kernel[1];
        n = kernel * p.inputs;
        panels_m = up(p.outputs, PANEL_X), panels_n = up(n, PANEL_Y);
        channels = p.groups * p.inputs;
        planes_left = planes_of(p.left_bits, p.image_bits), planes_image = planes_of(p.image_bits, p.left_bits);
        term_count = terms_of(planes_left, planes_image, terms);
    }

    bool run() const {
        const int64_t whole = p.height * p.width;
        const Buffer<uint32_t> left(planes_left * p.groups * panels_m * pairs * PANEL_X);
        const Buffer<uint32_t> image(kept_of(planes_image) * couples * whole * channels);
        const Buffer<float> norms(planes_left * p.groups * panels_m * chunks);
        const Buffer<Scale> left_scales(p.groups * panels_m * PANEL_X), channel_scales(channels);
        const Buffer<double> row_scales(p.groups * panels_m * PANEL_X);
        if (!left || !image || !norms || !left_scales || !channel_scales || !row_scales) return false;
        // Columns are packed once for a share of rows small enough to give every thread work. No share is
        // empty: 11 panels in shares of 2 make 6 shares, even if more were requested.
        const int64_t share = up(panels_m, std::min(panels_m, up(2 * p.threads, p.groups * panels_n)));
        const int64_t shares = up(panels_m, share);
        bool enough = true;
#pragma omp parallel num_threads(p.threads)
        {
            const Mode mode;
#pragma omp for schedule(dynamic) nowait
            for (int64_t i = 0; i < p.groups * panels_m * PANEL_X; ++i) {
                const int64_t g = i / (panels_m * PANEL_X), row = i % (panels_m * PANEL_X);
                const bool inside = row < p.outputs;
                left_scales[i] = inside ? scale(p.left, p.groups * p.outputs, positions, g * p.outputs + row, p.left_bits)
                                        : Scale{0.0f, 0, 0.0};
                row_scales[i] = left_scales[i].back;
            }
#pragma omp for schedule(dynamic)
            for (int64_t c = 0; c < channels; ++c)
                channel_scales[c] = scale(p.image, channels, whole, c, p.image_bits);
#pragma omp for schedule(dynamic) nowait
            for (int64_t t = 0; t < couples; ++t) quantise(t, image, channel_scales);
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < p.groups * panels_m * couples; ++t)
                pack_left(t / couples, t % couples, left, left_scales);
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < p.groups * panels_m; ++t) {
                float *const of = norms + t * chunks;
                set.own.norms(left + t * pairs * PANEL_X, PANEL_X, pairs, of);
                for (int k = 1; k < planes_left; ++k)
                    norms_beside(of, chunks, k, of + k * p.groups * panels_m * chunks);
            }
            const int64_t length = std::min(BLOCK_PAIRS, pairs);
            const Buffer<uint32_t> columns(planes_image * length * PANEL_Y);
            const Buffer<float> column_norms(planes_image * up(length, CHUNK_PAIRS));
            const Buffer<int64_t> sums(share * PANEL_X * PANEL_Y);
            const bool room = columns && column_norms && sums;
            if (!room) {
#pragma omp atomic write
                enough = false;
            }
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < p.groups * panels_n * shares; ++t)
                if (room) {
                    const int64_t first = t % shares * share, end = std::min(first + share, panels_m);
                    multiply(t / shares / panels_n, t / shares % panels_n, first, end, image, channel_scales, left,
                             norms, row_scales, columns, column_norms, sums);
                }
        }
        return enough;
    }

    // Scale of channel c of [samples, channels, size].
    Scale scale(const float *x, int64_t all, int64_t size, int64_t c, int bits) const {
        int32_t largest = 0;
        for (int64_t s = 0; s < p.samples; ++s)
            largest = std::max(largest, set.own.largest(x + (s * all + c) * size, size));
        return set.own.scale(largest, bits);
    }

    // Quantises two samples of x as [position][channel].
    void quantise(int64_t couple, uint32_t *image, const Scale *scales) const {
        constexpr int64_t WIDE = 16, LONG = 32;
        const int64_t whole = p.height * p.width;
        const float *low = p.image + 2 * couple * channels * whole;
        const float *high = 2 * couple + 1 < p.samples ? low + channels * whole : nullptr;
        uint32_t block[WIDE][LONG];
        for (int plane = 0; plane < kept_of(planes_image); ++plane) {
            uint32_t *to = image + (plane * couples + couple) * whole * channels;
            for (int64_t at = 0; at < whole; at += LONG)
                for (int64_t c0 = 0; c0 < channels; c0 += WIDE) {
                    const int64_t count = std::min(LONG, whole - at), wide = std::min(WIDE, channels - c0);
                    for (int64_t c = 0; c < wide; ++c) {
                        const int64_t from = (c0 + c) * whole + at;
                        set.own.pairs(low + from, high ? high + from : nullptr, count, scales[c0 + c], planes_image,
                                      plane, block[c]);
                    }
                    for (int64_t k = 0; k < count; ++k)
                        for (int64_t c = 0; c < wide; ++c) to[(at + k) * channels + c0 + c] = block[c][k];
                }
        }
    }

    // Packs two samples of g into panel `number`, counted over all groups.
    void pack_left(int64_t number, int64_t couple, uint32_t *left, const Scale *scales) const {
        constexpr int64_t LENGTH = 64;
        const int64_t g = number / panels_m, first = number % panels_m * PANEL_X, all = p.groups * p.outputs;
        uint32_t block[PANEL_X][LENGTH];
        std::memset(block, 0, sizeof(block));
        const int64_t size = p.groups * panels_m * pairs * PANEL_X;  // of a plane
        uint32_t *const first_plane = left + (number * pairs + couple * positions) * PANEL_X;
        for (int plane = 0; plane < kept_of(planes_left); ++plane) {
            uint32_t *to = first_plane + plane * size;
            for (int64_t at = 0; at < positions; at += LENGTH) {
                const int64_t count = std::min(LENGTH, positions - at);
                for (int64_t r = 0; r < PANEL_X && first + r < p.outputs; ++r) {
                    const float *low = p.left + (2 * couple * all + g * p.outputs + first + r) * positions + at;
                    const float *high = 2 * couple + 1 < p.samples ? low + all * positions : nullptr;
                    set.own.pairs(low, high, count, scales[number * PANEL_X + r], planes_left, plane, block[r]);
                }
                for (int64_t k = 0; k < count; ++k, to += PANEL_X)
                    for (int r = 0; r < PANEL_X; ++r) to[r] = block[r][k];
            }
        }
        if (planes_left > 2)
            set.own.added(first_plane, first_plane + size, positions * PANEL_X, first_plane + 2 * size);
    }

    void multiply(int64_t g, int64_t j, int64_t first, int64_t end, const uint32_t *image, const Scale *channel_scales,
                  const uint32_t *left, const float *norms, const double *row_scales, uint32_t *columns,
                  float *column_norms, int64_t *sums) const {
        constexpr int64_t TILE = PANEL_X * PANEL_Y;
        const int count = static_cast<int>(std::min<int64_t>(PANEL_Y, n - j * PANEL_Y));
        alignas(64) int32_t narrow[MOST_WAITING * TILE];
        alignas(64) float rounded[TILE];
        double scales[PANEL_Y] = {0};
        int64_t at[PANEL_Y];
        for (int c = 0; c < count; ++c) {
            const int64_t column = j * PANEL_Y + c, tap = column / p.inputs, channel = column % p.inputs;
            scales[c] = channel_scales[g * p.inputs + channel].back;
            at[c] = channel * kernel + tap;
        }
        const int bits = p.left_bits + p.image_bits;
        const bool reaches_51_bits = 2 * pairs >= int64_t(1) << std::max(51 - bits, 0);
        for (int64_t k = 0; k < pairs; k += BLOCK_PAIRS) {
            const int64_t length = std::min(BLOCK_PAIRS, pairs - k), spread = up(length, CHUNK_PAIRS);
            for (int plane = 0; plane < planes_image; ++plane) {
                uint32_t *to = columns + plane * length * PANEL_Y;
                if (plane < 2)
                    pack(g, j, count, k, length, image + plane * couples * p.height * p.width * channels, to);
                else
                    set.own.added(columns, columns + length * PANEL_Y, length * PANEL_Y, to);
                if (plane == 0)
                    set.own.norms(to, PANEL_Y, length, column_norms);
                else
                    norms_beside(column_norms, spread, plane, column_norms + plane * spread);
            }
            for (int64_t i = first; i < end; ++i) {
                const int rows = static_cast<int>(std::min<int64_t>(PANEL_X, p.outputs - i * PANEL_X));
                Sums tile{sums + (i - first) * TILE, narrow, rows, k > 0};
                for (int t = 0; t < term_count; ++t) {
                    const int64_t number = (terms[t].x * p.groups + g) * panels_m + i;
                    tile.product(set.product,
                                 {left + (number * pairs + k) * PANEL_X, norms + number * chunks + k / CHUNK_PAIRS},
                                 {columns + terms[t].y * length * PANEL_Y, column_norms + terms[t].y * spread}, length,
                                 terms[t].weight);
                }
                if (k + length < pairs) {
                    tile.widen(set.product);
                    continue;
                }
                tile.round_scaled(set.product, row_scales + (g * panels_m + i) * PANEL_X, scales, reaches_51_bits,
                                  rounded);
                for (int row = 0; row < rows; ++row)
                    for (int c = 0; c < count; ++c)
                        p.out[(g * p.outputs + i * PANEL_X + row) * n + at[c]] = rounded[row * PANEL_Y + c];
            }
        }
    }

    // Columns of one element of the kernel: the offset of their image from a result, and their first channel.
    struct Segment {
        int64_t y, x, channel;
        int to, length;
    };

    // Packs pairs k … k + length - 1 of the columns from 32 j on.
    void pack(int64_t g, int64_t j, int count, int64_t k, int64_t length, const uint32_t *image, uint32_t *to) const {
        Segment segments[PANEL_Y];
        int segment_count = 0;
        for (int c = 0; c < count;) {
            const int64_t column = j * PANEL_Y + c, tap = column / p.inputs, channel = column % p.inputs;
            const int wide = static_cast<int>(std::min<int64_t>(p.inputs - channel, count - c));
            segments[segment_count++] = {tap / p.kernel[1] * p.dilation[0] - p.padding[0],
                                         tap % p.kernel[1] * p.dilation[1] - p.padding[1], g * p.inputs + channel, c,
                                         wide};
            c += wide;
        }
        for (int64_t done = 0; done < length;) {
            const int64_t couple = (k + done) / positions, row = (k + done) % positions / p.columns;
            const int64_t column = (k + done) % p.columns, wide = std::min(p.columns - column, length - done);
            const uint32_t *from = image + couple * p.height * p.width * channels;
            pack_row(segments, segment_count, count, row, column, wide, from, to + done * PANEL_Y);
            done += wide;
        }
    }

    // Packs `wide` results of one row from `column` on, in stretches over which every segment is either
    // inside or outside the image.
    void pack_row(const Segment *segments, int segment_count, int count, int64_t row, int64_t column, int64_t wide,
                  const uint32_t *image, uint32_t *to) const {
        int64_t low[PANEL_Y], high[PANEL_Y], cuts[2 * PANEL_Y + 1];
        int cut_count = 0;
        for (int s = 0; s < segment_count; ++s) {
            const int64_t y = row * p.stride[0] + segments[s].y, x = column * p.stride[1] + segments[s].x;
            low[s] = x >= 0 ? 0 : std::min(wide, up(-x, p.stride[1]));
            high[s] = y < 0 || y >= p.height ? 0 : std::min(wide, floored(p.width - 1 - x, p.stride[1]) + 1);
            if (high[s] <= low[s]) continue;
            cuts[cut_count++] = low[s], cuts[cut_count++] = high[s];
        }
        cuts[cut_count++] = wide;
        std::sort(cuts, cuts + cut_count);
        for (int64_t at = 0, c = 0; at < wide; ++c) {
            const int64_t end = cuts[c];
            if (end <= at) continue;
            Part parts[PANEL_Y + 1];
            for (int s = 0; s < segment_count; ++s) {
                const Segment &one = segments[s];
                const int64_t y = row * p.stride[0] + one.y, x = (column + at) * p.stride[1] + one.x;
                parts[s] = {ZEROS, 0, one.to, one.length};
                if (low[s] <= at && at < high[s])
                    parts[s] = {image + (y * p.width + x) * channels + one.channel, channels * p.stride[1], one.to,
                                one.length};
            }
            int part_count = segment_count;
            if (count < PANEL_Y) parts[part_count++] = {ZEROS, 0, count, PANEL_Y - count};
            set.own.columns(parts, part_count, 1, end - at, to + at * PANEL_Y);
            at = end;
        }
    }
};

}  // namespace
}  // namespace assay
