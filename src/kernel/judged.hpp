// The judged documents as bytes: what a scan of a file looks for.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "parse.hpp"

namespace steelyard {

inline uint32_t fold(uint64_t hash) { return static_cast<uint32_t>(hash >> 32); }

constexpr uint64_t kSpread = 0x9e3779b97f4a7c15u;

// A hash for ids longer than a word; reads exactly the id's bytes.
inline uint32_t hash_long(const char* text, size_t size) {
    uint64_t hash = size;
    for (size_t i = 0; i + 8 < size; i += 8) {
        hash = (hash ^ load_word(text + i)) * kSpread;
        hash ^= hash >> 32;
    }
    return fold((hash ^ load_word(text + size - 8)) * kSpread);
}

inline uint32_t hash_id(const char* text, size_t size) {
    return size <= 8 ? fold(load_part(text, size) * kSpread) : hash_long(text, size);
}

// The same, for a buffer that may be read 8 bytes past `text`.
inline uint32_t hash_readable(const char* text, size_t size) {
    if (size > 8) return hash_long(text, size);
    return fold((load_word(text) << (64 - 8 * size) >> (64 - 8 * size)) * kSpread);
}

struct Id {
    const char* text;
    uint32_t size;

    bool is(const char* other, size_t other_size) const {
        return size == other_size && std::memcmp(text, other, size) == 0;
    }
    // Byte order, which for UTF-8 is the order of code points.
    int compare(const Id& other) const {
        const int order = std::memcmp(text, other.text, size < other.size ? size : other.size);
        return order != 0 ? order : (size > other.size) - (size < other.size);
    }
};

// Slots that each hold the top of a hash and a number above zero; at most half are taken.
class Slots {
   public:
    // Empties the table and makes room for `expected` numbers.
    void clear(size_t expected) {
        unsigned bits = 5;
        while ((size_t{1} << bits) < 2 * expected) ++bits;
        shift_ = 32 - bits;
        taken_ = 0;
        slots_.assign(size_t{1} << bits, 0);
    }
    // The number under a hash for which `same` holds; or 0, and the new number takes a slot.
    template <class Same>
    uint32_t find_or_add(uint32_t hash, uint32_t number, Same same) {
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash >> shift_;; at = (at + 1) & mask) {
            const uint64_t slot = slots_[at];
            if (slot == 0) {
                slots_[at] = static_cast<uint64_t>(hash) << 32 | number;
                if (++taken_ * 2 > slots_.size()) grow();
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

   private:
    std::vector<uint64_t> slots_;
    unsigned shift_ = 0;
    size_t taken_ = 0;

    void grow() {
        if (shift_ == 0) return;  // 2^32 slots: no list of documents comes near
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
};

// Text that outlives the rows that point to it: Python's own strings, or copies.
struct JudgedTexts {
    std::vector<Id> queries;      // an id that has no UTF-8 form has no text: no file can hold it
    std::vector<Id> docs;
    std::vector<uint32_t> hashes;  // of docs
    std::vector<int64_t> starts;
    Slots by_query;

    void index() {
        by_query.clear(queries.size());
        for (size_t i = 0; i < queries.size(); ++i)
            if (queries[i].text)
                by_query.find_or_add(hash_id(queries[i].text, queries[i].size), static_cast<uint32_t>(i + 1),
                                     [](uint32_t) { return false; });
        hashes.reserve(docs.size());
        for (const Id& doc : docs) hashes.push_back(doc.text ? hash_id(doc.text, doc.size) : 0);
    }
    // -1 where nobody judged the query.
    int64_t query(const char* text, size_t size) const {
        return static_cast<int64_t>(by_query.find(hash_id(text, size), [&](uint32_t number) {
                   return queries[number - 1].is(text, size);
               })) -
               1;
    }
};

}  // namespace steelyard
