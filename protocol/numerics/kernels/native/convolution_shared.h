// What both kinds of convolution (convolution_positions.h, convolution_weights.h) are written with.
#pragma once
#include "convolution.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "convolution_sums.h"
#include "mode.h"
#include "variant.h"

namespace assay {
namespace {

struct Set {
    const Variant &product;
    const Convolver &own;
};

Set set_of(int32_t variant) {
    switch (variant) {
        case 0: return {AVX512VNNI, CONVOLVER_AVX512VNNI};
        case 1: return {AVX2, CONVOLVER_AVX2};
        case 2: return {BASELINE, CONVOLVER_BASELINE};
        default: return {PORTABLE, CONVOLVER_PORTABLE};
    }
}

constexpr int64_t CHUNK_PAIRS = CHUNK / 2;
constexpr int64_t NEAR = 1 << 18;         // bytes of packed columns that stay in a core's cache
constexpr int64_t SLACK = 64;             // bytes that copying a part may read or write behind its end
constexpr int64_t BLOCK_PAIRS = 1 << 11;  // pairs of a weight gradient's terms multiplied at a time: 256 KiB of columns
constexpr uint32_t ZEROS[PANEL_Y + 16] = {0};

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t floored(int64_t a, int64_t b) { return a >= 0 ? a / b : -up(-a, b); }

// Memory that is given back at the end, or null.
template <class T> class Room {
  public:
    explicit Room(int64_t count) {
        void *found = nullptr;
        if (posix_memalign(&found, 64, static_cast<size_t>(count) * sizeof(T) + SLACK) == 0)
            data_ = static_cast<T *>(found);
    }
    ~Room() { std::free(data_); }
    Room(const Room &) = delete;
    Room &operator=(const Room &) = delete;
    explicit operator bool() const { return data_ != nullptr; }
    operator T *() const { return data_; }

  private:
    T *data_ = nullptr;
};

}  // namespace
}  // namespace assay
