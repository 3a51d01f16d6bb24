// A hash table of numbers, small enough to be emptied for every query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "inlining.hpp"

namespace steelyard {

// The multiplier of all hashes: odd, and random, so that nobody can choose ids whose hashes are equal. No result depends
// on it.
inline const uint64_t kSpread = [] {
    std::random_device random;
    return (uint64_t{random()} << 32 | random()) | 1;
}();

// The two halves of the product with the multiplier, combined: without knowing it, nobody can tell which bits a changed
// word changes.
inline uint64_t mixed(uint64_t word) {
#ifdef __SIZEOF_INT128__
    const auto product = static_cast<unsigned __int128>(word) * kSpread;
    return static_cast<uint64_t>(product >> 64) ^ static_cast<uint64_t>(product);
#else
    const uint64_t high = word >> 32, low = word & 0xffffffffu, more = kSpread >> 32, less = kSpread & 0xffffffffu;
    const uint64_t middle = high * less + (low * less >> 32), other = low * more + (middle & 0xffffffffu);
    return (high * more + (middle >> 32) + (other >> 32)) ^ (word * kSpread);
#endif
}

inline uint32_t fold(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

// Slots that each hold a number above zero, placed by the top bits of a hash. Most of them stay free, so that a lookup
// usually ends at the first slot and the processor predicts it.
class Slots {
   public:
    // Empties the table and allocates it for `expected` numbers.
    void clear(size_t expected) {
        unsigned bits = 5;
        while ((size_t{1} << bits) < kSpare * expected) ++bits;
        shift_ = 32 - bits;
        slots_.resize(size_t{1} << bits);
        std::memset(slots_.data(), 0, slots_.size() * sizeof(uint32_t));
    }
    size_t capacity() const { return slots_.size() / 2; }

    // The number with this hash for which `same` is true; otherwise 0, and the new number takes a slot.
    template <class Same>
    STEELYARD_INLINE uint32_t find_or_add(uint32_t hash, uint32_t number, Same same) {
        uint32_t* const slots = slots_.data();
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash >> shift_;; at = (at + 1) & mask) {
            const uint32_t slot = slots[at];
            if (slot == 0) {
                slots[at] = number;
                return 0;
            }
            if (same(slot)) return slot;
        }
    }
    template <class Same>
    STEELYARD_INLINE uint32_t find(uint32_t hash, Same same) const {
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash >> shift_;; at = (at + 1) & mask) {
            const uint32_t slot = slots_[at];
            if (slot == 0 || same(slot)) return slot;
        }
    }
    // Doubles the slots; `hash_of` returns the hash of a number in the table.
    template <class HashOf>
    void grow(HashOf hash_of) {
        std::vector<uint32_t> old(slots_.size() * 2, 0);
        old.swap(slots_);
        --shift_;
        const size_t mask = slots_.size() - 1;
        for (const uint32_t number : old) {
            if (number == 0) continue;
            size_t at = hash_of(number) >> shift_;
            while (slots_[at] != 0) at = (at + 1) & mask;
            slots_[at] = number;
        }
    }

   private:
    static constexpr size_t kSpare = 8;

    std::vector<uint32_t> slots_;
    unsigned shift_ = 0;
};

}  // namespace steelyard
