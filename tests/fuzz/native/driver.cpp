// Calls of the compiled library as a process of its own, without Python and torch, for sanitizers: every buffer is
// allocated at exactly its size, every instruction set of this processor runs every call, every result is compared.
//
// Input (a file, little-endian): calls one after the other. A call is i64 kind, i64 count and as many i64 numbers, i64
// count and as many buffers, each i64 bytes and the bytes (bytes -1: null). The last `results` buffers hold what must
// come out. Exit code 0: all agree. 1: one does not, said on stderr. 2: the file cannot be read.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "fused.h"
#include "problem.h"

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
void assay_philox(uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int32_t, uint32_t *);
void assay_keep_mask(uint32_t, uint32_t, uint32_t, uint32_t, int64_t, int32_t, uint64_t, float *);
}

namespace {

enum Kind { PRODUCT, MAP, SOFTMAX, SOFTMAX_GRAD, SUM_ROWS, LAYER_NORM, LAYER_NORM_GRAD, SUM_COLUMNS, ADAMW, CANONICAL,
            PHILOX, KEEP_MASK, KINDS };
constexpr int RESULTS[KINDS] = {1, 1, 1, 1, 1, 3, 1, 1, 3, 1, 1, 1};

// Exactly as many bytes as there are, so that the sanitizer sees the first one beyond.
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

void run(const Call &c, int32_t variant, int32_t threads, const std::vector<Bytes> &out) {
    const auto in = [&](size_t i) { return c.given[i].as<const float>(); };
    const auto to = [&](size_t i) { return out[i].as<float>(); };
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
    }
}

bool is_nan(const char *at) {
    uint32_t bits;
    std::memcpy(&bits, at, 4);
    return (bits & 0x7fffffffu) > 0x7f800000u;
}

// A product's NaN is made canonical by who stores it; any NaN does.
bool same(const Call &c, const Bytes &found, const Bytes &right) {
    for (int64_t i = 0; i < right.size; i += 4)
        if (std::memcmp(found.data + i, right.data + i, 4) != 0)
            if (c.kind != PRODUCT || c.n[4] || !is_nan(found.data + i) || !is_nan(right.data + i)) return false;
    return true;
}

bool agrees(const Call &c, int64_t number, int32_t variant, int32_t threads) {
    std::vector<Bytes> out;
    for (const Bytes &right : c.right) {
        out.emplace_back(right.size);
        std::memset(out.back().data, 0xa5, right.size);
    }
    run(c, variant, threads, out);
    for (size_t i = 0; i < out.size(); ++i)
        if (!same(c, out[i], c.right[i])) {
            std::fprintf(stderr, "call %lld of kind %lld: wrong bits from %s on %d threads\n",
                         static_cast<long long>(number), static_cast<long long>(c.kind), assay_variant_name(variant),
                         threads);
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
        for (int32_t variant = 0; assay_variant_name(variant); ++variant)
            for (int32_t threads = 1; assay_variant_supported(variant) && threads <= 2; ++threads)
                if (!agrees(call, calls, variant, threads)) return 1;
    }
    std::fclose(file);
    std::printf("%lld\n", static_cast<long long>(calls));
    return 0;
}
