// Texts with numbers: a hash table from the bytes of a text to its number, assigned in order of first occurrence.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "slots.hpp"

namespace steelyard {

// A text that is looked up must be followed by this many readable bytes: its start is read as a word.
constexpr size_t kPadding = 8;

class Terms {
   public:
    Terms() { slots_.clear(1 << 10); }

    // The number of a text; a new text gets the next number.
    STEELYARD_INLINE uint32_t number(const char* text, size_t size) {
        if (known_.size() >= slots_.capacity()) grow();
        const uint64_t head = head_of(text, size);
        const auto fresh = static_cast<uint32_t>(known_.size() + 1);
        const uint32_t met = slots_.find_or_add(hash_of(head, text, size), fresh,
                                                [&](uint32_t n) { return is(known_[n - 1], head, text, size); });
        return met != 0 ? met - 1 : add(head, text, size);
    }
    uint32_t number(const std::string& text) {
        std::string padded = text;
        padded.append(kPadding, '\0');
        return number(padded.data(), text.size());
    }
    size_t size() const { return known_.size(); }
    std::string_view operator[](size_t n) const { return {bytes_.data() + known_[n].begin, known_[n].size}; }

   private:
    struct Known {
        uint64_t head;
        size_t begin;
        uint32_t size;
    };

    std::vector<Known> known_;
    std::string bytes_;
    Slots slots_;

    // The first eight bytes, or all of a shorter text, as a word.
    static STEELYARD_INLINE uint64_t head_of(const char* text, size_t size) {
        const uint64_t word = load_word(text);
        return size >= 8 ? word : word & ~(~uint64_t{0} << 8 * size);
    }
    static STEELYARD_INLINE uint32_t hash_of(uint64_t head, const char* text, size_t size) {
        uint64_t hash = mixed(head ^ size);
        for (size_t at = 8; at < size; at += 8) hash = mixed(hash ^ head_of(text + at, size - at));
        return fold(hash * kSpread);
    }
    STEELYARD_INLINE bool is(const Known& known, uint64_t head, const char* text, size_t size) const {
        if (known.head != head || known.size != size) return false;
        return size <= 8 || std::memcmp(bytes_.data() + known.begin + 8, text + 8, size - 8) == 0;
    }
    STEELYARD_APART uint32_t add(uint64_t head, const char* text, size_t size) {
        if (size > std::numeric_limits<uint32_t>::max() || known_.size() >= std::numeric_limits<int32_t>::max())
            throw std::length_error("too many terms, or a term that is too long");
        known_.push_back({head, bytes_.size(), static_cast<uint32_t>(size)});
        bytes_.append(text, size);
        return static_cast<uint32_t>(known_.size() - 1);
    }
    STEELYARD_APART void grow() {
        // The bytes of a text may be read up to the padding.
        const size_t size = bytes_.size();
        bytes_.append(kPadding, '\0');
        slots_.grow([this](uint32_t n) {
            const Known& known = known_[n - 1];
            return hash_of(known.head, bytes_.data() + known.begin, known.size);
        });
        bytes_.resize(size);
    }
};

}  // namespace steelyard
