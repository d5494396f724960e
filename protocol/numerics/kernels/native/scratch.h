// Memory that a thread keeps between calls: allocated once, instead of faulted in page by page in every step.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace assay {
namespace {

// Scratch memory of a thread: it grows as needed and is kept for the next call.
class Scratch {
  public:
    ~Scratch() { std::free(data_); }

    // `bytes` bytes aligned to a cache line, or null when out of memory.
    char *at_least(int64_t bytes) {
        if (bytes > size_) {
            std::free(data_);
            size_ = 0;
            if (posix_memalign(&data_, 64, static_cast<size_t>(bytes)) != 0) data_ = nullptr;
            if (data_) size_ = bytes;
        }
        return static_cast<char *>(data_);
    }

    // One piece for each of these sizes, each on a separate cache line; false when out of memory.
    bool divide(const std::vector<int64_t> &bytes, std::vector<char *> &to) {
        int64_t total = 0;
        for (const int64_t size : bytes) total += (size + 63) / 64 * 64;
        char *at = at_least(total);
        if (!at) return false;
        to.clear();
        for (const int64_t size : bytes) to.push_back(at), at += (size + 63) / 64 * 64;
        return true;
    }

  private:
    void *data_ = nullptr;
    int64_t size_ = 0;
};

}  // namespace
}  // namespace assay
