// The judged documents as bytes, for the scan of a file.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "parse.hpp"
#include "slots.hpp"

namespace steelyard {

// A hash for ids longer than a word; reads exactly the id's bytes.
inline uint32_t hash_long(const char* text, size_t size) {
    uint64_t hash = size;
    for (size_t i = 0; i + 8 < size; i += 8) hash = mixed(hash ^ load_word(text + i));
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

    bool known() const { return text != nullptr; }
    bool is(const Id& other) const { return size == other.size && std::memcmp(text, other.text, size) == 0; }
    // Byte order, which for UTF-8 is the order of code points.
    int compare(const Id& other) const {
        const int order = std::memcmp(text, other.text, size < other.size ? size : other.size);
        return order != 0 ? order : (size > other.size) - (size < other.size);
    }
};

// The texts outlive the rows that point to them: they are in Python's strings or in the bytes of the qrels.
struct JudgedTexts {
    std::vector<Id> queries;      // an id without a UTF-8 form has no text: it cannot be in a file
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
    // -1 for a query without judgments.
    int64_t query(const char* text, size_t size) const {
        return static_cast<int64_t>(by_query.find(hash_id(text, size), [&](uint32_t number) {
                   return queries[number - 1].is({text, static_cast<uint32_t>(size)});
               })) -
               1;
    }
};

}  // namespace steelyard
