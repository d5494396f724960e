// Products of slices: the kind of product for schedule.h on instruction sets that multiply tiles of bytes
// (slices.h). The bits are those of product.cpp: sums are exact integers, and the rounding is the same code.
#include "slices.h"

#include <cstring>

#include "schedule.h"

namespace assay {
namespace {

class Slicing {
  public:
    static constexpr int PANEL_X = SLICE_X, PANEL_Y = SLICE_Y;
    static constexpr int STRIP_X = SLICE_STRIP_X, STRIP_Y = SLICE_STRIP_Y;
    static constexpr int BLOCK_X = 8, BLOCK_Y = 4;  // 128 x 128 results

    Slicing(const AssayProblem &p, const Slices &slices, const Variant &variant)
        : p_(p), slices_(slices), variant_(variant), chunks_((p.terms + SLICE_TERMS - 1) / SLICE_TERMS) {}

    int64_t bytes() const { return bytes_of(p_.x, SLICE_X) + bytes_of(p_.y, SLICE_Y); }

    void lay_out(char *at) {
        at = lay_out(at, p_.x, SLICE_X, x_);
        lay_out(at, p_.y, SLICE_Y, y_);
    }

    void pack_x(int64_t number, int64_t first, int64_t end) const {
        slices_.pack_x(source_of(p_.x, number, p_.terms), x_, first, end);
    }

    void pack_y(int64_t number, int64_t first, int64_t end) const {
        slices_.pack_y(source_of(p_.y, number, p_.terms), y_, first, end);
    }

    void block(int64_t number, int64_t x_first, int64_t x_end, int64_t y_first, int64_t y_end) const {
        slices_.begin();
        for (int64_t j = y_first; j < y_end; ++j)
            for (int64_t i = x_first; i < x_end; ++i) tile(number, i, j);
        slices_.end();
    }

  private:
    const AssayProblem &p_;
    const Slices &slices_;
    const Variant &variant_;
    const int64_t chunks_;
    Sliced x_, y_;

    static int digit_count(const AssayOperand &o) { return o.bits <= 13 ? 2 : 3; }

    int64_t digit_bytes(const AssayOperand &o, int panel) const {
        return panels_of(o.rows, panel) * chunks_ * digit_count(o) * panel * SLICE_TERMS;
    }

    int64_t bytes_of(const AssayOperand &o, int panel) const {
        return digit_bytes(o, panel) + rounded_up(panels_of(o.rows, panel) * panel * 8);
    }

    char *lay_out(char *at, const AssayOperand &o, int panel, Sliced &to) const {
        to = {at, reinterpret_cast<double *>(at + digit_bytes(o, panel)), digit_count(o)};
        return at + bytes_of(o, panel);
    }

    void tile(int64_t number, int64_t i, int64_t j) const {
        alignas(64) int64_t sums[SLICE_X * SLICE_Y];
        slices_.multiply(x_, y_, i, j, chunks_, sums);
        const Place to = place_of(p_, number, i * SLICE_X, j * SLICE_Y, SLICE_X, SLICE_Y);
        const int64_t N = p_.y.rows;
        if (p_.x.is_integer) {
            for (int r = 0; r < to.rows; ++r)
                std::memcpy(static_cast<int64_t *>(p_.out) + to.at + r * N, sums + r * SLICE_Y, 8 * to.columns);
            return;
        }
        static_assert(SLICE_Y == assay::PANEL_Y, "sums are rounded as those of pairs are, by rows of PANEL_Y");
        variant_.round_scaled_i64(sums, x_.scales + to.m, y_.scales + to.n, p_.bias ? p_.bias + to.n : nullptr,
                                  reaches_51_bits(p_), to.rows, to.columns, static_cast<float *>(p_.out) + to.at, N);
    }
};

}  // namespace

bool multiply_slices(const AssayProblem &p, const Slices &slices, const Variant &variant) {
    return scheduled(p, Slicing(p, slices, variant));
}

}  // namespace assay
