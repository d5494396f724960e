// Locations of a product's operands and results, for kernels of every kind, and which of its sums are wide.
#pragma once
#include "problem.h"
#include "variant.h"

namespace assay {
namespace {

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

inline Source source_of(const AssayOperand &o, int64_t batch, int64_t terms) {
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

// Whether a sum may reach 2^51: K * 2^(px + py) >= 2^51.
inline bool reaches_51_bits(const AssayProblem &p) {
    const int bits = p.x.bits + p.y.bits;
    return bits >= 51 || p.terms >= (int64_t(1) << (51 - bits));
}

// Where the results of the tile that begins at row m and column n go.
struct Place {
    int64_t m, n, at;  // `at` in elements of the result
    int rows, columns;
};

inline Place place_of(const AssayProblem &p, int64_t number, int64_t m, int64_t n, int panel_x, int panel_y) {
    const int64_t M = p.x.rows, N = p.y.rows;
    return {m, n, (number * M + m) * N + n, static_cast<int>(least(M - m, panel_x)),
            static_cast<int>(least(N - n, panel_y))};
}

}  // namespace
}  // namespace assay
