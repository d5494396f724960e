// Code shared by all convolutions (convolution_positions.h, convolution_weights.h, convolution_depthwise.h).
#pragma once
#include "convolution.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "mode.h"
#include "sets.h"
#include "sums.h"

namespace assay {
namespace {

struct Set {
    const Variant &product;
    const Convolver &own;
    const Depthwise &depthwise;
};

Set set_of(int32_t variant) { return {SETS[variant].products, SETS[variant].convolver, SETS[variant].depthwise}; }

constexpr int64_t CHUNK_PAIRS = CHUNK / 2;
constexpr int64_t NEAR = 1 << 18;         // bytes of packed columns that stay in a core's cache
constexpr int64_t SLACK = 64;             // bytes that copying a part may read or write past its end
constexpr int64_t BLOCK_PAIRS = 1 << 11;  // pairs of a weight gradient's terms multiplied at a time: 256 KiB of columns
constexpr int BYTE_OFFSET = 64;           // added to plane l to get unsigned bytes
constexpr uint32_t ZEROS[PANEL_Y + 16] = {0};

// Planes of an image that are stored: the third is computed for each panel of columns.
constexpr int kept_of(int planes) { return planes < 2 ? 1 : 2; }

// Bounds of the norms of the planes l and h + l: |l| <= 64 in every term of a chunk, |h + l| <= |h| + |l|.
inline void norms_beside(const float *high, int64_t chunks, int plane, float *out) {
    constexpr float LOW = 512.0f;  // sqrt(CHUNK * 64^2)
    static_assert(CHUNK * 64 * 64 == 512 * 512, "LOW");
    for (int64_t c = 0; c < chunks; ++c) {
        const float norm = plane == 1 ? LOW : std::sqrt(high[c]) + LOW;
        out[c] = norm * norm;
    }
}

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t floored(int64_t a, int64_t b) { return a >= 0 ? a / b : -up(-a, b); }

// Memory blocks from a thread's earlier convolutions, kept because fresh memory costs a page fault for every
// 4 KiB.
class Kept {
  public:
    ~Kept() {
        for (const Block &block : blocks_) std::free(block.at);
    }

    // A block of at least that many bytes, or null.
    void *take(int64_t bytes, int64_t &size) {
        auto best = blocks_.end();
        for (auto block = blocks_.begin(); block != blocks_.end(); ++block)
            if (block->size >= bytes && (best == blocks_.end() || block->size < best->size)) best = block;
        if (best != blocks_.end()) {
            void *const at = best->at;
            size = best->size, held_ -= size;
            blocks_.erase(best);
            return at;
        }
        void *at = nullptr;
        size = bytes;
        return posix_memalign(&at, 64, static_cast<size_t>(bytes)) == 0 ? at : nullptr;
    }

    void give(void *at, int64_t size) {
        if (held_ + size > MOST) return std::free(at);
        blocks_.push_back({at, size});
        held_ += size;
    }

  private:
    struct Block {
        void *at;
        int64_t size;
    };
    static constexpr int64_t MOST = 32 << 20;
    std::vector<Block> blocks_;
    int64_t held_ = 0;
};

inline thread_local Kept kept;

// Memory that is returned to `kept` on destruction; null when out of memory.
template <class T> class Buffer {
  public:
    explicit Buffer(int64_t count)
        : data_(static_cast<T *>(kept.take(count * static_cast<int64_t>(sizeof(T)) + SLACK, size_))) {}
    ~Buffer() {
        if (data_) kept.give(data_, size_);
    }
    Buffer(const Buffer &) = delete;
    Buffer &operator=(const Buffer &) = delete;
    explicit operator bool() const { return data_ != nullptr; }
    operator T *() const { return data_; }

  private:
    int64_t size_ = 0;
    T *data_;
};

}  // namespace
}  // namespace assay
