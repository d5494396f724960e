// Memory that a thread keeps between calls: taken from the system once, instead of page by page in every step.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace assay {
namespace {

// Scratch of a thread: grows, and is kept for the next call.
class Scratch {
  public:
    ~Scratch() { std::free(data_); }
    // `count` pieces of these bytes, each on a line of its own; false when out of memory.
    bool divide(const std::vector<int64_t> &bytes, std::vector<char *> &to) {
        int64_t total = 0;
        for (const int64_t size : bytes) total += (size + 63) / 64 * 64;
        if (total > size_) {
            std::free(data_);
            data_ = nullptr, size_ = 0;
            if (posix_memalign(&data_, 64, static_cast<size_t>(total)) != 0) return data_ = nullptr, false;
            size_ = total;
        }
        char *at = static_cast<char *>(data_);
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
