// Convolutions forward and at the input: columns of the product are positions of the result.
#pragma once
#include "convolution_phases.h"

namespace assay {
namespace {

struct Positions {
    const AssayConvolution &p;
    const Set set;
    int64_t m, channels, couples, height, width, out_height, out_width, kernel;  // m, channels: in a group
    int64_t apart;  // between pairs of channels: an odd number of cache lines, so that they use different cache sets
    int64_t panels_m;
    int planes_left, planes_image;
    Term terms[3];
    int term_count;
    bool by_bytes;  // the product l l of 20 x 20 bits as bytes: half the time of pairs
    std::vector<Phase> phases;

    explicit Positions(const AssayConvolution &p) : p(p), set(set_of(p.variant)) {
        const bool forward = p.kind == FORWARD;
        m = forward ? p.outputs : p.inputs;
        channels = forward ? p.inputs : p.outputs;
        couples = up(channels, 2);
        height = forward ? p.height : p.rows, width = forward ? p.width : p.columns;
        out_height = forward ? p.rows : p.height, out_width = forward ? p.columns : p.width;
        apart = (up(height * width, 16) | 1) * 16;
        kernel = p.kernel[0] * p.kernel[1];
        panels_m = up(m, PANEL_X);
        planes_left = planes_of(p.left_bits, p.image_bits), planes_image = planes_of(p.image_bits, p.left_bits);
        term_count = terms_of(planes_left, planes_image, terms);
        phases = phases_of(p);
        int64_t left = 0, norms = 0;
        for (Phase &phase : phases) {
            phase.pairs = static_cast<int64_t>(phase.taps.size()) * couples;
            phase.chunks = up(phase.pairs, CHUNK_PAIRS);
            phase.left = left, phase.norms = norms;
            left += p.groups * panels_m * phase.pairs * PANEL_X;
            norms += p.groups * panels_m * phase.chunks;
        }
        left_size = left, norms_size = norms;
        // Sums of bytes stay below 2^31: |l' l| <= 64 * 128 with an offset of 64.
        by_bytes = planes_left > 2 && set.own.byte_tile;
        for (const Phase &phase : phases) by_bytes = by_bytes && 2 * phase.pairs < int64_t(1) << 17;
    }

    bool run() const {
        const Buffer<uint32_t> image(kept_of(planes_image) * p.samples * p.groups * couples * apart);
        const Buffer<uint32_t> left(planes_left * left_size);
        const Buffer<float> norms(planes_left * norms_size);
        const Buffer<uint32_t> bytes(by_bytes ? left_size : 0);
        const Buffer<int32_t> starts(by_bytes ? phases.size() * p.groups * panels_m * PANEL_X : 0);
        if (!bytes || !starts) return false;
        const Buffer<double> row_scales(p.groups * panels_m * PANEL_X), sample_scales(p.samples);
        const Buffer<Scale> scales(p.groups * panels_m * PANEL_X);
        if (!image || !left || !norms || !row_scales || !sample_scales || !scales) return false;
        struct Task {
            const Phase *phase;
            int64_t group, first, end;
        };
        std::vector<Task> tasks;
        int64_t most = 1;
        for (const Phase &phase : phases) {
            const int64_t panels = up(p.samples * phase.down * phase.across, PANEL_Y);
            const int64_t bytes = planes_image * phase.pairs * PANEL_Y * 4;
            int64_t block = std::max<int64_t>(1, std::min<int64_t>(16, NEAR / (bytes + 1)));
            block = std::min(block, std::max<int64_t>(1, panels * p.groups / (4 * p.threads)));
            for (int64_t g = 0; g < p.groups; ++g)
                for (int64_t j = 0; j < panels; j += block)
                    tasks.push_back({&phase, g, j, std::min(j + block, panels)});
            most = std::max(most, block * std::max<int64_t>(phase.pairs, 1));
        }
        bool enough = true;
#pragma omp parallel num_threads(p.threads)
        {
            const Mode mode;
#pragma omp for schedule(dynamic) nowait
            for (int64_t n = 0; n < p.samples; ++n) quantise(n, image, sample_scales);
#pragma omp for schedule(dynamic)
            for (int64_t i = 0; i < p.groups * panels_m; ++i) pack_left(i, left, norms, row_scales, scales, bytes, starts);
            const Buffer<uint32_t> columns((planes_image + by_bytes) * most * PANEL_Y);
            const Buffer<float> column_norms(planes_image * (up(most, CHUNK_PAIRS) + 16));
            if (!columns || !column_norms) {
#pragma omp atomic write
                enough = false;
            }
#pragma omp for schedule(dynamic)
            for (size_t t = 0; t < tasks.size(); ++t)
                if (columns && column_norms) {
                    const Task &task = tasks[t];
                    multiply(*task.phase, task.group, task.first, task.end, image, sample_scales, left, norms,
                             row_scales, bytes, starts, columns, column_norms);
                }
        }
        return enough;
    }

    // Plane k of the channels of group g of sample n. Planes after the second are computed when columns are
    // packed.
    template <class T> T *plane_at(T *image, int64_t k, int64_t n, int64_t g) const {
        return image + ((k * p.samples + n) * p.groups + g) * couples * apart;
    }

    void quantise(int64_t n, uint32_t *image, double *sample_scales) const {
        const int64_t plane = height * width, whole = p.groups * channels * plane;
        const float *x = p.image + n * whole;
        const Scale scale = set.own.scale(set.own.largest(x, whole), p.image_bits);
        sample_scales[n] = scale.back;
        for (int64_t g = 0; g < p.groups; ++g)
            for (int64_t c = 0; c < channels; c += 2) {
                const float *low = x + (g * channels + c) * plane;
                for (int k = 0; k < kept_of(planes_image); ++k)
                    set.own.pairs(low, c + 1 < channels ? low + plane : nullptr, plane, scale, planes_image, k,
                                  plane_at(image, k, n, g) + c / 2 * apart);
            }
    }

    // Index of the start values of a panel's rows, which compensate for the offset of its columns' bytes.
    int64_t start_of(const Phase &phase, int64_t number) const {
        return ((&phase - phases.data()) * p.groups * panels_m + number) * PANEL_X;
    }

    // Packs panel `number`, counted over all groups, for every phase.
    void pack_left(int64_t number, uint32_t *left, float *norms, double *row_scales, Scale *scales, uint32_t *bytes,
                   int32_t *starts) const {
        const int64_t g = number / panels_m, first = number % panels_m * PANEL_X;
        const int inside = static_cast<int>(std::min<int64_t>(PANEL_X, m - first));
        const bool forward = p.kind == FORWARD;
        const int64_t row_stride = forward ? channels * kernel : kernel;
        const int64_t channel_stride = forward ? kernel : m * kernel;
        const float *w = p.left + g * m * channels * kernel + first * row_stride;
        Scale *own = scales + number * PANEL_X;
        std::vector<int32_t> each(forward ? 0 : static_cast<size_t>(inside * kernel), 0);  // rows are adjacent there
        for (int64_t c = 0; !forward && c < channels; ++c)
            set.own.raise(w + c * channel_stride, inside * kernel, each.data());
        for (int r = 0; r < PANEL_X; ++r) {
            int32_t largest = 0;
            if (r < inside && forward) largest = set.own.largest(w + r * row_stride, row_stride);
            if (r < inside && !forward)
                largest = *std::max_element(each.begin() + r * kernel, each.begin() + (r + 1) * kernel);
            own[r] = set.own.scale(largest, p.left_bits);
            row_scales[number * PANEL_X + r] = r < inside ? own[r].back : 0.0;
        }
        for (const Phase &phase : phases) {
            uint32_t *const to = left + phase.left + number * phase.pairs * PANEL_X;
            float *const of = norms + phase.norms + number * phase.chunks;
            int32_t sums[PANEL_X];
            set.own.weights(w, row_stride, channel_stride, channels, phase.numbers.data(),
                            static_cast<int64_t>(phase.taps.size()), own, inside, to,
                            planes_left > 1 ? to + left_size : nullptr, sums);
            if (planes_left > 2) set.own.added(to, to + left_size, phase.pairs * PANEL_X, to + 2 * left_size);
            set.own.norms(to, PANEL_X, phase.pairs, of);
            for (int k = 1; k < planes_left; ++k) norms_beside(of, phase.chunks, k, of + k * norms_size);
            if (!by_bytes) continue;
            set.own.bytes(to + left_size, PANEL_X, phase.pairs, 0, bytes + (to - left));
            int32_t *const start = starts + start_of(phase, number);
            for (int r = 0; r < PANEL_X; ++r) start[r] = -BYTE_OFFSET * sums[r];
        }
    }

    // A run of the columns [32 j, 32 j + 32) of a phase: its sample, the position of its first result, and
    // its place in the panel.
    struct Run {
        int64_t n, a, b;
        int to, length;
    };

    int runs_of(const Phase &phase, int64_t j, Run *runs) const {
        const int64_t total = p.samples * phase.down * phase.across;
        int count = 0;
        int64_t at = j * PANEL_Y;
        for (int to = 0; to < PANEL_Y && at < total;) {
            const int64_t row = at / phase.across, b = at % phase.across;
            const int length = static_cast<int>(std::min({phase.across - b, int64_t(PANEL_Y - to), total - at}));
            runs[count++] = {row / phase.down, row % phase.down, b, to, length};
            to += length, at += length;
        }
        return count;
    }

    void multiply(const Phase &phase, int64_t g, int64_t first, int64_t end, const uint32_t *image,
                  const double *sample_scales, const uint32_t *left, const float *norms, const double *row_scales,
                  const uint32_t *bytes, const int32_t *starts, uint32_t *columns, float *column_norms) const {
        Run runs[16][PANEL_Y];
        int counts[16];
        const int64_t planes = planes_image + by_bytes;  // of packed columns
        for (int64_t j = first; j < end; ++j) {
            counts[j - first] = runs_of(phase, j, runs[j - first]);
            uint32_t *const first_plane = columns + (j - first) * planes * phase.pairs * PANEL_Y;
            for (int k = 0; k < planes_image; ++k) {
                uint32_t *to = first_plane + k * phase.pairs * PANEL_Y;
                if (k < 2)
                    pack(phase, g, runs[j - first], counts[j - first], plane_at(image, k, 0, 0), to);
                else
                    set.own.added(first_plane, first_plane + phase.pairs * PANEL_Y, phase.pairs * PANEL_Y, to);
                float *const of = column_norms + (j - first) * planes_image * phase.chunks;
                if (k == 0)
                    set.own.norms(to, PANEL_Y, phase.pairs, of);
                else
                    norms_beside(of, phase.chunks, k, of + k * phase.chunks);
            }
            const int64_t size = phase.pairs * PANEL_Y;
            if (by_bytes) set.own.bytes(first_plane + size, PANEL_Y, phase.pairs, BYTE_OFFSET, first_plane + 3 * size);
        }
        const bool reaches_51_bits = 2 * phase.pairs >= int64_t(1) << (51 - p.left_bits - p.image_bits);
        alignas(64) int64_t wide[PANEL_X * PANEL_Y];
        alignas(64) int32_t narrow[MOST_WAITING * PANEL_X * PANEL_Y];
        alignas(64) float rounded[PANEL_X * PANEL_Y];
        for (int64_t i = 0; i < panels_m; ++i) {
            const int64_t number = g * panels_m + i;
            for (int64_t j = first; j < end; ++j) {
                Sums sums{wide, narrow, static_cast<int>(std::min<int64_t>(PANEL_X, m - i * PANEL_X))};
                const int64_t panel = phase.left + number * phase.pairs * PANEL_X;
                for (int t = 0; t < term_count; ++t) {
                    if (by_bytes && terms[t].x == 1) {
                        const uint32_t *const y = columns + ((j - first) * planes + 3) * phase.pairs * PANEL_Y;
                        sums.add(set.product, terms[t].weight, [&](int32_t *to) {
                            set.own.byte_tile(up(phase.pairs, 2), bytes + panel, y, starts + start_of(phase, number), sums.rows, to);
                        });
                        continue;
                    }
                    const int64_t norm = (j - first) * planes_image + terms[t].y;
                    sums.product(set.product,
                                 {left + terms[t].x * left_size + panel,
                                  norms + terms[t].x * norms_size + phase.norms + number * phase.chunks},
                                 {columns + ((j - first) * planes + terms[t].y) * phase.pairs * PANEL_Y,
                                  column_norms + norm * phase.chunks},
                                 phase.pairs, terms[t].weight);
                }
                double scales[PANEL_Y] = {0};
                for (int k = 0; k < counts[j - first]; ++k) {
                    const Run &run = runs[j - first][k];
                    std::fill_n(scales + run.to, run.length, sample_scales[run.n]);
                }
                sums.round_scaled(set.product, row_scales + number * PANEL_X, scales, reaches_51_bits, rounded);
                store(phase, g, i, runs[j - first], counts[j - first], rounded);
            }
        }
    }

    void pack(const Phase &phase, int64_t g, const Run *runs, int count, const uint32_t *image, uint32_t *to) const {
        const int filled = runs[count - 1].to + runs[count - 1].length;
        for (const Tap &tap : phase.taps) {
            Part parts[3 * PANEL_Y + 1];
            int part_count = 0;
            const auto zeros = [&](int from, int length) {
                if (length > 0) parts[part_count++] = {ZEROS, 0, from, length};
            };
            for (int k = 0; k < count; ++k) {
                const Run &run = runs[k];
                const int64_t y = run.a * phase.step_y + tap.y, x = run.b * phase.step_x + tap.x;
                // Among columns i = 0 … length - 1, those with 0 <= x + i step < width.
                int64_t low = x >= 0 ? 0 : up(-x, phase.step_x), high = floored(width - 1 - x, phase.step_x) + 1;
                if (y < 0 || y >= height) high = 0;
                low = std::min<int64_t>(low, run.length), high = std::min<int64_t>(high, run.length);
                high = std::max(high, low);
                zeros(run.to, static_cast<int>(low));
                if (high > low)
                    parts[part_count++] = {plane_at(image, 0, run.n, g) + y * width + x + low * phase.step_x, apart,
                                           static_cast<int>(run.to + low), static_cast<int>(high - low)};
                zeros(static_cast<int>(run.to + high), static_cast<int>(run.length - high));
            }
            zeros(filled, PANEL_Y - filled);
            set.own.columns(parts, part_count, phase.step_x, couples, to);
            to += couples * PANEL_Y;
        }
    }

    void store(const Phase &phase, int64_t g, int64_t i, const Run *runs, int count, float *rounded) const {
        const int64_t first = i * PANEL_X, end = std::min(first + PANEL_X, m), plane = out_height * out_width;
        for (int64_t row = first; row < end; ++row) {
            float *from = rounded + (row - first) * PANEL_Y;
            if (p.bias) {
                const float bias = p.bias[g * m + row];
                for (int k = 0; k < PANEL_Y; ++k) {
                    const float sum = from[k] + bias;
                    from[k] = sum == sum ? sum : __builtin_nanf("");
                }
            }
            for (int k = 0; k < count; ++k) {
                const Run &run = runs[k];
                float *to = p.out + ((run.n * p.groups + g) * m + row) * plane +
                            (run.a * phase.out_step_y + phase.out_y) * out_width + run.b * phase.out_step_x + phase.out_x;
                if (phase.out_step_x == 1)
                    std::memcpy(to, from + run.to, sizeof(float) * run.length);
                else
                    set.own.spread(from + run.to, run.length, phase.out_step_x, to);
            }
        }
    }

    int64_t left_size = 0, norms_size = 0;
};

}  // namespace
}  // namespace assay
