// Sums of products of two packed panels: runs of chunks as long as their norms allow, in i32, then in i64.
#pragma once
#include <cstring>

#include "variant.h"

namespace assay {

constexpr double RUN_LIMIT = 4.6e18;  // below 2^62 = 4.61e18 by more than the error of f32 norms (64 * 2^-24)

// Number of planes of an operand with `bits` bits, multiplied with another of `other_bits` (variant.h).
inline int planes_of(int bits, int other_bits) { return bits <= 13 ? 1 : other_bits <= 13 ? 2 : 3; }

// One product of planes: a plane of x, a plane of y, and the weight of its sums.
struct Term {
    int x, y;
    int64_t weight;
};

// m = 128 h + l. Karatsuba: 128^2 hh + 128 (hl + lh) + ll with hl + lh = (h + l)(h + l) - hh - ll.
inline int terms_of(int planes_x, int planes_y, Term *to) {
    if (planes_x == 1 && planes_y == 1) return to[0] = {0, 0, 1}, 1;
    if (planes_y == 1) return to[0] = {0, 0, 128}, to[1] = {1, 0, 1}, 2;
    if (planes_x == 1) return to[0] = {0, 0, 128}, to[1] = {0, 1, 1}, 2;
    return to[0] = {0, 0, 128 * 128 - 128}, to[1] = {2, 2, 128}, to[2] = {1, 1, 1 - 128}, 3;
}

constexpr int MOST_WAITING = 4;  // runs below 2^31 times weights below 2^14: their sum is exact in float64

// One plane of a panel over some pairs of terms.
struct Plane {
    const uint32_t *data;
    const float *norms;  // of its chunks
};

// The sums of one tile: weighted runs of i32. Runs wait until they are rounded together, or until there are
// too many.
struct Sums {
    int64_t *wide;    // [PANEL_X * PANEL_Y]
    int32_t *narrow;  // [MOST_WAITING][PANEL_X * PANEL_Y]
    int rows;         // rows needed, of PANEL_X
    bool widened = false;
    int waiting = 0;
    int64_t weights[MOST_WAITING] = {0};

    // Adds a run: `fill` writes its sums to the given place.
    template <class Fill> void add(const Variant &v, int64_t weight, const Fill &fill) {
        if (waiting == MOST_WAITING) widen(v);
        fill(narrow + waiting * PANEL_X * PANEL_Y);
        weights[waiting++] = weight;
    }

    // Adds x y times `weight`.
    void product(const Variant &v, Plane x, Plane y, int64_t pairs, int64_t weight) {
        constexpr int64_t CHUNK_PAIRS = CHUNK / 2, SAFE_PAIRS = SAFE / 2;
        const int64_t chunks = (pairs + CHUNK_PAIRS - 1) / CHUNK_PAIRS;
        for (int64_t first = 0; first < chunks;) {
            double sx = x.norms[first], sy = y.norms[first];
            int64_t end = first + 1;
            if (sx == 0.0 || sy == 0.0) {
                first = end;
                continue;
            }
            const bool fits = sx * sy < RUN_LIMIT;
            while (fits && end < chunks && x.norms[end] != 0.0f && y.norms[end] != 0.0f &&
                   (sx + x.norms[end]) * (sy + y.norms[end]) < RUN_LIMIT)
                sx += x.norms[end], sy += y.norms[end], ++end;
            const int64_t stop = end * CHUNK_PAIRS < pairs ? end * CHUNK_PAIRS : pairs;
            const int64_t step = fits ? stop - first * CHUNK_PAIRS : SAFE_PAIRS;
            for (int64_t k = first * CHUNK_PAIRS; k < stop; k += step)
                add(v, weight, [&](int32_t *to) {
                    v.tile(stop - k < step ? stop - k : step, reinterpret_cast<const int16_t *>(x.data + k * PANEL_X),
                           reinterpret_cast<const int16_t *>(y.data + k * PANEL_Y), rows, to);
                });
            first = end;
        }
    }

    // Moves all sums to `wide`; zeros if nothing was added.
    void widen(const Variant &v) {
        for (int w = 0; w < waiting; ++w, widened = true)
            v.accumulate(narrow + w * PANEL_X * PANEL_Y, weights[w], !widened, wide);
        if (!widened) std::memset(wide, 0, sizeof(int64_t) * PANEL_X * PANEL_Y);
        widened = true, waiting = 0;
    }

    // `round_scaled` of every sum into rows of `columns` f32, `stride` apart.
    void round_scaled(const Variant &v, const double *sx, const double *sy, const float *bias, bool reaches_51_bits,
                      int columns, float *out, int64_t stride) {
        if (!widened && waiting > 0)
            return v.round_scaled_i32(narrow, weights, waiting, sx, sy, bias, rows, columns, out, stride);
        widen(v);
        v.round_scaled_i64(wide, sx, sy, bias, reaches_51_bits, rows, columns, out, stride);
    }

    // `round_scaled` of every sum into [rows][PANEL_Y] f32.
    void round_scaled(const Variant &v, const double *sx, const double *sy, bool reaches_51_bits, float *out) {
        round_scaled(v, sx, sy, nullptr, reaches_51_bits, PANEL_Y, out, PANEL_Y);
    }
};

}  // namespace assay
