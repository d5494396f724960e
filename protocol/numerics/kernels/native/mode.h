// Sets the processor's floating-point mode while the library computes: round to nearest even, subnormals
// kept, regardless of what another library has set. The mode belongs to a thread, and OpenMP's threads keep
// the mode in which they were started; so every thread of every parallel region that computes floats holds a
// `Mode` while it works. Most computation is called through pointers into other files, so the compiler cannot
// move it out of the scope. The rest (a few factors and the last rounding of attention, the bias of
// convolutions) is between loads and stores of memory that others see, and the fences keep those inside.
#pragma once
#include <atomic>
#include <cfenv>
#include <cstdint>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace assay {
namespace {

// The compiler moves no load or store across this fence. (A thread always sees its own accesses in order.)
inline void fence() { std::atomic_signal_fence(std::memory_order_seq_cst); }

class Mode {
  public:
    Mode(const Mode &) = delete;
    Mode &operator=(const Mode &) = delete;

#if defined(__x86_64__)  // MXCSR alone: the library has no x87 arithmetic
    Mode() : before_(_mm_getcsr()) {
        if ((before_ & ~FLAGS) != PLAIN) _mm_setcsr(PLAIN);
        fence();
    }
    ~Mode() {
        fence();
        if ((before_ & ~FLAGS) != PLAIN) _mm_setcsr(before_);
    }

  private:
    static constexpr uint32_t FLAGS = 0x3f, PLAIN = 0x1f80;  // exception flags; all exceptions masked
    const uint32_t before_;
#else
    Mode() {
        std::fegetenv(&before_);
        std::fesetenv(FE_DFL_ENV);
        fence();
    }
    ~Mode() {
        fence();
        std::fesetenv(&before_);
    }

  private:
    std::fenv_t before_;
#endif
};

}  // namespace
}  // namespace assay
