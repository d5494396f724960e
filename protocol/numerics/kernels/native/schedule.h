// Divides a product among threads, for any kernel: either each thread takes whole batch elements, or all
// threads work on one batch element at a time.
//
// A kind of product has the constants PANEL_X, PANEL_Y (rows of a panel), STRIP_X, STRIP_Y (panels packed
// together), BLOCK_X and BLOCK_Y (panels of a task), and the functions bytes(), lay_out(memory),
// pack_x(number, first, end), pack_y and block(number, x_first, x_end, y_first, y_end) for batch element
// `number`. Threads that share a kind only call its const functions.
#pragma once
#include "mode.h"
#include "places.h"
#include "problem.h"
#include "scratch.h"

namespace assay {
namespace {

inline int64_t panels_of(int64_t rows, int panel) { return (rows + panel - 1) / panel; }
inline int64_t rounded_up(int64_t bytes) { return (bytes + 63) / 64 * 64; }

thread_local Scratch scratch;

// One batch element per thread at a time, packed and multiplied while in cache.
template <class Kind> bool many(const AssayProblem &p, Kind kind) {
    bool out_of_memory = false;
    const int64_t panels_x = panels_of(p.x.rows, Kind::PANEL_X), panels_y = panels_of(p.y.rows, Kind::PANEL_Y);
#pragma omp parallel num_threads(p.threads) firstprivate(kind)
    {
        const Mode mode;
        char *at = scratch.at_least(kind.bytes());
        if (!at) {
#pragma omp atomic write
            out_of_memory = true;
        } else {
            kind.lay_out(at);
        }
#pragma omp for schedule(dynamic)
        for (int64_t number = 0; number < p.batch; ++number) {
            if (!at) continue;
            for (int64_t i = 0; i < panels_x; i += Kind::STRIP_X)
                kind.pack_x(number, i, least(i + Kind::STRIP_X, panels_x));
            for (int64_t j = 0; j < panels_y; j += Kind::STRIP_Y)
                kind.pack_y(number, j, least(j + Kind::STRIP_Y, panels_y));
            for (int64_t i = 0; i < panels_x; i += Kind::BLOCK_X)
                kind.block(number, i, least(i + Kind::BLOCK_X, panels_x), 0, panels_y);
        }
    }
    return !out_of_memory;
}

// Batch elements one after the other, with all threads inside each.
template <class Kind> bool few(const AssayProblem &p, Kind kind) {
    char *at = scratch.at_least(kind.bytes());
    if (!at) return false;
    kind.lay_out(at);
    const int64_t panels_x = panels_of(p.x.rows, Kind::PANEL_X), panels_y = panels_of(p.y.rows, Kind::PANEL_Y);
    const int64_t strips_x = panels_of(panels_x, Kind::STRIP_X), strips_y = panels_of(panels_y, Kind::STRIP_Y);
    const int64_t blocks_x = panels_of(panels_x, Kind::BLOCK_X), blocks_y = panels_of(panels_y, Kind::BLOCK_Y);
    for (int64_t number = 0; number < p.batch; ++number) {
#pragma omp parallel num_threads(p.threads)
        {
            const Mode mode;
#pragma omp for schedule(dynamic)
            for (int64_t s = 0; s < strips_x + strips_y; ++s) {
                if (s < strips_x) {
                    const int64_t i = s * Kind::STRIP_X;
                    kind.pack_x(number, i, least(i + Kind::STRIP_X, panels_x));
                } else {
                    const int64_t j = (s - strips_x) * Kind::STRIP_Y;
                    kind.pack_y(number, j, least(j + Kind::STRIP_Y, panels_y));
                }
            }
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < blocks_x * blocks_y; ++t) {
                const int64_t i = t / blocks_y * Kind::BLOCK_X, j = t % blocks_y * Kind::BLOCK_Y;
                kind.block(number, i, least(i + Kind::BLOCK_X, panels_x), j, least(j + Kind::BLOCK_Y, panels_y));
            }
        }
    }
    return true;
}

// False when out of memory.
template <class Kind> bool scheduled(const AssayProblem &p, Kind kind) {
    return p.batch >= 2 * p.threads ? many(p, kind) : few(p, kind);
}

}  // namespace
}  // namespace assay
