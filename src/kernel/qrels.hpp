// TREC qrels from a file in memory.
#pragma once

#include <vector>

#include "judged.hpp"
#include "lines.hpp"

namespace steelyard {

// A whole number that a double holds exactly.
inline bool whole_number(const Word& word, double& value) {
    const char* p = word.begin;
    const bool negative = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    if (p == word.end || word.end - p > 15) return false;
    int64_t number = 0;
    for (; p < word.end; ++p) {
        if (*p < '0' || *p > '9') return false;
        number = 10 * number + (*p - '0');
    }
    value = static_cast<double>(negative ? -number : number);
    return true;
}

// Whether all ids differ.
inline bool all_differ(const Id* ids, size_t count, Slots& seen) {
    seen.clear(count);
    for (size_t i = 0; i < count; ++i)
        if (seen.find_or_add(hash_id(ids[i].text, ids[i].size), static_cast<uint32_t>(i + 1),
                             [&](uint32_t number) { return ids[number - 1].is(ids[i]); }) != 0)
            return false;
    return true;
}

// Fills the judged documents, whose texts stay in the buffer, and their grades. False if the file is not a clean one: four
// words per line, the second always 0 or always Q0, the last a whole number; the lines of a query together, each document
// once; UTF-8 without a byte order mark or comments.
inline bool read_qrels(const char* begin, const char* end, JudgedTexts& judged, std::vector<double>& grades) {
    uint32_t foreign = 0;
    std::string iteration;
    for (const char* at = begin; at < end;) {
        const Line line = split(at, end);
        const Word query = line.words[0], middle = line.words[1], doc = line.words[2];
        double grade;
        if (!line.next || line.count != 4 || *query.begin == '#' || !whole_number(line.words[3], grade)) return false;
        if (at == begin) iteration.assign(middle.begin, middle.end);
        if (!middle.is(iteration)) return false;
        const Id id{query.begin, static_cast<uint32_t>(query.size())};
        if (judged.queries.empty() || !judged.queries.back().is(id)) {
            judged.queries.push_back(id);
            judged.starts.push_back(static_cast<int64_t>(judged.docs.size()));
        }
        judged.docs.push_back({doc.begin, static_cast<uint32_t>(doc.size())});
        grades.push_back(grade);
        foreign |= line.foreign;
        at = line.next;
    }
    if (iteration != "0" && iteration != "Q0") return false;
    judged.starts.push_back(static_cast<int64_t>(judged.docs.size()));
    if (foreign && (!valid_utf8(begin, end) || std::memcmp(begin, "\xef\xbb\xbf", 3) == 0)) return false;
    Slots seen;
    if (!all_differ(judged.queries.data(), judged.queries.size(), seen)) return false;
    for (size_t i = 0; i < judged.queries.size(); ++i) {
        const auto first = static_cast<size_t>(judged.starts[i]), last = static_cast<size_t>(judged.starts[i + 1]);
        if (!all_differ(judged.docs.data() + first, last - first, seen)) return false;
    }
    return true;
}

}  // namespace steelyard
