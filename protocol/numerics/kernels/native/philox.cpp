// Philox4x32-10 words, and masks made from them: arithmetic.md section 7, protocol/numerics/philox.py.
// Integers only, so every instruction set and any number of threads give the same bits.
#include <cstdint>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define ASSAY_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define ASSAY_CLONES
#endif
#define ASSAY_EXPORT __attribute__((visibility("default")))

namespace {

constexpr int LANES = 64;              // counters in parallel, four words each; 1.4 ns per word, 5.5 with 16 lanes
constexpr int64_t TASK = 1 << 14;      // words of one task: 64 KiB of results

struct Draw {
    uint32_t key[2], step, stream;
    uint64_t below;  // for a mask: a word below it gives 1.0f, any other 0.0f
    int64_t count;
    uint32_t *words;
    float *mask;
};

// Computes words `start` to `stop` - 1 and writes them to results that begin with word `origin`; `start` is a
// multiple of four.
ASSAY_CLONES void fill(const Draw &d, int64_t start, int64_t stop, int64_t origin) {
    for (int64_t first = start; first < stop; first += 4 * LANES) {
        uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES], words[4 * LANES];
        for (int l = 0; l < LANES; ++l) {
            const uint64_t block = static_cast<uint64_t>(first / 4 + l);
            c0[l] = static_cast<uint32_t>(block);
            c1[l] = static_cast<uint32_t>(block >> 32);
            c2[l] = d.step;
            c3[l] = d.stream;
        }
        uint32_t k0 = d.key[0], k1 = d.key[1];
        for (int round = 0; round < 10; ++round) {
            for (int l = 0; l < LANES; ++l) {
                const uint64_t p0 = static_cast<uint64_t>(c0[l]) * 0xD2511F53u;
                const uint64_t p1 = static_cast<uint64_t>(c2[l]) * 0xCD9E8D57u;
                c0[l] = static_cast<uint32_t>(p1 >> 32) ^ c1[l] ^ k0;
                c1[l] = static_cast<uint32_t>(p1);
                c2[l] = static_cast<uint32_t>(p0 >> 32) ^ c3[l] ^ k1;
                c3[l] = static_cast<uint32_t>(p0);
            }
            k0 += 0x9E3779B9u;
            k1 += 0xBB67AE85u;
        }
        for (int l = 0; l < LANES; ++l) {
            words[4 * l] = c0[l];
            words[4 * l + 1] = c1[l];
            words[4 * l + 2] = c2[l];
            words[4 * l + 3] = c3[l];
        }
        const int64_t rest = stop - first;
        const int n = rest < 4 * LANES ? static_cast<int>(rest) : 4 * LANES;
        if (d.mask == nullptr) {
            for (int i = 0; i < n; ++i) d.words[first - origin + i] = words[i];
        } else {
            for (int i = 0; i < n; ++i) d.mask[first - origin + i] = words[i] < d.below ? 1.0f : 0.0f;
        }
    }
}

void run(const Draw &d, int32_t threads) {
    const int64_t tasks = (d.count + TASK - 1) / TASK;
#pragma omp parallel for num_threads(threads) schedule(static) if (tasks > 1)
    for (int64_t task = 0; task < tasks; ++task) {
        const int64_t start = task * TASK;
        fill(d, start, start + TASK < d.count ? start + TASK : d.count, 0);
    }
}

}  // namespace

extern "C" {

ASSAY_EXPORT void assay_philox(
    uint32_t key0, uint32_t key1, uint32_t step, uint32_t stream, int64_t count, int32_t threads, uint32_t *words) {
    run(Draw{{key0, key1}, step, stream, 0, count, words, nullptr}, threads);
}

ASSAY_EXPORT void assay_keep_mask(
    uint32_t key0, uint32_t key1, uint32_t step, uint32_t stream, int64_t count, int32_t threads, uint64_t below,
    float *mask) {
    run(Draw{{key0, key1}, step, stream, below, count, nullptr, mask}, threads);
}

// Elements `start` to `start` + `count` - 1 of the mask, by the calling thread; `start` is a multiple of four.
void assay_keep_some(
    uint32_t key0, uint32_t key1, uint32_t step, uint32_t stream, int64_t start, int64_t count, uint64_t below,
    float *mask) {
    const Draw part{{key0, key1}, step, stream, below, count, nullptr, mask};
    fill(part, start, start + count, start);
}

}  // extern "C"
