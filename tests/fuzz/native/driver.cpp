// Calls the compiled libraries in a separate process, without Python and torch, for sanitizers: every buffer
// has exactly its size, every instruction set of this processor runs every call, and every result is
// compared. Every call is made in two floating-point modes. First the thread flushes subnormals and rounds
// upward; OpenMP's threads inherit the mode of the thread that starts them and keep it. Then the thread has
// the default mode.
//
// Input (a file, little-endian): a sequence of calls. A call is an i64 kind; an i64 count and that many i64
// numbers; an i64 count and that many buffers, each an i64 size and its bytes (size -1: null). The last
// RESULTS[kind] buffers hold the expected results; where one is null, the function gets null. Exit code 0:
// all agree. 1: a result differs, or the caller's floating-point mode is not restored; stderr tells which. 2:
// the file cannot be read. 3: out of memory.
#include <algorithm>
#include <cfenv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "attention.h"
#include "channels.h"
#include "convolution.h"
#include "fused.h"
#include "lanes.h"
#include "problem.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

extern "C" {
const char *assay_variant_name(int32_t);
int32_t assay_variant_supported(int32_t);
int32_t assay_product(const AssayProblem *);
void assay_map(int32_t, int32_t, const float *, const float *, float *, int64_t, int32_t);
void assay_softmax(int32_t, const float *, float *, int64_t, int64_t, int32_t, int32_t);
void assay_softmax_grad(int32_t, const float *, const float *, float *, int64_t, int64_t, int32_t);
void assay_sum_rows(int32_t, const float *, float *, int64_t, int64_t, int32_t);
void assay_layer_norm(int32_t, const float *, const float *, const float *, float, float *, float *, float *, int64_t,
                      int64_t, int32_t);
void assay_layer_norm_grad(int32_t, const float *, const float *, const float *, const float *, const float *, float *,
                           int64_t, int64_t, int32_t);
void assay_sum_columns(int32_t, const float *, const float *, const float *, const float *, float *, int64_t, int64_t,
                       int32_t);
void assay_adamw(int32_t, const assay::Adam *, int64_t, int32_t);
void assay_canonical(int32_t, float *, int64_t, int32_t);
void assay_pair(int32_t, int32_t, const float *, const float *, void *, int64_t, int32_t, int32_t, int32_t);
void assay_select(int32_t, const uint8_t *, const float *, const float *, float *, int64_t, int32_t, int32_t, int32_t);
void assay_lstm_cell(int32_t, const assay::LstmCell *, int64_t, int32_t);
void assay_lstm_cell_grad(int32_t, const assay::LstmCellGrad *, int64_t, int32_t);
void assay_lane_emit(int32_t, const assay::Emit *, int64_t, int32_t);
void assay_lane_absorb(int32_t, const assay::Absorb *, int64_t, int32_t);
void assay_philox(uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int32_t, uint32_t *);
void assay_keep_mask(uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int32_t, uint64_t, float *);
void assay_keep_some(uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int64_t, uint64_t, float *);
void assay_log_softmax(int32_t, const float *, float *, int64_t, int64_t, int32_t);
void assay_log_softmax_grad(int32_t, const float *, const float *, float *, int64_t, int64_t, int32_t);
void assay_sgd(int32_t, const assay::Sgd *, int64_t, int32_t);
void assay_scatter_sum(int32_t, const float *, const int32_t *, float *, int64_t, int64_t, int64_t, int32_t);
int32_t assay_attention(const AssayAttention *);
int32_t assay_attention_grad(const AssayAttention *);
int32_t assay_convolution(const AssayConvolution *);
void assay_channel_statistics(int32_t, const AssayChannels *, int32_t);
void assay_channel_sums(int32_t, const AssayChannels *, int32_t);
void assay_channel_normalise(int32_t, const AssayChannels *, int32_t);
void assay_channel_grad(int32_t, const AssayChannels *, int32_t);
void assay_sha256_rows(uint8_t, const uint8_t *, int64_t, int64_t, uint8_t *);
void assay_sha256_salted_rows(const uint8_t *, const uint8_t *, int64_t, int64_t, int64_t, uint8_t *);
}

namespace {

enum Kind { PRODUCT, MAP, SOFTMAX, SOFTMAX_GRAD, SUM_ROWS, LAYER_NORM, LAYER_NORM_GRAD, SUM_COLUMNS, ADAMW, CANONICAL,
            PHILOX, KEEP_MASK, ATTENTION, ATTENTION_GRAD, CONVOLUTION, STATISTICS, SUMS, NORMALISE, CHANNEL_GRAD, SHA256,
            LOG_SOFTMAX, LOG_SOFTMAX_GRAD, SGD, SCATTER_SUM, PAIR, SELECT, LSTM_CELL, LSTM_CELL_GRAD, LANE_EMIT,
            LANE_ABSORB, KEEP_SOME, SHA256_SALTED, KINDS };
constexpr int RESULTS[KINDS] = {1, 1, 1, 1, 1, 3, 1, 1, 3, 1, 1, 1, 1, 3, 1, 3,
                                2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 3, 2, 4, 2, 1, 1};

// The floating-point mode of the calling thread, which another library may have changed.
uint32_t mode() {
#if defined(__x86_64__)
    return _mm_getcsr() & ~0x3fu;  // without the exception flags
#else
    return static_cast<uint32_t>(std::fegetround());
#endif
}

void set_mode(bool odd) {
#if defined(__x86_64__)
    _mm_setcsr(odd ? 0x1f80u | 0x8000u | 0x40u | 0x4000u : 0x1f80u);  // FTZ, DAZ, round upward
#else
    std::fesetround(odd ? FE_UPWARD : FE_TONEAREST);
#endif
}

// A buffer of exactly this size, so that the sanitizer detects an access to the first byte beyond it.
struct Bytes {
    char *data = nullptr;
    int64_t size = -1;
    explicit Bytes(int64_t n) : data(n < 0 ? nullptr : static_cast<char *>(std::malloc(n))), size(n) {}
    Bytes(Bytes &&other) : data(other.data), size(other.size) { other.data = nullptr; }
    ~Bytes() { std::free(data); }
    template <class T> T *as() const { return reinterpret_cast<T *>(data); }
};

struct Call {
    int64_t kind = 0;
    std::vector<int64_t> n;
    std::vector<Bytes> given, right;
};

bool read_one(std::FILE *file, int64_t &value) { return std::fread(&value, 8, 1, file) == 1; }

bool read(std::FILE *file, Call &call) {
    int64_t count = 0;
    if (!read_one(file, call.kind)) return false;
    bool good = call.kind >= 0 && call.kind < KINDS && read_one(file, count);
    for (int64_t i = 0, value = 0; good && i < count; ++i) good = read_one(file, value), call.n.push_back(value);
    good = good && read_one(file, count);
    for (int64_t i = 0, size = 0; good && i < count; ++i) {
        good = read_one(file, size);
        Bytes bytes(size);
        good = good && (size <= 0 || std::fread(bytes.data, size, 1, file) == 1);
        (i + RESULTS[call.kind] < count ? call.given : call.right).push_back(std::move(bytes));
    }
    if (!good) std::exit(2);
    return true;
}

AssayOperand operand(const Call &c, int64_t buffer, int64_t number) {
    return {c.given[buffer].data,         c.given[buffer + 1].as<int64_t>(), c.n[number],
            c.n[number + 1],              c.n[number + 2],                   c.given[buffer + 2].as<int32_t>(),
            static_cast<int32_t>(c.n[number + 3]), static_cast<int32_t>(c.n[number + 4])};
}

// Numbers of an attention: its sizes and switches, three for each matrix, three for each change.
enum { SIZES = 21, MATRICES = 8 };

void attention(const Call &c, int32_t variant, int32_t threads, const std::vector<Bytes> &out) {
    const std::vector<int64_t> &n = c.n;
    const float *values = c.given[0].as<const float>();
    AssayAttention a = {};
    a.heads = n[0], a.queries = n[1], a.keys = n[2], a.inner = n[3], a.width = n[4];
    a.safe = n[5], a.dropout = n[6], a.key0 = n[7], a.key1 = n[8], a.step = n[9], a.stream = n[10], a.below = n[11];
    a.v_turned = n[12], a.k_turned = n[13], a.whole = n[14];
    a.p_out.bits = n[15], a.p_v.bits = n[16], a.s_q.bits = n[17], a.s_k.bits = n[18];
    a.change_count = n[19], a.back_count = n[20];
    a.kept = values[0], a.variant = variant, a.threads = threads;
    AssayMatrix *const matrices[MATRICES] = {&a.q, &a.k, &a.v_out, &a.g, &a.v, &a.g_v, &a.k_q, &a.q_k};
    size_t number = SIZES, buffer = 1;
    for (AssayMatrix *matrix : matrices) {
        *matrix = {c.given[buffer].as<const float>(), c.given[buffer + 1].as<const int64_t>(), n[number], n[number + 1],
                   static_cast<int32_t>(n[number + 2])};
        number += 3, buffer += 2;
    }
    std::vector<AssayChange> changes;
    for (int64_t i = 0; i < n[19] + n[20]; ++i, number += 3, buffer += 2)
        changes.push_back({static_cast<int32_t>(n[number]), values[1 + i], c.given[buffer].data,
                           c.given[buffer + 1].as<const int64_t>(), n[number + 1], n[number + 2]});
    a.changes = changes.data(), a.back_changes = changes.data() + n[19];
    if (c.kind == ATTENTION)
        a.out = out[0].as<float>();
    else
        a.grad_v = out[0].as<float>(), a.grad_q = out[1].as<float>(), a.grad_k = out[2].as<float>();
    if ((c.kind == ATTENTION ? assay_attention(&a) : assay_attention_grad(&a)) != 0) std::exit(3);
}

void convolution(const Call &c, int32_t variant, int32_t threads, const std::vector<Bytes> &out) {
    const std::vector<int64_t> &n = c.n;
    const AssayConvolution p = {c.given[0].as<const float>(), c.given[1].as<const float>(), c.given[2].as<const float>(),
                                out[0].as<float>(), n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], {n[8], n[9]},
                                {n[10], n[11]}, {n[12], n[13]}, {n[14], n[15]}, static_cast<int32_t>(n[16]),
                                static_cast<int32_t>(n[17]), static_cast<int32_t>(n[18]), variant, threads};
    if (assay_convolution(&p) != 0) std::exit(3);
}

void channels(const Call &c, int32_t variant, int32_t threads, const std::vector<Bytes> &out) {
    const auto in = [&](size_t i) { return c.given[i].as<const float>(); };
    const auto to = [&](size_t i) { return i < out.size() ? out[i].as<float>() : nullptr; };
    AssayChannels t = {in(1), in(2), in(3), in(4), in(5), in(6), in(7), in(8), nullptr, nullptr, nullptr, nullptr,
                       c.n[0], c.n[1], c.n[2], *in(0)};
    switch (c.kind) {
    case STATISTICS: return t.first = to(0), t.second = to(1), t.third = to(2), assay_channel_statistics(variant, &t, threads);
    case SUMS: return t.first = to(0), t.second = to(1), assay_channel_sums(variant, &t, threads);
    case NORMALISE: return t.y = to(0), assay_channel_normalise(variant, &t, threads);
    default: return t.y = to(0), assay_channel_grad(variant, &t, threads);
    }
}

void lanes(const Call &c, int32_t variant, int32_t threads, const std::vector<Bytes> &out) {
    const float *s = c.given[0].as<const float>();
    const auto in = [&](size_t i) { return c.given[i].as<const float>(); };
    const auto message = [&](size_t i) {
        return assay::Message{c.given[i].as<const uint8_t>(), c.given[i + 1].as<const uint8_t>(),
                              c.given[i + 2].as<const int32_t>()};
    };
    if (c.kind == LANE_EMIT) {
        const assay::Emit t = {in(1), in(2), in(3), out[0].as<uint8_t>(), out[1].as<uint8_t>(), out[2].as<int32_t>(),
                               out[3].as<float>(), c.n[1], s[0], s[1]};
        return assay_lane_emit(variant, &t, c.n[0], threads);
    }
    assay::Absorb t = {in(1), in(2), message(3), {}, out[0].as<float>(), out[1].as<float>(), c.n[1],
                       static_cast<int32_t>(c.n[2]), static_cast<int32_t>(c.n[3]), s[0], s[1], s[2]};
    for (int32_t w = 0; w < t.messages; ++w) t.inbox[w] = message(6 + 3 * w);
    assay_lane_absorb(variant, &t, c.n[0], threads);
}

void run(const Call &c, int32_t variant, int32_t threads, const std::vector<Bytes> &out) {
    const auto in = [&](size_t i) { return c.given[i].as<const float>(); };
    const auto to = [&](size_t i) { return out[i].as<float>(); };
    const auto bytes = [&](size_t i) { return c.given[i].as<const uint8_t>(); };
    switch (c.kind) {
    case PRODUCT: {
        const AssayProblem p = {operand(c, 0, 0), operand(c, 3, 5), c.n[10], c.n[11], out[0].data, in(6), variant, threads};
        if (assay_product(&p) != 0) std::exit(3);
        break;
    }
    case MAP: return assay_map(variant, c.n[0], in(0), in(1), to(0), c.n[1], threads);
    case SOFTMAX: return assay_softmax(variant, in(0), to(0), c.n[0], c.n[1], c.n[2], threads);
    case SOFTMAX_GRAD: return assay_softmax_grad(variant, in(0), in(1), to(0), c.n[0], c.n[1], threads);
    case SUM_ROWS: return assay_sum_rows(variant, in(0), to(0), c.n[0], c.n[1], threads);
    case LAYER_NORM:
        return assay_layer_norm(variant, in(0), in(1), in(2), *in(3), to(0), to(1), to(2), c.n[0], c.n[1], threads);
    case LAYER_NORM_GRAD:
        return assay_layer_norm_grad(variant, in(0), in(1), in(2), in(3), in(4), to(0), c.n[0], c.n[1], threads);
    case SUM_COLUMNS:
        return assay_sum_columns(variant, in(0), in(1), in(2), in(3), to(0), c.n[0], c.n[1], threads);
    case ADAMW: {
        const float *s = in(4);
        const assay::Adam a = {in(0), in(1), in(2), in(3), to(0), to(1), to(2), s[0], s[1], s[2], s[3], s[4], s[5], s[6]};
        return assay_adamw(variant, &a, c.n[0], threads);
    }
    case CANONICAL:
        std::memcpy(out[0].data, c.given[0].data, out[0].size);
        return assay_canonical(variant, to(0), c.n[0], threads);
    case PHILOX: return assay_philox(c.n[0], c.n[1], c.n[2], c.n[3], c.n[4], threads, out[0].as<uint32_t>());
    case KEEP_MASK: return assay_keep_mask(c.n[0], c.n[1], c.n[2], c.n[3], c.n[4], threads, c.n[5], to(0));
    case LOG_SOFTMAX: return assay_log_softmax(variant, in(0), to(0), c.n[0], c.n[1], threads);
    case LOG_SOFTMAX_GRAD: return assay_log_softmax_grad(variant, in(0), in(1), to(0), c.n[0], c.n[1], threads);
    case SGD: {
        const float *s = in(3);
        const assay::Sgd a = {in(0), in(1), in(2), to(0), to(1), s[0], s[1], s[2], static_cast<int32_t>(c.n[1]),
                              static_cast<int32_t>(c.n[2])};
        return assay_sgd(variant, &a, c.n[0], threads);
    }
    case SCATTER_SUM:
        return assay_scatter_sum(variant, in(0), c.given[1].as<const int32_t>(), to(0), c.n[0], c.n[1], c.n[2], threads);
    case PAIR: {  // without a second array, both operands are the first
        const float *y = in(1) ? in(1) : in(0);
        return assay_pair(variant, c.n[0], in(0), y, out[0].data, c.n[1], c.n[2], c.n[3], threads);
    }
    case SELECT: return assay_select(variant, bytes(0), in(1), in(2), to(0), c.n[0], c.n[1], c.n[2], threads);
    case LSTM_CELL: {
        const assay::LstmCell t = {in(0), in(1), in(2), to(0), to(1), to(2), c.n[1]};
        return assay_lstm_cell(variant, &t, c.n[0], threads);
    }
    case LSTM_CELL_GRAD: {
        const assay::LstmCellGrad t = {in(0), in(1), in(2), in(3), in(4), in(5), in(6), to(0), to(1), c.n[1]};
        return assay_lstm_cell_grad(variant, &t, c.n[0], threads);
    }
    case LANE_EMIT: case LANE_ABSORB: return lanes(c, variant, threads, out);
    case KEEP_SOME: return assay_keep_some(c.n[0], c.n[1], c.n[2], c.n[3], c.n[4], c.n[5], c.n[6], to(0));
    case ATTENTION: case ATTENTION_GRAD: return attention(c, variant, threads, out);
    case CONVOLUTION: return convolution(c, variant, threads, out);
    case STATISTICS: case SUMS: case NORMALISE: case CHANNEL_GRAD: return channels(c, variant, threads, out);
    case SHA256: return assay_sha256_rows(c.n[0], bytes(0), c.n[1], c.n[2], out[0].as<uint8_t>());
    case SHA256_SALTED:
        return assay_sha256_salted_rows(bytes(0), bytes(1), c.n[0], c.n[1], c.n[2], out[0].as<uint8_t>());
    }
}

bool is_nan(const char *at) {
    uint32_t bits;
    std::memcpy(&bits, at, 4);
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

// The caller makes a product's NaNs canonical, so any NaN is accepted here.
bool same(const Call &c, const Bytes &found, const Bytes &right) {
    for (int64_t i = 0; i < right.size; i += 4)
        if (std::memcmp(found.data + i, right.data + i, std::min<int64_t>(4, right.size - i)) != 0)
            if (c.kind != PRODUCT || c.n[4] || !is_nan(found.data + i) || !is_nan(right.data + i)) return false;
    return true;
}

bool agrees(const Call &c, int64_t number, int32_t variant, int32_t threads, bool odd) {
    std::vector<Bytes> out;
    for (const Bytes &right : c.right) {
        out.emplace_back(right.size);
        if (right.size > 0) std::memset(out.back().data, 0xa5, right.size);
    }
    set_mode(odd);
    const uint32_t before = mode();
    run(c, variant, threads, out);
    const uint32_t after = mode();
    set_mode(false);
    if (before != after) {
        std::fprintf(stderr, "call %lld of kind %lld: its caller's floating-point mode is not given back\n",
                     static_cast<long long>(number), static_cast<long long>(c.kind));
        return false;
    }
    for (size_t i = 0; i < out.size(); ++i)
        if (!same(c, out[i], c.right[i])) {
            std::fprintf(stderr, "call %lld of kind %lld: wrong bits from %s on %d threads%s\n",
                         static_cast<long long>(number), static_cast<long long>(c.kind), assay_variant_name(variant),
                         threads, odd ? " of another floating-point mode" : "");
            return false;
        }
    return true;
}

}  // namespace

int main(int count, char **arguments) {
    std::FILE *file = count == 2 ? std::fopen(arguments[1], "rb") : nullptr;
    if (!file) return 2;
    int64_t calls = 0;
    for (;; ++calls) {
        Call call;
        if (!read(file, call)) break;
        for (int odd = 1; odd >= 0; --odd)
            for (int32_t variant = 0; assay_variant_name(variant); ++variant)
                for (int32_t threads = 1; assay_variant_supported(variant) && threads <= 2; ++threads)
                    if (!agrees(call, calls, variant, threads, odd != 0)) return 1;
    }
    std::fclose(file);
    std::printf("%lld\n", static_cast<long long>(calls));
    return 0;
}
