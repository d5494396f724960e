// SHA-256 of many rows of equal width, each after a prefix byte (RFC 9162 section 2.1.1, encoding.md section
// 2) or with a salt in every block (audit.md section 4), using the processor's SHA instructions. The function
// is specified in FIPS 180-4, the instructions in Intel's "New Instructions Supporting the Secure Hash
// Algorithm". Plain integers and no state: any thread may call it.
//
// On a processor without these instructions, `assay_sha256_supported` returns 0 and hashing.py uses hashlib.
#include <cstdint>
#include <cstring>

#define ASSAY_EXPORT extern "C" __attribute__((visibility("default")))

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>

#define ASSAY_SHA __attribute__((target("sha,sse4.1,ssse3")))

namespace {

constexpr int BLOCK = 64;
constexpr int DIGEST = 32;
constexpr int PIECE = 32;  // bytes of a row that share a block with the salt

// Rows hashed in parallel: while one row waits for the result of its last rounds, others use the SHA unit.
// For 1 KiB chunks on a Zen 4: one row at a time 1.6 GB/s, two 2.9, three 3.0, four 3.2; hashlib 1.8.
constexpr int LANES = 4;

alignas(16) constexpr uint32_t ROUNDS[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

// The eight words of a hash as the instructions expect them: {f, e, b, a} and {h, g, d, c}, lowest lane
// first.
template <int N> struct Hashes {
    __m128i abef[N], cdgh[N];
};

template <int N> ASSAY_SHA inline void begin(Hashes<N> &h) {
    for (int l = 0; l < N; ++l) {
        h.abef[l] = _mm_set_epi32(0x6a09e667, int32_t(0xbb67ae85), 0x510e527f, int32_t(0x9b05688c));
        h.cdgh[l] = _mm_set_epi32(0x3c6ef372, int32_t(0xa54ff53a), 0x1f83d9ab, 0x5be0cd19);
    }
}

// One block of each of N messages, for `compress`. Bytes 16 g ... 16 g + 15 of message l's block are at
// `at(l, g)`.
template <int N> struct Blocks {
    const uint8_t *block[N];
    const uint8_t *at(int l, int g) const { return block[l] + 16 * g; }
};

// The same for blocks whose first half is the salt.
template <int N> struct Salted {
    const uint8_t *salt, *piece[N];
    const uint8_t *at(int l, int g) const { return g < 2 ? salt + 16 * g : piece[l] + 16 * (g - 2); }
};

template <int N, class B> ASSAY_SHA inline void compress(Hashes<N> &h, const B &blocks) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    __m128i a[N], c[N], w[4][N];
    for (int l = 0; l < N; ++l) {
        a[l] = h.abef[l];
        c[l] = h.cdgh[l];
    }
#pragma GCC unroll 16
    for (int g = 0; g < 16; ++g) {  // four rounds each; w holds the last 16 words of the message schedule
        const __m128i k = _mm_load_si128(reinterpret_cast<const __m128i *>(ROUNDS + 4 * g));
        for (int l = 0; l < N; ++l) {
            __m128i &now = w[g & 3][l];
            if (g < 4) {
                now = _mm_loadu_si128(reinterpret_cast<const __m128i *>(blocks.at(l, g)));
                now = _mm_shuffle_epi8(now, big_endian);
            } else {
                const __m128i last = w[(g + 3) & 3][l];
                now = _mm_sha256msg1_epu32(now, w[(g + 1) & 3][l]);
                now = _mm_add_epi32(now, _mm_alignr_epi8(last, w[(g + 2) & 3][l], 4));
                now = _mm_sha256msg2_epu32(now, last);
            }
            const __m128i sum = _mm_add_epi32(now, k);
            c[l] = _mm_sha256rnds2_epu32(c[l], a[l], sum);
            a[l] = _mm_sha256rnds2_epu32(a[l], c[l], _mm_shuffle_epi32(sum, 0x0e));
        }
    }
    for (int l = 0; l < N; ++l) {
        h.abef[l] = _mm_add_epi32(h.abef[l], a[l]);
        h.cdgh[l] = _mm_add_epi32(h.cdgh[l], c[l]);
    }
}

template <int N> ASSAY_SHA inline void finish(const Hashes<N> &h, uint8_t *out) {
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
    for (int l = 0; l < N; ++l) {
        const __m128i feba = _mm_shuffle_epi32(h.abef[l], 0x1b);  // now a, b, e, f
        const __m128i hgdc = _mm_shuffle_epi32(h.cdgh[l], 0x1b);
        const __m128i abcd = _mm_shuffle_epi8(_mm_unpacklo_epi64(feba, hgdc), big_endian);
        const __m128i efgh = _mm_shuffle_epi8(_mm_unpackhi_epi64(feba, hgdc), big_endian);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + DIGEST * l), abcd);
        _mm_storeu_si128(reinterpret_cast<__m128i *>(out + DIGEST * l + DIGEST / 2), efgh);
    }
}

// Hashes N rows from `row` on in parallel; digests go to `out`. The messages are never assembled: block i > 0
// of a message begins at byte 64 i - 1 of its row, and only the first block and the last one or two are built
// separately.
template <int N> ASSAY_SHA void hash(uint8_t prefix, const uint8_t *row, int64_t width, uint8_t *out) {
    const int64_t total = width + 1, whole = total / BLOCK;
    uint8_t edge[N][2 * BLOCK];
    Blocks<N> blocks;
    Hashes<N> h;
    begin(h);
    if (whole > 0) {
        for (int l = 0; l < N; ++l) {
            edge[l][0] = prefix;
            std::memcpy(edge[l] + 1, row + l * width, BLOCK - 1);
            blocks.block[l] = edge[l];
        }
        compress(h, blocks);
    }
    for (int64_t b = 1; b < whole; ++b) {
        for (int l = 0; l < N; ++l) {
            blocks.block[l] = row + l * width + b * BLOCK - 1;
            __builtin_prefetch(blocks.block[l] + N * width);  // the next rows: 3.2 GB/s instead of 2.7
        }
        compress(h, blocks);
    }
    const int rest = static_cast<int>(total - whole * BLOCK);
    const int ends = rest + 9 <= BLOCK ? BLOCK : 2 * BLOCK;  // eight bytes of length follow 0x80
    for (int l = 0; l < N; ++l) {
        uint8_t *end = edge[l];
        std::memset(end, 0, sizeof edge[l]);
        if (whole > 0) {
            std::memcpy(end, row + l * width + whole * BLOCK - 1, rest);
        } else {
            end[0] = prefix;
            std::memcpy(end + 1, row + l * width, width);
        }
        end[rest] = 0x80;
        const uint64_t bits = __builtin_bswap64(static_cast<uint64_t>(total) * 8);
        std::memcpy(end + ends - 8, &bits, 8);
    }
    for (int at = 0; at < ends; at += BLOCK) {
        for (int l = 0; l < N; ++l) blocks.block[l] = edge[l] + at;
        compress(h, blocks);
    }
    finish(h, out);
}

// Hashes N rows, `stride` bytes apart, under a salt: a block of salt and piece for each 32 bytes, then salt
// and width, then padding.
template <int N> ASSAY_SHA void hash_salted(
    const uint8_t *salt, const uint8_t *row, int64_t width, int64_t stride, uint8_t *out
) {
    Salted<N> blocks;
    blocks.salt = salt;
    Hashes<N> h;
    begin(h);
    for (int64_t at = 0; at < width; at += PIECE) {
        for (int l = 0; l < N; ++l) {
            blocks.piece[l] = row + l * stride + at;
            __builtin_prefetch(blocks.piece[l] + N * stride);
        }
        compress(h, blocks);
    }
    uint8_t ends[2 * BLOCK] = {};  // width, then 0x80, zeros and the number of bits: equal for all
    const uint64_t length = __builtin_bswap64(static_cast<uint64_t>(width));
    std::memcpy(ends + PIECE - 8, &length, 8);
    ends[BLOCK] = 0x80;
    const uint64_t bits = __builtin_bswap64(static_cast<uint64_t>(2 * (width + PIECE)) * 8);
    std::memcpy(ends + 2 * BLOCK - 8, &bits, 8);
    Blocks<N> padding;
    for (int l = 0; l < N; ++l) {
        blocks.piece[l] = ends;
        padding.block[l] = ends + BLOCK;
    }
    compress(h, blocks);
    compress(h, padding);
    finish(h, out);
}

}  // namespace

ASSAY_EXPORT int32_t assay_sha256_supported() {
    unsigned a, b, c, d;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & (1u << 29))) return 0;  // SHA
    if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
    return (c & (1u << 9)) && (c & (1u << 19));  // SSSE3, SSE4.1
}

// SHA-256(prefix || row) for each of `count` contiguous rows of `width` bytes in `data`; 32 bytes each to
// `out`.
ASSAY_EXPORT void assay_sha256_rows(
    uint8_t prefix, const uint8_t *data, int64_t count, int64_t width, uint8_t *out
) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) hash<LANES>(prefix, data + i * width, width, out + i * DIGEST);
    for (; i < count; ++i) hash<1>(prefix, data + i * width, width, out + i * DIGEST);
}

// SHA-256(salt || piece || ... || salt || piece || salt || width) for each of `count` rows that begin
// `stride` bytes apart. The pieces are 32 bytes of the row (`width` is a multiple of 32), and the width is
// encoded in 32 bytes. Writes 32 bytes each to `out`.
ASSAY_EXPORT void assay_sha256_salted_rows(
    const uint8_t *salt, const uint8_t *data, int64_t count, int64_t width, int64_t stride, uint8_t *out
) {
    int64_t i = 0;
    for (; i + LANES <= count; i += LANES) {
        hash_salted<LANES>(salt, data + i * stride, width, stride, out + i * DIGEST);
    }
    for (; i < count; ++i) hash_salted<1>(salt, data + i * stride, width, stride, out + i * DIGEST);
}

#else

ASSAY_EXPORT int32_t assay_sha256_supported() { return 0; }
ASSAY_EXPORT void assay_sha256_rows(uint8_t, const uint8_t *, int64_t, int64_t, uint8_t *) {}
ASSAY_EXPORT void assay_sha256_salted_rows(
    const uint8_t *, const uint8_t *, int64_t, int64_t, int64_t, uint8_t *
) {}

#endif
