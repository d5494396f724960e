// Attention by blocks of query rows, as specified in attention.h. Products are those of product.cpp,
// functions those of fused_body.h. This file orders them, skips the parts of a causal matrix that need not be
// computed, and rounds the sums of large heads.
//
// Forward, a block of rows is independent of all other rows, so a thread needs memory for one block only.
// Backward, the gradients of keys and values are summed over queries, with one exponent for a whole column. A
// head with few scores is stored whole until its columns are known. A larger head is computed twice: first
// for the columns' exponents, then for their integers.
#include "attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "mode.h"
#include "problem.h"
#include "scalar.h"
#include "scratch.h"
#include "sets.h"

extern "C" int32_t assay_product(const AssayProblem *);
extern "C" void assay_keep_some(uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int64_t, uint64_t, float *);

namespace assay {
namespace {

constexpr int64_t ROWS = 120;              // queries of a block: ten panels of 12; the keys are packed once per block
constexpr int32_t TAME = 60;               // scores below 2^60 are far from infinity, and negligible against 2^126
constexpr float SLIGHT = 8.673617379884035e-19f;  // 2^-60: smaller products of factors are not analysed
constexpr float HIDDEN = -8.507059173023462e37f;  // -2^126: so far below any tame score that its exponential is zero
constexpr uint32_t NOT_A_NUMBER = 0x7fc00000u;
const int64_t START[1] = {0};

thread_local Scratch scratch;

// Data about a head that are known before its rows are computed.
struct Head {
    std::vector<int32_t> of_values, of_keys;   // exponents of the rows of v_out and of k_q, over all keys
    std::vector<int32_t> last;                 // for every query, the number of keys up to the last visible one
};

class Attention {
  public:
    explicit Attention(const AssayAttention &a) : a_(a), f_(SETS[a.variant].fused), M_(a.queries), N_(a.keys) {}

    bool forward() const {
        const int64_t blocks = (M_ + ROWS - 1) / ROWS;
        std::vector<Head> heads(a_.heads);
        bool failed = false;
#pragma omp parallel num_threads(a_.threads)
        {
            const Mode mode;
#pragma omp for schedule(dynamic)
            for (int64_t h = 0; h < a_.heads; ++h) {
                heads[h].of_values = exponents(a_.v_out, h, a_.width, N_);
                heads[h].last = last_of(h, false);
            }
#pragma omp for schedule(dynamic)
            for (int64_t t = 0; t < a_.heads * blocks; ++t) {
                const int64_t h = t / blocks, first = t % blocks * ROWS;
                if (!rows_forward(h, heads[h], first, first + ROWS < M_ ? first + ROWS : M_)) {
#pragma omp atomic write
                    failed = true;
                }
            }
        }
        return !failed;
    }

    bool backward() const {
        bool failed = false;
#pragma omp parallel for num_threads(a_.threads) schedule(dynamic)
        for (int64_t h = 0; h < a_.heads; ++h) {
            const Mode mode;
            if (!head_backward(h)) {
#pragma omp atomic write
                failed = true;
            }
        }
        return !failed;
    }

  private:
    const AssayAttention &a_;
    const Fused &f_;
    const int64_t M_, N_;

    static AssayOperand operand(const AssayMatrix &m, int64_t head, int64_t first, int64_t rows,
                                const int32_t *exponents = nullptr) {
        const float *at = m.data + m.offsets[head] + first * m.row_stride;
        return {at, START, rows, m.row_stride, m.term_stride, exponents, m.bits, 0};
    }

    bool product(const AssayOperand &x, const AssayOperand &y, int64_t terms, void *out) const {
        const AssayProblem p = {x, y, 1, terms, out, nullptr, a_.variant, 1};
        return assay_product(&p) == 0;
    }

    int32_t largest(const AssayMatrix &m, int64_t h, int64_t row, int64_t terms) const {
        return f_.largest_of_row(m.data + m.offsets[h] + row * m.row_stride, m.term_stride, terms);
    }

    // Exponents of a matrix's rows.
    std::vector<int32_t> exponents(const AssayMatrix &m, int64_t h, int64_t rows, int64_t terms) const {
        std::vector<int32_t> found(rows, 0);
        if (m.row_stride == 1 && m.term_stride != 1)
            for (int64_t k = 0; k < terms; ++k)
                f_.largest(m.data + m.offsets[h] + k * m.term_stride, found.data(), rows);
        else
            for (int64_t r = 0; r < rows; ++r) found[r] = largest(m, h, r, terms);
        for (int32_t &e : found) e = exponent_of(e);
        return found;
    }

    // The exponent of a whole matrix.
    int32_t exponent(const AssayMatrix &m, int64_t h, int64_t rows, int64_t terms) const {
        int32_t found = LEAST;
        for (const int32_t e : exponents(m, h, rows, terms)) found = e > found ? e : found;
        return found;
    }

    // Whether products of these matrices, times the factors of the changes, stay below 2^TAME.
    bool tame(const AssayMatrix &x, const AssayMatrix &y, int64_t h, int64_t terms, float factor) const {
        int32_t bits = 1;
        while ((int64_t(1) << bits) < terms) ++bits;
        const int32_t size = exponent_of(static_cast<int32_t>(bits_of(factor) & 0x7fffffffu));
        const int32_t most = exponent(x, h, M_, terms) + exponent(y, h, N_, terms);
        return size <= TAME && most + bits + (size > 0 ? size : 0) <= TAME;
    }

    // For each query, the number of keys up to the last one that it sees; all keys if hidden ones might
    // matter. Hidden keys do not matter if the only mask comes last and hides with -infinity (or close to
    // it), scores and their gradients are tame, and some key is seen. Then the hidden probabilities are
    // zeros, their products with gradients are too, and nothing else of them is read. Only a table may still
    // make a row NaN, by a NaN or +infinity in it: its gradients are then NaN at hidden keys too, and
    // may be NaN there alone if a change fills those of the keys before.
    std::vector<int32_t> last_of(int64_t h, bool back) const {
        std::vector<int32_t> last(M_, static_cast<int32_t>(N_));
        float factor = 1.0f, most = 1.0f;
        for (int32_t c = 0; c < a_.change_count; ++c) {
            const AssayChange &change = a_.changes[c];
            if (change.kind == ASSAY_TIMES)
                factor *= change.value;
            else if (change.kind == ASSAY_OVER)
                factor /= change.value;
            else if (c + 1 != a_.change_count)
                return last;
            // A score may overflow before it becomes tame, and if factors vanish their product tells nothing.
            if (!(std::fabs(factor) >= SLIGHT)) return last;
            most = std::max(most, std::fabs(factor));
        }
        if (a_.change_count == 0 || a_.changes[a_.change_count - 1].kind < ASSAY_FILL_TRUE) return last;
        const AssayChange &mask = a_.changes[a_.change_count - 1];
        if (mask.column_stride != 1 || (mask.kind != ASSAY_PLUS && !(mask.value <= HIDDEN))) return last;
        if (!tame(a_.q, a_.k, h, a_.inner, most)) return last;
        if (back && !(tame(a_.g, a_.v, h, a_.width, a_.dropout ? a_.kept : 1.0f) && zeros_stay())) return last;
        const auto fills = [](const AssayChange &c) { return c.kind == ASSAY_FILL_TRUE || c.kind == ASSAY_FILL_FALSE; };
        const AssayChange *const end = a_.back_changes + a_.back_count;
        if (back && mask.kind == ASSAY_PLUS && std::any_of(a_.back_changes, end, fills)) return last;
        for (int64_t i = 0; i < M_; ++i) {
            const int64_t at = mask.offsets[h] + i * mask.row_stride;
            int64_t n = N_;
            if (mask.kind == ASSAY_PLUS) {
                const float *row = static_cast<const float *>(mask.data) + at;
                while (n > 0 && row[n - 1] <= HIDDEN) --n;
            } else {
                const uint8_t *row = static_cast<const uint8_t *>(mask.data) + at;
                const bool hides = mask.kind == ASSAY_FILL_TRUE;
                while (n > 0 && (row[n - 1] != 0) == hides) --n;
            }
            if (n > 0) last[i] = static_cast<int32_t>(n);
        }
        return last;
    }

    // Whether the changes of gradients map zero to zero.
    bool zeros_stay() const {
        for (int32_t c = 0; c < a_.back_count; ++c) {
            const AssayChange &change = a_.back_changes[c];
            const float of_zero = change.kind == ASSAY_TIMES  ? 0.0f * change.value
                                  : change.kind == ASSAY_OVER ? 0.0f / change.value
                                  : change.kind == ASSAY_PLUS ? 1.0f
                                                              : change.value;
            if (!(of_zero == 0.0f)) return false;
        }
        return true;
    }

    // The number of keys that any of these queries sees, rounded up to whole blocks, so that products have
    // few different shapes.
    int64_t most(const std::vector<int32_t> &last, int64_t first, int64_t end) const {
        int64_t found = 1;
        for (int64_t i = first; i < end; ++i) found = last[i] > found ? last[i] : found;
        found = (found + ROWS - 1) / ROWS * ROWS;
        return found < N_ ? found : N_;
    }

    void changed(const AssayChange *changes, int32_t count, int64_t h, int64_t i, float *x, int64_t n) const {
        for (int32_t c = 0; c < count; ++c) {
            const AssayChange &change = changes[c];
            RowChange row = {change.kind, change.value, nullptr, change.column_stride};
            if (change.kind >= ASSAY_FILL_TRUE) {
                const int64_t at = change.offsets[h] + i * change.row_stride;
                row.data = static_cast<const char *>(change.data) + at * (change.kind == ASSAY_PLUS ? 4 : 1);
            }
            f_.change(row, x, n);
        }
    }

    // Multiplies x by the mask's row and by `kept`; `words` holds n + 8 elements.
    void dropped(int64_t h, int64_t i, float *x, int64_t n, float *words) const {
        const int64_t first = (h * M_ + i) * N_, start = first & ~int64_t(3);
        assay_keep_some(a_.key0, a_.key1, a_.step, a_.stream, start, n + (first - start), a_.below, words);
        f_.drop(words + (first - start), a_.kept, x, n);
    }

    bool rows_forward(int64_t h, const Head &head, int64_t first, int64_t end) const {
        const int64_t n = most(head.last, first, end), rows = end - first;
        std::vector<char *> at;
        if (!scratch.divide({rows * n * 4, rows * n * 4, (n + 8) * 4}, at)) return false;
        float *s = reinterpret_cast<float *>(at[0]), *p = reinterpret_cast<float *>(at[1]);
        if (!product(operand(a_.q, h, first, rows), operand(a_.k, h, 0, n), a_.inner, s)) return false;
        for (int64_t r = 0; r < rows; ++r) {
            changed(a_.changes, a_.change_count, h, first + r, s + r * n, n);
            f_.softmax(s + r * n, p + r * n, 1, n, a_.safe != 0);
            if (a_.dropout) dropped(h, first + r, p + r * n, n, reinterpret_cast<float *>(at[2]));
        }
        const AssayOperand x = {p, START, rows, n, 1, nullptr, a_.p_out.bits, 0};
        float *out = a_.out + (h * M_ + first) * a_.width;
        return product(x, operand(a_.v_out, h, 0, a_.width, head.of_values.data()), n, out);
    }

    // Rows, N wide, of probabilities after dropout and of the scores' gradients; zeros where nothing is
    // computed.
    bool rows_backward(int64_t h, const Head &head, int64_t first, int64_t end, float *probabilities, float *gradients,
                       float *s, float *g, float *words) const {
        const int64_t n = most(head.last, first, end), rows = end - first;
        if (!product(operand(a_.q, h, first, rows), operand(a_.k, h, 0, n), a_.inner, s)) return false;
        if (!product(operand(a_.g, h, first, rows), operand(a_.v, h, 0, n), a_.width, g)) return false;
        for (int64_t r = 0; r < rows; ++r) {
            float *p = probabilities + r * N_, *d = gradients + r * N_, *of_p = g + r * n;
            changed(a_.changes, a_.change_count, h, first + r, s + r * n, n);
            f_.softmax(s + r * n, p, 1, n, a_.safe != 0);
            // A row with a NaN is NaN in all its elements, including those not computed.
            const bool lost = p[0] != p[0];
            const int64_t wide = lost ? N_ : n;
            if (lost)
                for (int64_t j = 0; j < N_; ++j) p[j] = d[j] = float_of(NOT_A_NUMBER);
            if (a_.dropout) dropped(h, first + r, of_p, n, words);
            if (!lost) f_.softmax_grad(of_p, p, d, 1, n);
            changed(a_.back_changes, a_.back_count, h, first + r, d, wide);
            if (a_.dropout && !lost) f_.drop(words + ((h * M_ + first + r) * N_ & 3), a_.kept, p, n);
            std::memset(p + wide, 0, (N_ - wide) * 4);
            std::memset(d + wide, 0, (N_ - wide) * 4);
        }
        return true;
    }

    // The gradient of the queries, rows `first` to `end` - 1, from that of the scores.
    bool queries(int64_t h, const Head &head, int64_t first, int64_t end, const float *gradients) const {
        const AssayOperand x = {gradients, START, end - first, N_, 1, nullptr, a_.s_q.bits, 0};
        const int64_t n = most(head.last, first, end);  // after it come zeros, or NaN in a row that is all NaN
        return product(x, operand(a_.k_q, h, 0, a_.inner, head.of_keys.data()), n,
                       a_.grad_q + (h * M_ + first) * a_.inner);
    }

    bool head_backward(int64_t h) const {
        const Head head = {{}, exponents(a_.k_q, h, a_.inner, N_), last_of(h, true)};
        return M_ * N_ <= a_.whole ? whole(h, head) : twice(h, head);
    }

    bool whole(int64_t h, const Head &head) const {
        const int64_t R = ROWS < M_ ? ROWS : M_;
        std::vector<char *> at;
        if (!scratch.divide({M_ * N_ * 4, M_ * N_ * 4, R * N_ * 4, R * N_ * 4, (N_ + 8) * 4}, at)) return false;
        std::vector<float *> table;
        for (char *piece : at) table.push_back(reinterpret_cast<float *>(piece));
        for (int64_t first = 0; first < M_; first += ROWS) {
            const int64_t end = first + ROWS < M_ ? first + ROWS : M_;
            float *p = table[0] + first * N_, *d = table[1] + first * N_;
            if (!rows_backward(h, head, first, end, p, d, table[2], table[3], table[4])) return false;
            if (!queries(h, head, first, end, d)) return false;
        }
        const AssayOperand p = {table[0], START, N_, 1, N_, nullptr, a_.p_v.bits, 0};
        const AssayOperand s = {table[1], START, N_, 1, N_, nullptr, a_.s_k.bits, 0};
        return turned(p, operand(a_.g_v, h, 0, a_.width), a_.v_turned, a_.grad_v + h * N_ * a_.width) &&
               turned(s, operand(a_.q_k, h, 0, a_.inner), a_.k_turned, a_.grad_k + h * N_ * a_.inner);
    }

    bool turned(const AssayOperand &x, const AssayOperand &y, int32_t swap, float *out) const {
        return swap ? product(y, x, M_, out) : product(x, y, M_, out);
    }

    // A gradient that is summed over queries while its head is computed a second time.
    struct Sums {
        const AssayMatrix &other;                     // the rows multiplied with the columns
        int64_t columns;                              // of the result
        int32_t bits;                                 // of the columns
        std::vector<int32_t> largest, exponents_of_other;
        std::vector<float> factor;
        std::vector<int32_t> mask;
        std::vector<int32_t> integers;                // [columns][M] of the other side
        std::vector<int64_t> sums;                    // [N][columns]
    };

    static float factor_of(int32_t e, int32_t bits) {
        return e == SENTINEL ? 1.0f : op_power_of_two(bits - e);
    }

    Sums sums_of(const AssayMatrix &other, int64_t h, int64_t columns, int32_t bits) const {
        Sums to = {other, columns, bits, std::vector<int32_t>(N_, 0), exponents(other, h, columns, M_), {}, {}, {}, {}};
        to.integers.resize(columns * M_);
        to.sums.assign(N_ * columns, 0);
        for (int64_t c = 0; c < columns; ++c) {
            const int32_t e = to.exponents_of_other[c], mask = e == SENTINEL ? 0 : -1;
            const float factor = factor_of(e, other.bits);
            const float *from = other.data + other.offsets[h] + c * other.row_stride;
            for (int64_t i = 0; i < M_; ++i)
                f_.integers(from + i * other.term_stride, &factor, &mask, &to.integers[c * M_ + i], 1);
        }
        return to;
    }

    static void scale(Sums &to) {
        for (int32_t &e : to.largest) {
            e = exponent_of(e);
            to.factor.push_back(factor_of(e, to.bits));
            to.mask.push_back(e == SENTINEL ? 0 : -1);
        }
    }

    bool add(Sums &to, const float *rows, int64_t first, int64_t count, int32_t *whole, int64_t *part) const {
        for (int64_t r = 0; r < count; ++r)
            f_.integers(rows + r * N_, to.factor.data(), to.mask.data(), whole + r * N_, N_);
        const AssayOperand x = {whole, START, N_, 1, N_, nullptr, to.bits, 1};
        const AssayOperand y = {&to.integers[first], START, to.columns, M_, 1, nullptr, to.other.bits, 1};
        if (!product(x, y, count, part)) return false;
        for (int64_t i = 0; i < N_ * to.columns; ++i) to.sums[i] += part[i];
        return true;
    }

    // arithmetic.md section 4: one rounding of every sum.
    void round_sums(const Sums &to, bool swap, float *out) const {
        for (int64_t j = 0; j < N_; ++j)
            for (int64_t c = 0; c < to.columns; ++c) {
                const int32_t ex = to.largest[j], ey = to.exponents_of_other[c];
                float &to_here = out[swap ? c * N_ + j : j * to.columns + c];
                if (ex == SENTINEL || ey == SENTINEL) {
                    to_here = float_of(NOT_A_NUMBER);
                    continue;
                }
                const int64_t e = ex + ey - to.bits - to.other.bits;
                to_here = round_scaled(to.sums[j * to.columns + c], double_power_of_two(e));
            }
    }

    bool twice(int64_t h, const Head &head) const {
        const int64_t widest = a_.inner > a_.width ? a_.inner : a_.width, table = ROWS * N_ * 4;
        std::vector<char *> at;
        if (!scratch.divide({table, table, table, table, (N_ + 8) * 4, N_ * widest * 8}, at)) return false;
        float *p = reinterpret_cast<float *>(at[0]), *d = reinterpret_cast<float *>(at[1]);
        float *s = reinterpret_cast<float *>(at[2]), *g = reinterpret_cast<float *>(at[3]);
        float *words = reinterpret_cast<float *>(at[4]);
        int64_t *part = reinterpret_cast<int64_t *>(at[5]);
        Sums of_values = sums_of(a_.g_v, h, a_.width, a_.p_v.bits), of_keys = sums_of(a_.q_k, h, a_.inner, a_.s_k.bits);
        for (int turn = 0; turn < 2; ++turn) {
            for (int64_t first = 0; first < M_; first += ROWS) {
                const int64_t end = first + ROWS < M_ ? first + ROWS : M_, rows = end - first;
                if (!rows_backward(h, head, first, end, p, d, s, g, words)) return false;
                if (turn == 0) {
                    for (int64_t r = 0; r < rows; ++r) {
                        f_.largest(p + r * N_, of_values.largest.data(), N_);
                        f_.largest(d + r * N_, of_keys.largest.data(), N_);
                    }
                    if (!queries(h, head, first, end, d)) return false;
                    continue;
                }
                int32_t *whole = reinterpret_cast<int32_t *>(s);
                if (!add(of_values, p, first, rows, whole, part)) return false;
                if (!add(of_keys, d, first, rows, whole, part)) return false;
            }
            if (turn == 0) scale(of_values), scale(of_keys);
        }
        round_sums(of_values, a_.v_turned != 0, a_.grad_v + h * N_ * a_.width);
        round_sums(of_keys, a_.k_turned != 0, a_.grad_k + h * N_ * a_.inner);
        return true;
    }
};

}  // namespace
}  // namespace assay

#define ASSAY_EXPORT __attribute__((visibility("default")))

extern "C" {

// Returns 0, or 1 when out of memory.
ASSAY_EXPORT int32_t assay_attention(const AssayAttention *a) { return assay::Attention(*a).forward() ? 0 : 1; }

ASSAY_EXPORT int32_t assay_attention_grad(const AssayAttention *a) { return assay::Attention(*a).backward() ? 0 : 1; }
}
