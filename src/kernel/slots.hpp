// A hash table of numbers, small enough to empty for every query.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace steelyard {

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;

inline uint32_t fold(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

// Slots that each hold the top of a hash and a number above zero. The owner keeps at least half of them free.
class Slots {
   public:
    // Empties the table and makes room for `expected` numbers.
    void clear(size_t expected) {
        unsigned bits = 5;
        while ((size_t{1} << bits) < 2 * expected) ++bits;
        shift_ = 32 - bits;
        slots_.assign(size_t{1} << bits, 0);
    }
    size_t room() const { return slots_.size() / 2; }

    // The number under a hash for which `same` holds; or 0, and the new number takes a slot.
    template <class Same>
    uint32_t find_or_add(uint32_t hash, uint32_t number, Same same) {
        uint64_t* const slots = slots_.data();
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash >> shift_;; at = (at + 1) & mask) {
            const uint64_t slot = slots[at];
            if (slot == 0) {
                slots[at] = static_cast<uint64_t>(hash) << 32 | number;
                return 0;
            }
            if (slot >> 32 == hash && same(static_cast<uint32_t>(slot))) return static_cast<uint32_t>(slot);
        }
    }
    template <class Same>
    uint32_t find(uint32_t hash, Same same) const {
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash >> shift_;; at = (at + 1) & mask) {
            const uint64_t slot = slots_[at];
            if (slot == 0) return 0;
            if (slot >> 32 == hash && same(static_cast<uint32_t>(slot))) return static_cast<uint32_t>(slot);
        }
    }
    // Twice the slots: their places follow from the hashes they hold.
    void grow() {
        std::vector<uint64_t> old(slots_.size() * 2, 0);
        old.swap(slots_);
        --shift_;
        const size_t mask = slots_.size() - 1;
        for (const uint64_t slot : old) {
            if (slot == 0) continue;
            size_t at = slot >> 32 >> shift_;
            while (slots_[at] != 0) at = (at + 1) & mask;
            slots_[at] = slot;
        }
    }

   private:
    std::vector<uint64_t> slots_;
    unsigned shift_ = 0;
};

}  // namespace steelyard
