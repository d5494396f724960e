// Exact products of quantised rows: arithmetic.md sections 4 and 8. Packs both operands, multiplies panel by
// panel in i32, adds runs of chunks in i64, and rounds once. The bits depend only on the operands: variants,
// threads and runs only change how exact integers are added.
#include <cstring>

#include "problem.h"
#include "schedule.h"
#include "sets.h"
#include "sums.h"

namespace assay {
namespace {

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

// Products of pairs: a kind of product for schedule.h.
class Pairs {
  public:
    static constexpr int PANEL_X = assay::PANEL_X, PANEL_Y = assay::PANEL_Y;
    static constexpr int STRIP_X = assay::STRIP_X, STRIP_Y = assay::STRIP_Y;
    static constexpr int BLOCK_X = 8, BLOCK_Y = 4;  // 96 x 128 results

    Pairs(const AssayProblem &p, const Variant &variant) : p_(p), variant_(variant) {}

    int64_t bytes() const {
        return packed_bytes(p_.x, planes_of(p_.x.bits, p_.y.bits), PANEL_X, p_.terms) +
               packed_bytes(p_.y, planes_of(p_.y.bits, p_.x.bits), PANEL_Y, p_.terms);
    }

    void lay_out(char *at) {
        at = assay::lay_out(at, p_.x, planes_of(p_.x.bits, p_.y.bits), PANEL_X, p_.terms, x_);
        assay::lay_out(at, p_.y, planes_of(p_.y.bits, p_.x.bits), PANEL_Y, p_.terms, y_);
    }

    void pack_x(int64_t number, int64_t first, int64_t end) const {
        variant_.pack_x(source_of(p_.x, number, p_.terms), x_, first, end);
    }

    void pack_y(int64_t number, int64_t first, int64_t end) const {
        variant_.pack_y(source_of(p_.y, number, p_.terms), y_, first, end);
    }

    void block(int64_t number, int64_t x_first, int64_t x_end, int64_t y_first, int64_t y_end) const {
        for (int64_t j = y_first; j < y_end; ++j)
            for (int64_t i = x_first; i < x_end; ++i) tile(number, i, j);
    }

  private:
    const AssayProblem &p_;
    const Variant &variant_;
    Packed x_, y_;

    void tile(int64_t number, int64_t i, int64_t j) const {
        alignas(64) int32_t narrow[MOST_WAITING * PANEL_X * PANEL_Y];
        alignas(64) int64_t wide[PANEL_X * PANEL_Y];
        const int64_t pairs = (p_.terms + 1) / 2, chunks = (p_.terms + CHUNK - 1) / CHUNK;
        Term terms[3];
        const int count = terms_of(x_.planes, y_.planes, terms);
        const Place to = place_of(p_, number, i * PANEL_X, j * PANEL_Y, PANEL_X, PANEL_Y);
        Sums sums{wide, narrow, to.rows};
        for (int t = 0; t < count; ++t)
            sums.product(variant_, plane(x_, terms[t].x, i * chunks, i * pairs * PANEL_X),
                         plane(y_, terms[t].y, j * chunks, j * pairs * PANEL_Y), pairs, terms[t].weight);
        store(to, sums);
    }

    static Plane plane(const Packed &of, int number, int64_t chunk, int64_t pair) {
        return {reinterpret_cast<const uint32_t *>(of.data[number]) + pair, of.norms[number] + chunk};
    }

    void store(const Place &to, Sums &sums) const {
        const int64_t N = p_.y.rows;
        if (p_.x.is_integer) {
            sums.widen(variant_);
            for (int r = 0; r < to.rows; ++r)
                std::memcpy(static_cast<int64_t *>(p_.out) + to.at + r * N, sums.wide + r * PANEL_Y, 8 * to.columns);
            return;
        }
        sums.round_scaled(variant_, x_.scales + to.m, y_.scales + to.n, p_.bias ? p_.bias + to.n : nullptr,
                          reaches_51_bits(p_), to.columns, static_cast<float *>(p_.out) + to.at, N);
    }
};

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))

extern "C" {

// The version of the interface with Python: its structs and function parameters. Increment this and VERSION
// in native.py when one of them changes.
ASSAY_EXPORT int32_t assay_version() { return 2; }

// The name of variant `number`, fastest first, or null past the last.
ASSAY_EXPORT const char *assay_variant_name(int32_t number) {
    return number >= 0 && number < assay::SET_COUNT ? assay::SETS[number].name() : nullptr;
}

// Whether this processor supports variant `number`.
ASSAY_EXPORT int32_t assay_variant_supported(int32_t number) {
    return number >= 0 && number < assay::SET_COUNT && assay::SETS[number].supported();
}

// Returns 0, or 1 when out of memory.
ASSAY_EXPORT int32_t assay_product(const AssayProblem *p) {
    const assay::InstructionSet &set = assay::SETS[p->variant];
    const bool done = set.slices ? assay::multiply_slices(*p, *set.slices, set.products)
                                 : assay::scheduled(*p, assay::Pairs(*p, set.products));
    return done ? 0 : 1;
}
}
