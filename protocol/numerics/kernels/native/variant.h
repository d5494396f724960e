// The interface of every instruction set: packing operands, multiplying two packed panels, rounding a tile.
//
// An operand is cut into panels of PANEL_X or PANEL_Y rows. A panel stores its rows' pairs of terms side by
// side, pair by pair: packed[pair][row][2] of i16. 20 bits become two planes m = 128 h + l with |h| <= 2^13,
// |l| <= 64, and a third plane h + l if both operands have 20 bits (Karatsuba). For each chunk of CHUNK terms
// and each plane, the largest squared norm of the panel's rows is stored. By Cauchy-Schwarz |sum| <= |x| |y|,
// so the norms show how long an i32 accumulator can run, and that a chunk of zeros (the causal half of an
// attention matrix) adds nothing.
#pragma once
#include <cstdint>

namespace assay {

constexpr int PANEL_X = 12;  // 12 x 32 i32 accumulators are 24 of AVX-512's 32 registers
constexpr int PANEL_Y = 32;
constexpr int CHUNK = 64;    // 64 terms of rms 2^12.5 stay below 2^31; a whole row of 384 usually does as well
constexpr int SAFE = 30;     // any 30 terms of |m| <= 2^13 + 2^6 stay below 2^31: 30 * 8256^2 < 2^31
constexpr int STRIP_X = 10, STRIP_Y = 4;  // panels packed together if terms are strided: about 512 contiguous bytes

// A packed operand: plane p of panel i starts at data[p] + i * terms_padded * PANEL.
struct Packed {
    int16_t *data[3];
    float *norms[3];   // [panels][chunks]
    double *scales;    // [panels * PANEL] 2^(e - bits), NaN under the sentinel; zero beyond the last row
    int planes;
};

// Location of the rows of one batch element.
struct Source {
    const void *data;
    int64_t rows, row_stride, term_stride, terms;
    const int32_t *exponents;
    int bits;
    bool is_integer;
};

struct Variant {
    const char *name;
    bool (*supported)();
    void (*pack_x)(const Source &, const Packed &, int64_t first_panel, int64_t end_panel);
    void (*pack_y)(const Source &, const Packed &, int64_t first_panel, int64_t end_panel);
    // c[PANEL_X][PANEL_Y] = the product of `pairs` pairs of terms, wrapping. Only the first `rows` rows are
    // needed.
    void (*tile)(int64_t pairs, const int16_t *x, const int16_t *y, int rows, int32_t *c);
    // sums = (first ? 0 : sums) + weight * c
    void (*accumulate)(const int32_t *c, int64_t weight, bool first, int64_t *sums);
    // `round_scaled` of rows of exact integers, plus an optional bias; `wide` means that they may reach 2^51.
    // i32: the sums of `count` (1 to 4) tiles of integers times their weights, below 2^53 in total.
    void (*round_scaled_i32)(const int32_t *c, const int64_t *weights, int count, const double *sx, const double *sy,
                             const float *bias, int rows, int columns, float *out, int64_t stride);
    void (*round_scaled_i64)(const int64_t *sums, const double *sx, const double *sy, const float *bias, bool wide,
                             int rows, int columns, float *out, int64_t stride);
};

extern const Variant AVX512VNNI, AVX2, BASELINE, PORTABLE;

}  // namespace assay
