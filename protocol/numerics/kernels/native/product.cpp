// Exact products of quantised rows: arithmetic.md sections 4 and 8. Packs both operands, multiplies panel by panel in
// i32, adds runs of chunks up in i64, rounds once. Bits depend on nothing but the operands: variants, threads and runs
// only change how exact integers are added up.
#include "problem.h"

#include <cstring>

#include "mode.h"
#include "scratch.h"
#include "sets.h"
#include "sums.h"

namespace assay {
namespace {

constexpr int BLOCK_X = 8, BLOCK_Y = 4;   // panels of a task: 96 x 128 results

int64_t panels_of(int64_t rows, int panel) { return (rows + panel - 1) / panel; }
int64_t rounded_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

thread_local Scratch scratch;

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
        alignas(64) int32_t narrow[PANEL_X * PANEL_Y];
        alignas(64) int64_t wide[PANEL_X * PANEL_Y];
        const int64_t pairs = (problem.terms + 1) / 2, chunks = (problem.terms + CHUNK - 1) / CHUNK;
        Term terms[3];
        const int count = terms_of(x.planes, y.planes, terms);
        Sums sums{wide, narrow};
        for (int t = 0; t < count; ++t)
            sums.product(variant, plane(x, terms[t].x, i * chunks, i * pairs * PANEL_X),
                         plane(y, terms[t].y, j * chunks, j * pairs * PANEL_Y), pairs, terms[t].weight, count == 1);
        store(i, j, sums);
    }

    static Plane plane(const Packed &of, int number, int64_t chunk, int64_t pair) {
        return {reinterpret_cast<const uint32_t *>(of.data[number]) + pair, of.norms[number] + chunk};
    }

    void store(int64_t i, int64_t j, Sums &sums) const {
        const int64_t M = problem.x.rows, N = problem.y.rows, m = i * PANEL_X, n = j * PANEL_Y;
        const int rows = static_cast<int>(M - m < PANEL_X ? M - m : PANEL_X);
        const int columns = static_cast<int>(N - n < PANEL_Y ? N - n : PANEL_Y);
        const int64_t at = (number * M + m) * N + n;
        if (problem.x.is_integer) {
            sums.widen(variant);
            for (int r = 0; r < rows; ++r)
                std::memcpy(static_cast<int64_t *>(problem.out) + at + r * N, sums.wide + r * PANEL_Y, 8 * columns);
            return;
        }
        float *out = static_cast<float *>(problem.out) + at;
        const double *sx = x.scales + m, *sy = y.scales + n;
        const float *bias = problem.bias ? problem.bias + n : nullptr;
        sums.round(variant, sx, sy, bias, reaches_51_bits(), rows, columns, out, N);
    }

    // Whether a sum may reach 2^51: K * 2^(px + py) >= 2^51.
    bool reaches_51_bits() const {
        const int bits = problem.x.bits + problem.y.bits;
        return bits >= 51 || problem.terms >= (int64_t(1) << (51 - bits));
    }
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
        char *at = scratch.at_least(both_bytes(p));
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
            const Element element{variant, p, x, y, number};
            for (int64_t i = 0; i < panels_x; i += BLOCK_X)
                element.block(i, i + BLOCK_X < panels_x ? i + BLOCK_X : panels_x, 0, panels_y);
        }
    }
    return !out_of_memory;
}

// Batch elements one after the other, the threads inside.
bool few(const AssayProblem &p, const Variant &variant) {
    char *at = scratch.at_least(both_bytes(p));
    if (!at) return false;
    Packed x, y;
    lay_out_both(p, at, x, y);
    const int64_t panels_x = panels_of(p.x.rows, PANEL_X), panels_y = panels_of(p.y.rows, PANEL_Y);
    const int64_t strips_x = panels_of(panels_x, STRIP_X), strips_y = panels_of(panels_y, STRIP_Y);
    const int64_t blocks_x = panels_of(panels_x, BLOCK_X), blocks_y = panels_of(panels_y, BLOCK_Y);
    for (int64_t number = 0; number < p.batch; ++number) {
        const Source from_x = source_of(p.x, number, p.terms), from_y = source_of(p.y, number, p.terms);
        const Element element{variant, p, x, y, number};
#pragma omp parallel num_threads(p.threads)
        {
            const Mode mode;
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

// The version of what Python shares with the library: its structs and the operands of its functions. Whoever changes one
// of them counts this and VERSION of native.py on.
ASSAY_EXPORT int32_t assay_version() { return 1; }

// The name of variant `number`, fastest first, or null past the last.
ASSAY_EXPORT const char *assay_variant_name(int32_t number) {
    return number >= 0 && number < assay::SET_COUNT ? assay::SETS[number].products.name : nullptr;
}

// Whether this processor runs it.
ASSAY_EXPORT int32_t assay_variant_supported(int32_t number) {
    return number >= 0 && number < assay::SET_COUNT && assay::SETS[number].products.supported();
}

// 0, or 1 when out of memory.
ASSAY_EXPORT int32_t assay_product(const AssayProblem *p) {
    const assay::Variant &variant = assay::SETS[p->variant].products;
    return (p->batch >= 2 * p->threads ? assay::many(*p, variant) : assay::few(*p, variant)) ? 0 : 1;
}
}
