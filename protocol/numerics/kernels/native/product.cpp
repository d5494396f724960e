// Exact products of quantised rows: arithmetic.md sections 4 and 8. Packs both operands, multiplies panel by panel in
// i32, adds runs of chunks up in i64, rounds once. Bits depend on nothing but the operands: variants, threads and runs
// only change how exact integers are added up.
#include "problem.h"

#include <cstdlib>
#include <cstring>
#include <new>

#include "mode.h"
#include "variant.h"

namespace assay {
namespace {

const Variant *const VARIANTS[] = {&AVX512VNNI, &AVX2, &BASELINE, &PORTABLE};
constexpr int VARIANT_COUNT = sizeof(VARIANTS) / sizeof(VARIANTS[0]);
constexpr int BLOCK_X = 8, BLOCK_Y = 4;   // panels of a task: 96 x 128 results
constexpr double LIMIT = 4.6e18;          // below 2^62 = 4.61e18 by more than f32 norms can be off (64 * 2^-24)

int64_t panels_of(int64_t rows, int panel) { return (rows + panel - 1) / panel; }
int64_t rounded_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// A buffer that grows and is kept for the thread's next product.
class Buffer {
  public:
    ~Buffer() { std::free(data_); }
    char *at_least(int64_t bytes) {
        if (bytes > size_) {
            std::free(data_);
            data_ = nullptr;
            size_ = 0;
            if (posix_memalign(&data_, 64, static_cast<size_t>(bytes)) != 0) return nullptr;
            size_ = bytes;
        }
        return static_cast<char *>(data_);
    }

  private:
    void *data_ = nullptr;
    int64_t size_ = 0;
};

thread_local Buffer buffer;

int planes_of(const AssayOperand &o, const AssayOperand &other) {
    return o.bits <= 13 ? 1 : other.bits <= 13 ? 2 : 3;
}

int64_t packed_bytes(const AssayOperand &o, int planes, int panel, int64_t terms) {
    const int64_t panels = panels_of(o.rows, panel), padded = terms + (terms & 1);
    const int64_t plane = rounded_up(panels * panel * padded * 2);
    const int64_t norms = rounded_up(panels * ((terms + CHUNK - 1) / CHUNK) * 4);
    return planes * (plane + norms) + rounded_up(panels * panel * 8);
}

char *lay_out(char *at, const AssayOperand &o, int planes, int panel, int64_t terms, Packed &to) {
    const int64_t panels = panels_of(o.rows, panel), padded = terms + (terms & 1);
    to.planes = planes;
    for (int p = 0; p < planes; ++p) {
        to.data[p] = reinterpret_cast<int16_t *>(at);
        at += rounded_up(panels * panel * padded * 2);
        to.norms[p] = reinterpret_cast<float *>(at);
        at += rounded_up(panels * ((terms + CHUNK - 1) / CHUNK) * 4);
    }
    to.scales = reinterpret_cast<double *>(at);
    return at + rounded_up(panels * panel * 8);
}

Source source_of(const AssayOperand &o, int64_t batch, int64_t terms) {
    const int64_t size = 4;  // bytes of f32 and of i32
    return {static_cast<const char *>(o.data) + o.offsets[batch] * size,
            o.rows,
            o.row_stride,
            o.term_stride,
            terms,
            o.exponents ? o.exponents + batch * o.rows : nullptr,
            o.bits,
            o.is_integer != 0};
}

// One product of planes: which of x with which of y, and the integer that its sums count.
struct Term {
    int x, y;
    int64_t weight;
};

// m = 128 h + l. Karatsuba: 128^2 hh + 128 (hl + lh) + ll with hl + lh = (h + l)(h + l) - hh - ll.
int terms_of(int planes_x, int planes_y, Term *to) {
    if (planes_x == 1 && planes_y == 1) return to[0] = {0, 0, 1}, 1;
    if (planes_y == 1) return to[0] = {0, 0, 128}, to[1] = {1, 0, 1}, 2;
    if (planes_x == 1) return to[0] = {0, 0, 128}, to[1] = {0, 1, 1}, 2;
    return to[0] = {0, 0, 128 * 128 - 128}, to[1] = {2, 2, 128}, to[2] = {1, 1, 1 - 128}, 3;
}

// All products of a batch element once both operands are packed.
struct Element {
    const Variant &variant;
    const AssayProblem &problem;
    const Packed &x, &y;
    int64_t number;

    void block(int64_t x_first, int64_t x_end, int64_t y_first, int64_t y_end) const {
        for (int64_t j = y_first; j < y_end; ++j)
            for (int64_t i = x_first; i < x_end; ++i) tile(i, j);
    }

    void tile(int64_t i, int64_t j) const {
        alignas(64) int32_t c[PANEL_X * PANEL_Y];
        alignas(64) int64_t sums[PANEL_X * PANEL_Y];
        const int64_t K = problem.terms, chunks = (K + CHUNK - 1) / CHUNK, padded = K + (K & 1);
        Term terms[3];
        const int count = terms_of(x.planes, y.planes, terms);
        int runs = 0;
        for (int t = 0; t < count; ++t) {
            const Term &term = terms[t];
            const int16_t *a = x.data[term.x] + i * padded * PANEL_X, *b = y.data[term.y] + j * padded * PANEL_Y;
            const float *nx = x.norms[term.x] + i * chunks, *ny = y.norms[term.y] + j * chunks;
            for (int64_t first = 0; first < chunks;) {
                if (nx[first] == 0.0f || ny[first] == 0.0f) {
                    ++first;
                    continue;
                }
                double sx = nx[first], sy = ny[first];
                int64_t end = first + 1;
                const bool fits = sx * sy < LIMIT;
                while (fits && end < chunks && nx[end] != 0.0f && ny[end] != 0.0f &&
                       (sx + nx[end]) * (sy + ny[end]) < LIMIT)
                    sx += nx[end], sy += ny[end], ++end;
                const int64_t stop = end * CHUNK < padded ? end * CHUNK : padded;
                const int64_t step = fits ? stop - first * CHUNK : SAFE;
                for (int64_t k = first * CHUNK; k < stop; k += step) {
                    const int64_t length = stop - k < step ? stop - k : step;
                    variant.tile(length / 2, a + k * PANEL_X, b + k * PANEL_Y, c);
                    // The very first run of a product with one plane each waits: it may be the only one.
                    if (runs == 1 && count == 1) variant.accumulate(held, 1, true, sums);
                    if (count == 1 && runs == 0)
                        std::memcpy(held, c, sizeof(c));
                    else
                        variant.accumulate(c, term.weight, runs == 0, sums);
                    ++runs;
                }
                first = end;
            }
        }
        if (runs == 0) std::memset(sums, 0, sizeof(sums));
        store(i, j, count == 1 && runs == 1 ? held : nullptr, sums);
    }

    void store(int64_t i, int64_t j, const int32_t *narrow, int64_t *sums) const {
        const int64_t M = problem.x.rows, N = problem.y.rows, m = i * PANEL_X, n = j * PANEL_Y;
        const int rows = static_cast<int>(M - m < PANEL_X ? M - m : PANEL_X);
        const int columns = static_cast<int>(N - n < PANEL_Y ? N - n : PANEL_Y);
        const int64_t at = (number * M + m) * N + n;
        if (problem.x.is_integer) {
            if (narrow) variant.accumulate(narrow, 1, true, sums);
            for (int r = 0; r < rows; ++r)
                std::memcpy(static_cast<int64_t *>(problem.out) + at + r * N, sums + r * PANEL_Y, 8 * columns);
            return;
        }
        float *out = static_cast<float *>(problem.out) + at;
        const double *sx = x.scales + m, *sy = y.scales + n;
        const float *bias = problem.bias ? problem.bias + n : nullptr;
        if (narrow)
            variant.round_i32(narrow, sx, sy, bias, rows, columns, out, N);
        else
            variant.round_i64(sums, sx, sy, bias, wide(), rows, columns, out, N);
    }

    // Whether a sum may reach 2^51: K * 2^(px + py) >= 2^51.
    bool wide() const {
        const int bits = problem.x.bits + problem.y.bits;
        return bits >= 51 || problem.terms >= (int64_t(1) << (51 - bits));
    }

    mutable int32_t held[PANEL_X * PANEL_Y];
};

int64_t both_bytes(const AssayProblem &p) {
    return packed_bytes(p.x, planes_of(p.x, p.y), PANEL_X, p.terms) +
           packed_bytes(p.y, planes_of(p.y, p.x), PANEL_Y, p.terms);
}

void lay_out_both(const AssayProblem &p, char *at, Packed &x, Packed &y) {
    at = lay_out(at, p.x, planes_of(p.x, p.y), PANEL_X, p.terms, x);
    lay_out(at, p.y, planes_of(p.y, p.x), PANEL_Y, p.terms, y);
}

// Batch elements one per thread at a time, each packed and multiplied while in cache.
bool many(const AssayProblem &p, const Variant &variant) {
    bool out_of_memory = false;
    const int64_t panels_x = panels_of(p.x.rows, PANEL_X), panels_y = panels_of(p.y.rows, PANEL_Y);
#pragma omp parallel num_threads(p.threads)
    {
        const Mode mode;
        char *at = buffer.at_least(both_bytes(p));
        if (!at) {
#pragma omp atomic write
            out_of_memory = true;
        }
#pragma omp for schedule(dynamic)
        for (int64_t number = 0; number < p.batch; ++number) {
            if (!at) continue;
            Packed x, y;
            lay_out_both(p, at, x, y);
            const Source from_x = source_of(p.x, number, p.terms), from_y = source_of(p.y, number, p.terms);
            for (int64_t i = 0; i < panels_x; i += STRIP_X)
                variant.pack_x(from_x, x, i, i + STRIP_X < panels_x ? i + STRIP_X : panels_x);
            for (int64_t j = 0; j < panels_y; j += STRIP_Y)
                variant.pack_y(from_y, y, j, j + STRIP_Y < panels_y ? j + STRIP_Y : panels_y);
            const Element element{variant, p, x, y, number, {}};
            for (int64_t i = 0; i < panels_x; i += BLOCK_X)
                element.block(i, i + BLOCK_X < panels_x ? i + BLOCK_X : panels_x, 0, panels_y);
        }
    }
    return !out_of_memory;
}

// Batch elements one after the other, the threads inside.
bool few(const AssayProblem &p, const Variant &variant) {
    char *at = buffer.at_least(both_bytes(p));
    if (!at) return false;
    Packed x, y;
    lay_out_both(p, at, x, y);
    const int64_t panels_x = panels_of(p.x.rows, PANEL_X), panels_y = panels_of(p.y.rows, PANEL_Y);
    const int64_t strips_x = panels_of(panels_x, STRIP_X), strips_y = panels_of(panels_y, STRIP_Y);
    const int64_t blocks_x = panels_of(panels_x, BLOCK_X), blocks_y = panels_of(panels_y, BLOCK_Y);
    for (int64_t number = 0; number < p.batch; ++number) {
        const Source from_x = source_of(p.x, number, p.terms), from_y = source_of(p.y, number, p.terms);
        const Element shared{variant, p, x, y, number, {}};
#pragma omp parallel num_threads(p.threads)
        {
            const Mode mode;
            const Element element = shared;  // each thread holds its own first run
#pragma omp for schedule(dynamic)
            for (int64_t s = 0; s < strips_x + strips_y; ++s) {
                if (s < strips_x) {
                    const int64_t i = s * STRIP_X;
                    variant.pack_x(from_x, x, i, i + STRIP_X < panels_x ? i + STRIP_X : panels_x);
                } else {
                    const int64_t j = (s - strips_x) * STRIP_Y;
                    variant.pack_y(from_y, y, j, j + STRIP_Y < panels_y ? j + STRIP_Y : panels_y);
                }
            }
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < blocks_x * blocks_y; ++t) {
                const int64_t i = t / blocks_y * BLOCK_X, j = t % blocks_y * BLOCK_Y;
                element.block(i, i + BLOCK_X < panels_x ? i + BLOCK_X : panels_x, j,
                              j + BLOCK_Y < panels_y ? j + BLOCK_Y : panels_y);
            }
        }
    }
    return true;
}

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))

extern "C" {

// The name of variant `number`, fastest first, or null past the last.
ASSAY_EXPORT const char *assay_variant_name(int32_t number) {
    return number >= 0 && number < assay::VARIANT_COUNT ? assay::VARIANTS[number]->name : nullptr;
}

// Whether this processor runs it.
ASSAY_EXPORT int32_t assay_variant_supported(int32_t number) {
    return number >= 0 && number < assay::VARIANT_COUNT && assay::VARIANTS[number]->supported();
}

// 0, or 1 when out of memory.
ASSAY_EXPORT int32_t assay_product(const AssayProblem *p) {
    const assay::Variant &variant = *assay::VARIANTS[p->variant];
    return (p->batch >= 2 * p->threads ? assay::many(*p, variant) : assay::few(*p, variant)) ? 0 : 1;
}
}
