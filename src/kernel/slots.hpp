// A hash table of numbers, small enough to be emptied for every query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "inlining.hpp"

namespace steelyard {

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;

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
        slots_.assign(size_t{1} << bits, 0);
    }
    size_t room() const { return slots_.size() / 2; }

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
