// The query whose documents are being read, from a file or from memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "inlining.hpp"
#include "rank.hpp"
#include "slots.hpp"

namespace steelyard {

// The rows of a query that can be numbered.
constexpr uint32_t kMostRows = 0x40000000u;

// Id has `known()`, whether any document can have it; `is(other)`; and `compare(other)`, in the order of code points.
template <class Id>
class OpenQuery {
   public:
    int64_t index = -1;  // -1: no query is open, or the open one has no judgments

    // The judged documents are docs[begin] to docs[end]; `hashes` are theirs.
    void open(int64_t query, const Id* docs, const uint32_t* hashes, size_t begin, size_t end) {
        index = query;
        judged_ = docs + begin;
        judged_hashes_ = hashes + begin;
        judged_start_ = static_cast<int64_t>(begin);
        // Expects as many rows as the query before had: the lists of a run are usually of similar length.
        slots_.clear(rows_ + (end - begin) + 1);
        rows_ = 0;
        found_.clear();
        repeats_.clear();
        judged_row_.assign(end - begin, 0);
        for (size_t i = 0; i < judged_row_.size(); ++i)
            if (judged_[i].known())
                slots_.find_or_add(hashes[begin + i], kJudged | static_cast<uint32_t>(i), [](uint32_t) { return false; });
        set_capacity();
    }

    // False if there are more rows than can be numbered.
    STEELYARD_INLINE bool add(Id id, uint32_t hash, double score) {
        if (rows_ == capacity_ && !grow()) return false;
        const uint32_t row = rows_++;
        scores_[row] = score;
        ids_[row] = id;
        hashes_[row] = hash;
        // Judged documents are in the table from the start: one lookup finds both hits and repeats.
        const uint32_t known = slots_.find_or_add(hash, row + 1, [&](uint32_t number) {
            return hash_of(number) == hash && id_of(number).is(id);
        });
        if (known != 0) met(known, row);
        return true;
    }

    // Opens a query of so many documents that cannot repeat, such as the keys of a dict. The caller sets their ids and
    // scores, and adds the judged ones in the order of the rows.
    void open_unique(int64_t query, size_t rows) {
        index = query;
        rows_ = static_cast<uint32_t>(rows);
        found_.clear();
        repeats_.clear();
        if (scores_.size() < rows) resize(rows);
    }
    uint32_t rows() const { return rows_; }
    Id* ids() { return ids_.data(); }
    double* scores() { return scores_.data(); }
    void add_found(uint32_t row, int64_t doc) { found_.push_back({row, doc}); }

    // Counts and ranks the rows. Returns the best-ranked repeated id, or null.
    STEELYARD_HOT const Id* close(const Ordering& ordering, Tally& tally, Places& places) {
        tally.answered = true;
        tally.retrieved = rows_;
        const auto scores_end = scores_.begin() + rows_;
        const bool in_order = std::is_sorted(scores_.begin(), scores_end, std::greater<double>());
        if (rows_ > 0) tally.top_score = in_order ? scores_[0] : *std::max_element(scores_.begin(), scores_end);
        if (ordering.single)
            for (uint32_t row = 0; row < rows_; ++row) scores_[row] = static_cast<double>(static_cast<float>(scores_[row]));
        const CompareIds compare{ids_.data(), [](const void* ids, uint32_t a, uint32_t b) {
            return static_cast<const Id*>(ids)[a].compare(static_cast<const Id*>(ids)[b]);
        }};
        Ranker ranker(scores_.data(), rows_, in_order, ordering, compare);
        const int64_t query = index;
        index = -1;
        if (repeats_.empty()) {
            ranker.place(query, found_, places.hits);
            return nullptr;
        }
        return &ids_[ranker.place_repeats(query, found_, repeats_, places, tally.retrieved)];
    }

   private:
    static constexpr uint32_t kJudged = 0x80000000u;  // marks the number of a judged document

    uint32_t rows_ = 0;
    uint32_t capacity_ = 0;  // rows that fit before a vector or the table must grow
    std::vector<double> scores_;
    std::vector<Id> ids_;
    std::vector<uint32_t> hashes_;
    Slots slots_;
    const Id* judged_ = nullptr;        // the judged documents of the query
    const uint32_t* judged_hashes_ = nullptr;
    int64_t judged_start_ = 0;          // the number of the first of them among all
    std::vector<uint32_t> judged_row_;  // 1 + the first row of each, or 0
    std::vector<Found> found_;
    std::vector<Repeat> repeats_;

    const Id& id_of(uint32_t number) const { return number & kJudged ? judged_[number & ~kJudged] : ids_[number - 1]; }

    uint32_t hash_of(uint32_t number) const {
        return number & kJudged ? judged_hashes_[number & ~kJudged] : hashes_[number - 1];
    }

    STEELYARD_APART void met(uint32_t number, uint32_t row) {
        if (!(number & kJudged)) {
            repeats_.push_back({row, number - 1});
            return;
        }
        uint32_t& first = judged_row_[number & ~kJudged];
        if (first == 0) {
            first = row + 1;
            found_.push_back({row, judged_start_ + (number & ~kJudged)});
        } else {
            repeats_.push_back({row, first - 1});
        }
    }

    void resize(size_t size) {
        scores_.resize(size);
        ids_.resize(size);
        hashes_.resize(size);
    }

    void set_capacity() { capacity_ = static_cast<uint32_t>(std::min(scores_.size(), slots_.capacity() - judged_row_.size())); }

    STEELYARD_APART bool grow() {
        if (rows_ >= kMostRows) return false;
        if (rows_ == scores_.size()) resize(std::max<size_t>(64, 2 * scores_.size()));
        if (rows_ + judged_row_.size() >= slots_.capacity()) slots_.grow([this](uint32_t number) { return hash_of(number); });
        set_capacity();
        return true;
    }
};

}  // namespace steelyard
