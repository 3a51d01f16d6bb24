// Parsing the bytes of a run file: blanks found 32 bytes at a time, decimals read exactly, UTF-8 checked.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define STEELYARD_SSE2 1
#endif

#include "inlining.hpp"

namespace steelyard {

// The first `size` bytes (at most 8) as a word, without reading past them.
inline uint64_t load_part(const char* p, size_t size) {
    char bytes[8] = {};
    std::memcpy(bytes, p, size);
    return load_word(bytes);
}

// About 32 bytes: one bit per byte at or below the blank (every separator, and every control byte, which no clean file
// has), and whether any byte is outside ASCII.
struct Block {
    uint32_t blanks;
    uint32_t foreign;
};

#ifdef STEELYARD_SSE2
inline Block look(const char* p) {
    const __m128i blank = _mm_set1_epi8(' ');
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 16));
    const auto low_bits = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(low, blank), low)));
    const auto high_bits = static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(high, blank), high)));
    return {low_bits | high_bits << 16, static_cast<uint32_t>(_mm_movemask_epi8(_mm_or_si128(low, high)))};
}

inline uint32_t equal_bits(const char* p, const char* q) {
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)), _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)))));
}
#else
inline uint32_t high_bits(uint64_t word) {
    return static_cast<uint32_t>(((word & 0x8080808080808080u) >> 7) * 0x0102040810204080u >> 56);
}

inline Block look(const char* p) {
    Block block{0, 0};
    STEELYARD_UNROLL for (int i = 0; i < 4; ++i) {
        const uint64_t word = load_word(p + 8 * i);
        const uint64_t above = ((word & 0x7f7f7f7f7f7f7f7fu) + 0x5f5f5f5f5f5f5f5fu) | word;
        block.blanks |= high_bits(~above) << (8 * i);
        block.foreign |= high_bits(word);
    }
    return block;
}

inline uint32_t equal_bits(const char* p, const char* q) {
    uint32_t bits = 0;
    STEELYARD_UNROLL for (int i = 0; i < 2; ++i) {
        const uint64_t differ = load_word(p + 8 * i) ^ load_word(q + 8 * i);
        bits |= high_bits(~(((differ & 0x7f7f7f7f7f7f7f7fu) + 0x7f7f7f7f7f7f7f7fu) | differ)) << (8 * i);
    }
    return bits;
}
#endif

// A text that is the same on line after line: matched by one 16-byte comparison if it is short.
class Repeated {
   public:
    void set(const char* text, size_t size) {
        size_ = size;
        bits_ = size < 16 ? (1u << size) - 1 : 0xffffu;
        text_.assign(text, size);
        if (size < 16) text_.resize(16);
    }
    // Reads up to max(16, size()) bytes at p.
    bool at(const char* p) const {
        if ((equal_bits(p, text_.data()) & bits_) != bits_) return false;
        return size_ <= 16 || std::memcmp(p + 16, text_.data() + 16, size_ - 16) == 0;
    }
    size_t size() const { return size_; }
    bool empty() const { return size_ == 0; }

   private:
    size_t size_ = 0;
    uint32_t bits_ = 0;
    std::string text_;
};

constexpr uint64_t kPowersOfTen[] = {
    1u,          10u,          100u,          1000u,          10000u,          100000u,
    1000000u,    10000000u,    100000000u,    1000000000u,    10000000000u,    100000000000u,
    1000000000000u, 10000000000000u, 100000000000000u, 1000000000000000u, 10000000000000000u};
constexpr double kPowersOfTenExactly[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7, 1e8,
                                          1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16};

// The n (1 to 8) digits at the low end of a word as a number; `bad` is not zero if a byte is not a digit.
inline uint64_t eight_digits(uint64_t word, unsigned n, uint64_t& bad) {
    // The digits move to the high end, with zeros before them.
    word = (word ^ 0x3030303030303030u) << (64 - 8 * n);
    bad |= ((word + 0x7676767676767676u) | word) & 0x8080808080808080u;
    word = word * 10 + (word >> 8);
    return ((word & 0x000000ff000000ffu) * 0x000f424000000064u +
            (word >> 16 & 0x000000ff000000ffu) * 0x0000271000000001u) >>
           32;
}

#ifdef __SIZEOF_INT128__
// digits / 10^places, rounded once: the quotient keeps at least 62 bits and a sticky last one.
inline double divide_exactly(uint64_t digits, unsigned places) {
    const uint64_t power = kPowersOfTen[places];
    const int digits_up = __builtin_clzll(digits), power_up = __builtin_clzll(power);
    const uint64_t divisor = power << power_up;
    const auto dividend = static_cast<unsigned __int128>(digits << digits_up) << 63;
    const auto quotient = static_cast<uint64_t>(dividend / divisor);
    const uint64_t inexact = dividend % divisor != 0;
    return std::ldexp(static_cast<double>(quotient | inexact), power_up - digits_up - 63);
}
#endif

// Any decimal `float()` reads as a finite number: sign, digits, point, exponent. Correctly rounded.
inline bool parse_any_decimal(const char* begin, const char* end, double& value) {
    const char* p = begin;
    const auto digit = [&] { return p < end && *p >= '0' && *p <= '9'; };
    if (p < end && (*p == '+' || *p == '-')) ++p;
    const char* unsigned_begin = p;
    size_t digits = 0;
    for (; digit(); ++p) ++digits;
    if (p < end && *p == '.')
        for (++p; digit(); ++p) ++digits;
    if (digits == 0) return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        ++p;
        if (p < end && (*p == '+' || *p == '-')) ++p;
        if (!digit()) return false;
        while (digit()) ++p;
    }
    if (p != end) return false;
#ifdef __cpp_lib_to_chars
    const auto read = std::from_chars(unsigned_begin, end, value);
    if (read.ec != std::errc() || read.ptr != end) return false;
#else
    const std::string text(unsigned_begin, end);
    char* stop = nullptr;
    value = std::strtod(text.c_str(), &stop);
    if (stop != text.c_str() + text.size()) return false;
#endif
    if (*begin == '-') value = -value;
    return std::isfinite(value);
}

// The same for the usual decimal, [-]digits[.digits], and a buffer that may be read 16 bytes past `end`.
STEELYARD_INLINE bool parse_decimal(const char* begin, const char* end, double& value) {
    const bool negative = *begin == '-';
    const char* p = begin + negative;
    const char* whole = p;
    uint64_t digits = 0;
    for (; static_cast<unsigned char>(*p - '0') < 10; ++p) digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    const auto whole_places = static_cast<size_t>(p - whole);
    if (whole_places == 0 || whole_places > 18) return parse_any_decimal(begin, end, value);
    size_t places = 0;
    if (p != end) {
        places = static_cast<size_t>(end - p) - 1;
        if (*p != '.' || places == 0 || places > 16 || places + whole_places > 19)
            return parse_any_decimal(begin, end, value);
        ++p;
        uint64_t bad = 0, part = 0;
        if (places <= 8) {
            part = eight_digits(load_word(p), static_cast<unsigned>(places), bad);
        } else {
            const auto rest = static_cast<unsigned>(places - 8);
            part = eight_digits(load_word(p), 8, bad) * kPowersOfTen[rest];
            part += eight_digits(load_word(p + 8), rest, bad);
        }
        if (bad) return parse_any_decimal(begin, end, value);
        digits = digits * kPowersOfTen[places] + part;
    }
    // Both operands are exact below 2^53, so one division rounds once.
    if (digits <= uint64_t{1} << 53) {
        value = static_cast<double>(static_cast<int64_t>(digits)) / kPowersOfTenExactly[places];
    } else {
#ifdef __SIZEOF_INT128__
        value = divide_exactly(digits, static_cast<unsigned>(places));
#else
        return parse_any_decimal(begin, end, value);
#endif
    }
    value = negative ? -value : value;
    return true;
}

// Strict UTF-8, as Python decodes it: no overlong forms, no surrogates, nothing above U+10FFFF.
inline bool valid_utf8(const char* begin, const char* end) {
    const auto* p = reinterpret_cast<const unsigned char*>(begin);
    const auto* stop = reinterpret_cast<const unsigned char*>(end);
    while (p < stop) {
        if (stop - p >= 8 && !(load_word(reinterpret_cast<const char*>(p)) & 0x8080808080808080u)) {
            p += 8;
            continue;
        }
        const unsigned char lead = *p++;
        if (lead < 0x80) continue;
        const int more = lead >= 0xc2 && lead <= 0xdf ? 1 : lead >= 0xe0 && lead <= 0xef ? 2 : lead >= 0xf0 && lead <= 0xf4 ? 3 : 0;
        if (more == 0 || stop - p < more) return false;
        const unsigned char least = lead == 0xe0 ? 0xa0 : lead == 0xf0 ? 0x90 : 0x80;
        const unsigned char most = lead == 0xed ? 0x9f : lead == 0xf4 ? 0x8f : 0xbf;
        if (p[0] < least || p[0] > most) return false;
        for (int i = 1; i < more; ++i)
            if (p[i] < 0x80 || p[i] > 0xbf) return false;
        p += more;
    }
    return true;
}

}  // namespace steelyard
