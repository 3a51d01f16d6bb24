// For hot loops: how they are compiled, functions inlined into them or kept out, short loops written out, words, bits, prefetching.
#pragma once

#include <cstdint>
#include <cstring>
#ifdef _MSC_VER
#include <intrin.h>
#define STEELYARD_INLINE __forceinline
#define STEELYARD_APART __declspec(noinline)
#define STEELYARD_UNROLL
#else
#define STEELYARD_INLINE inline __attribute__((always_inline))
#define STEELYARD_APART __attribute__((noinline))
#define STEELYARD_UNROLL _Pragma("GCC unroll 8")
#endif
#if defined(__GNUC__) && !defined(__clang__)
#define STEELYARD_HOT __attribute__((optimize("O3")))  // all of the kernel would take a third longer to compile
#else
#define STEELYARD_HOT
#endif

namespace steelyard {

inline uint64_t load_word(const char* p) {
    uint64_t word;
    std::memcpy(&word, p, 8);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    return word;
}

// The place of the lowest bit that is set.
inline unsigned lowest_bit(uint64_t bits) {
#ifdef _MSC_VER
    unsigned long at;
    _BitScanForward64(&at, bits);
    return at;
#else
    return static_cast<unsigned>(__builtin_ctzll(bits));
#endif
}

// Loads memory that is used soon.
inline void prefetch(const void* memory) {
#ifdef __GNUC__
    __builtin_prefetch(memory);
#endif
    static_cast<void>(memory);
}

}  // namespace steelyard
