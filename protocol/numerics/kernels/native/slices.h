// Products of slices: integers as base-128 digits, m = 128 h + l or (128 a + b) 128 + c with |digit| <= 64,
// each in one byte, multiplied by instructions that take whole tiles of bytes. For up to SLICE_LONGEST terms,
// sums of digits fit i32 for any operands, so no norms are needed.
//
// An operand is cut into panels of SLICE_X or SLICE_Y rows. A panel stores its chunks of SLICE_TERMS terms in
// order; a chunk stores its digits, highest first, each as tiles of 1024 bytes: for x [16 rows][64 terms],
// for y twice [16 quads of terms][16 rows][4 terms]. Everything beyond the last row or term is zero.
#pragma once
#include <cstdint>

#include "problem.h"
#include "variant.h"

namespace assay {

constexpr int SLICE_X = 16, SLICE_Y = 32, SLICE_TERMS = 64, SLICE_TILE = 1024;
constexpr int SLICE_STRIP_X = 8, SLICE_STRIP_Y = 4;  // panels packed together: 128 rows, as in quantise.h
constexpr int64_t SLICE_LONGEST = 1 << 17;           // terms: three products of 64 * 64 each stay below 2^31
static_assert(3 * 64 * 64 * SLICE_LONGEST < int64_t(1) << 31, "sums of digits must fit into i32");

// A packed operand: panel i starts at data + i * chunks * tiles * SLICE_TILE.
struct Sliced {
    char *data;
    double *scales;  // [panels * rows of a panel], as in Packed
    int digits;      // 2 or 3
};

// Functions of an instruction set with products of tiles.
struct Slices {
    const char *name;
    bool (*supported)();
    void (*pack_x)(const Source &, const Sliced &, int64_t first_panel, int64_t end_panel);
    void (*pack_y)(const Source &, const Sliced &, int64_t first_panel, int64_t end_panel);
    // sums[SLICE_X][SLICE_Y] = the product of two panels over all their chunks.
    void (*multiply)(const Sliced &x, const Sliced &y, int64_t panel_x, int64_t panel_y, int64_t chunks, int64_t *sums);
    // Called before and after calls of `multiply` in each thread.
    void (*begin)();
    void (*end)();
};

extern const Slices AMX;

// Returns false when out of memory.
bool multiply_slices(const AssayProblem &p, const Slices &slices, const Variant &variant);

}  // namespace assay
