// The ranking rule of steelyard.alignment.ranking, for one query at a time. Only the ranks of judged documents and of
// repeats are computed; the whole list is sorted only if that is the fastest way.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "keyed.hpp"

namespace steelyard {

enum class Ties { docid_desc, docid_asc, stable };

struct Ordering {
    Ties ties;
    bool collapse;
    bool single;
};

// A judged document that was retrieved: its row in the query, and its number among all judged documents.
struct Found {
    uint32_t row;
    int64_t doc;
};

// A row whose document an earlier row of the query has.
struct Repeat {
    uint32_t row;
    uint32_t first;
};

struct Hit {
    int64_t query, doc, rank, tie_first, tie_size;
};

struct RepeatPlace {
    int64_t query, rank;
};

struct Tally {
    int64_t retrieved = 0;
    double top_score = std::numeric_limits<double>::quiet_NaN();
    bool answered = false;
};

// What a reader collects: hits and repeats in blocks of one query each.
struct Places {
    std::vector<Hit> hits;
    std::vector<RepeatPlace> repeats;
    int64_t repeated_query = -1;  // the first judged query with a repeated document; -1 if there is none
    std::string repeated_doc;     // its best-ranked repeated document, in UTF-8

    template <class Doc>
    void note_repeated(int64_t query, Doc doc) {
        if (repeated_query >= 0 && repeated_query <= query) return;
        repeated_query = query;
        repeated_doc = doc();
    }
};

// Compares the ids of two rows: the result is below, at or above zero as the first id is to the second. A pointer to a
// function, and no parameter of a template, so that what follows is compiled once; only rows with equal scores need it.
struct CompareIds {
    const void* ids;
    int (*compare)(const void* ids, uint32_t a, uint32_t b);
};

// Ranks of one query's rows.
class Ranker {
   public:
    // `in_order`: the scores are descending.
    Ranker(const double* score, uint32_t rows, bool in_order, const Ordering& ordering, CompareIds ids)
        : score_(score), rows_(rows), in_order_(in_order), ordering_(ordering), ids_(ids) {}

    // A list without repeats; `found` is in row order. Appends hits, best rank first.
    void place(int64_t query, const std::vector<Found>& found, std::vector<Hit>& hits) {
        if (found.empty()) return;
        const size_t begin = hits.size();
        if (hits.capacity() < begin + found.size()) hits.reserve(2 * (begin + found.size()));
        if (in_order_) {
            place_in_order(query, found, hits);
        } else if (found.size() <= kFew) {
            for (const Found& f : found) hits.push_back(count_for(query, f));
        } else {
            place_by_sorting(query, found, {}, hits, nullptr);
            return;
        }
        const auto first = hits.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto by_rank = [](const Hit& a, const Hit& b) { return a.rank < b.rank; };
        if (!std::is_sorted(first, hits.end(), by_rank)) std::sort(first, hits.end(), by_rank);
    }

    // A list with repeats, which is sorted as a whole. Appends hits and repeats, sets `retrieved` to the number of rows that
    // have a rank, and returns the row of the best-ranked repeat.
    uint32_t place_repeats(int64_t query, const std::vector<Found>& found, const std::vector<Repeat>& repeated,
                           Places& places, int64_t& retrieved) {
        std::vector<Keyed> ranked;
        retrieved = place_by_sorting(query, found, repeated, places.hits, &ranked);
        for (const Keyed& r : ranked) places.repeats.push_back({query, static_cast<int64_t>(r.key)});
        return static_cast<uint32_t>(ranked.front().number);
    }

   private:
    // Up to this many hits, counting the rows above each is faster than sorting.
    static constexpr size_t kFew = 24;

    const double* score_;
    uint32_t rows_;
    bool in_order_;
    const Ordering& ordering_;
    CompareIds ids_;

    // Whether row a ranks before row b, if their scores are equal.
    bool before(uint32_t a, uint32_t b) const {
        if (ordering_.ties != Ties::stable) {
            const int order = ids_.compare(ids_.ids, a, b);
            if (order != 0) return (order < 0) == (ordering_.ties == Ties::docid_asc);
        }
        return a < b;
    }

    // The rows are sorted by score: a rank is a row number, corrected within its group of equal scores.
    void place_in_order(int64_t query, const std::vector<Found>& found, std::vector<Hit>& hits) {
        std::vector<uint32_t> group;
        for (size_t i = 0; i < found.size();) {
            uint32_t begin = found[i].row, end = begin + 1;
            while (begin > 0 && score_[begin - 1] == score_[found[i].row]) --begin;
            while (end < rows_ && score_[end] == score_[found[i].row]) ++end;
            size_t next = i + 1;
            while (next < found.size() && found[next].row < end) ++next;
            const bool sort_group = ordering_.ties != Ties::stable && next - i > kFew;
            if (sort_group) group = sorted(begin, end);
            for (; i < next; ++i) {
                const uint32_t row = found[i].row;
                int64_t rank = row + 1;
                if (sort_group) {
                    const auto at = std::lower_bound(group.begin(), group.end(), row,
                                                     [this](uint32_t a, uint32_t b) { return before(a, b); });
                    rank = begin + 1 + (at - group.begin());
                } else if (ordering_.ties != Ties::stable && end - begin > 1) {
                    rank = begin + 1;
                    for (uint32_t other = begin; other < end; ++other) rank += other != row && before(other, row);
                }
                hits.push_back({query, found[i].doc, rank, begin + 1, end - begin});
            }
        }
    }

    std::vector<uint32_t> sorted(uint32_t begin, uint32_t end) const {
        std::vector<uint32_t> order(end - begin);
        std::iota(order.begin(), order.end(), begin);
        std::sort(order.begin(), order.end(), [this](uint32_t a, uint32_t b) {
            return score_[a] != score_[b] ? score_[a] > score_[b] : before(a, b);
        });
        return order;
    }

    Hit count_for(int64_t query, const Found& f) const {
        const double score = score_[f.row];
        int64_t higher = 0, equal = 0;
        for (uint32_t row = 0; row < rows_; ++row) {
            higher += score_[row] > score;
            equal += score_[row] == score;
        }
        int64_t rank = higher + 1;
        if (equal > 1)
            for (uint32_t row = 0; row < rows_; ++row)
                rank += score_[row] == score && row != f.row && before(row, f.row);
        return {query, f.doc, rank, higher + 1, equal};
    }

    // Appends repeats as their ranks and rows. Returns how many rows have a rank.
    int64_t place_by_sorting(int64_t query, const std::vector<Found>& found, const std::vector<Repeat>& repeated,
                             std::vector<Hit>& hits, std::vector<Keyed>* ranked) {
        std::vector<uint32_t> order = sorted(0, rows_);
        // A document is identified by its first row in the input; the first of its rows in `order` is the one that counts.
        std::vector<uint32_t> document(rows_);
        std::iota(document.begin(), document.end(), 0u);
        for (const Repeat& r : repeated) document[r.row] = r.first;
        std::vector<int64_t> doc(rows_, -1), rank_of(rows_, 0);
        for (const Found& f : found) doc[f.row] = f.doc;
        if (ordering_.collapse && !repeated.empty()) {
            std::vector<uint32_t> again;
            const auto is_repeat = [&](uint32_t row) {
                if (rank_of[document[row]]++ == 0) return false;
                again.push_back(row);
                return true;
            };
            std::vector<uint32_t> kept;
            for (const uint32_t row : order)
                if (!is_repeat(row)) kept.push_back(row);
            order = std::move(kept);
            for (size_t i = 0; i < order.size(); ++i) rank_of[document[order[i]]] = static_cast<int64_t>(i) + 1;
            for (const uint32_t row : again) ranked->push_back({static_cast<uint64_t>(rank_of[document[row]]), row});
            KeyedSort()(*ranked);
            std::fill(rank_of.begin(), rank_of.end(), 0);
        }
        size_t begin = 0, end = 0;
        for (size_t i = 0; i < order.size(); ++i) {
            const uint32_t row = order[i], first = document[row];
            if (i == end) {
                begin = i;
                while (end < order.size() && score_[order[end]] == score_[row]) ++end;
            }
            const auto rank = static_cast<int64_t>(i) + 1;
            if (rank_of[first] != 0) {
                ranked->push_back({static_cast<uint64_t>(rank), row});
                continue;
            }
            rank_of[first] = rank;
            if (doc[first] >= 0)
                hits.push_back({query, doc[first], rank, static_cast<int64_t>(begin) + 1, static_cast<int64_t>(end - begin)});
        }
        return static_cast<int64_t>(order.size());
    }
};

}  // namespace steelyard
