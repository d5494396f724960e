// Single-element operations of arithmetic.md section 2 on C++ values, defined for every bit pattern that
// occurs in the lists; and the integer parts of sections 3 and 8: exponents and the sticky bit. Compiled
// without contraction and without fast-math; NaN is made canonical where results are stored.
#pragma once
#include <cstdint>
#include <cstring>

namespace assay {
namespace {

inline uint32_t bits_of(float x) {
    uint32_t u;
    std::memcpy(&u, &x, 4);
    return u;
}

inline float float_of(uint32_t u) {
    float x;
    std::memcpy(&x, &u, 4);
    return x;
}

inline double double_of(uint64_t u) {
    double x;
    std::memcpy(&x, &u, 8);
    return x;
}

// Rows: arithmetic.md section 3.
constexpr int32_t SENTINEL = 32767, LEAST = -95;

// The exponent of a row whose largest magnitude has these bits.
inline int32_t exponent_of(int32_t largest) {
    const int32_t top = largest >> 23;
    if (top == 255) return SENTINEL;
    return top - 126 < LEAST ? LEAST : top - 126;
}

// An i64 that float64 represents exactly and that rounds to the same f32 under every power of two
// (arithmetic.md section 8). From 2^53 on, the low 11 bits are replaced by one sticky bit.
inline int64_t jam(int64_t v) {
    if (v < (int64_t(1) << 53) && v > -(int64_t(1) << 53)) return v;
    return (v & ~int64_t(0x7ff)) | (int64_t((v & 0x7ff) != 0) << 10);
}

// 2^k, for normal results.
inline double double_power_of_two(int64_t k) { return double_of(static_cast<uint64_t>(k + 1023) << 52); }

inline float canonical(float x) { return x == x ? x : float_of(0x7fc00000u); }

// `round_scaled` of arithmetic.md section 8: the f32 nearest to sum * scale; `scale` is a power of two or NaN.
inline float round_scaled(int64_t sum, double scale) {
    return canonical(static_cast<float>(static_cast<double>(jam(sum)) * scale));
}

inline float op_add(float x, float y) { return x + y; }
inline float op_sub(float x, float y) { return x - y; }
inline float op_mul(float x, float y) { return x * y; }
inline float op_div(float x, float y) { return x / y; }
inline float op_sqrt(float x) { return __builtin_sqrtf(x); }
inline float op_neg(float x) { return float_of(bits_of(x) ^ 0x80000000u); }
inline float op_abs(float x) { return float_of(bits_of(x) & 0x7fffffffu); }

// In the lists the second operand is never NaN; if the first is NaN, it is the result.
inline float op_minimum(float x, float y) { return (y < x ? y : x) + 0.0f; }
inline float op_maximum(float x, float y) { return (y > x ? y : x) + 0.0f; }

// To nearest, ties to even, with the sign of x. Without SSE4.1's instruction this uses that every f32 from
// 2^23 on is whole.
#if defined(ASSAY_AVX512VNNI) || defined(ASSAY_AVX2)
inline float op_rint(float x) { return __builtin_rintf(x); }
#else
inline float op_rint(float x) {
    const float limit = float_of(0x4b000000u | (bits_of(x) & 0x80000000u));
    const float near = (x + limit) - limit;
    const float whole = float_of((bits_of(near) & 0x7fffffffu) | (bits_of(x) & 0x80000000u));
    return op_abs(x) < 8388608.0f ? whole : x;
}
#endif

inline bool op_lt(float x, float y) { return x < y; }
inline bool op_eq(float x, float y) { return x == y; }
inline bool op_eq_i32(int32_t x, int32_t y) { return x == y; }
inline float op_select(bool c, float x, float y) { return c ? x : y; }
inline int32_t op_select_i32(bool c, int32_t x, int32_t y) { return c ? x : y; }

inline int32_t wrapped(uint32_t x) { return static_cast<int32_t>(x); }
inline int32_t op_add_i32(int32_t x, int32_t y) { return wrapped(uint32_t(x) + uint32_t(y)); }
inline int32_t op_sub_i32(int32_t x, int32_t y) { return wrapped(uint32_t(x) - uint32_t(y)); }
inline int32_t op_and_i32(int32_t x, int32_t y) { return x & y; }
inline int32_t op_shr_i32(int32_t x, int32_t y) { return x >> y; }
inline uint32_t op_and_u32(uint32_t x, uint32_t y) { return x & y; }
inline uint32_t op_or_u32(uint32_t x, uint32_t y) { return x | y; }
inline int32_t op_bits_i32(float x) { return wrapped(bits_of(x)); }
inline uint32_t op_bits_u32(float x) { return bits_of(x); }
inline float op_from_bits_i32(int32_t x) { return float_of(uint32_t(x)); }
inline float op_from_bits_u32(uint32_t x) { return float_of(x); }
inline float op_i32_to_f32(int32_t x) { return static_cast<float>(x); }

// Lists cast values below 2^22 in magnitude; for other values their result does not depend on the integer.
// The conversion instruction is not used: without trapping math, GCC 12 turns (float)(int)x into trunc(x),
// which gives -0 instead of +0.
inline int32_t op_f32_to_i32(float x) { return wrapped(bits_of(x + 12582912.0f) - 0x4b400000u); }

inline float op_power_of_two(int32_t k) { return float_of(uint32_t(k + 127) << 23); }

// x * 2^k for |k| <= 250, as x times 2^(k >> 1) times the rest. It is rounded only once if k >= 0, or if the
// first product is at least 2^-126 in magnitude.
inline float op_scale(float x, int32_t k) {
    const int32_t half = k >> 1;
    return (x * op_power_of_two(half)) * op_power_of_two(k - half);
}

}  // namespace
}  // namespace assay
