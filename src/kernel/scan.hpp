// One pass over the lines of a TREC run, keeping only where the judged documents stand.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include "judged.hpp"
#include "rank.hpp"

namespace steelyard {

// Odd: not a clean run file, for a careful reader to look at. Interleaved: a query's lines do not stand together.
enum class Outcome { clean, odd, interleaved };

// Queries of the run that nobody judged, in the order they first came.
class RunOnly {
   public:
    void add(std::string query) {
        if (known_.insert(query).second && first_.size() < kShown) first_.push_back(std::move(query));
    }
    void add(const RunOnly& later) {
        for (const std::string& query : later.first_) add(query);
        for (const std::string& query : later.known_) add(query);
    }
    size_t count() const { return known_.size(); }
    const std::vector<std::string>& examples() const { return first_; }

   private:
    static constexpr size_t kShown = 5;
    std::unordered_set<std::string> known_;
    std::vector<std::string> first_;
};

// What scans of the pieces of one file share: each judged query is written by one of them only.
struct Shared {
    explicit Shared(const JudgedTexts& texts, const Ordering& order)
        : judged(texts), ordering(order), tallies(texts.queries.size()), seen(new std::atomic<bool>[texts.queries.size()]) {
        for (size_t i = 0; i < texts.queries.size(); ++i) seen[i].store(false, std::memory_order_relaxed);
    }
    const JudgedTexts& judged;
    const Ordering ordering;
    std::vector<Tally> tallies;
    std::unique_ptr<std::atomic<bool>[]> seen;
};

// The query whose lines are being read.
class OpenQuery {
   public:
    int64_t index = -1;  // -1: nobody judged it

    void open(int64_t query, const JudgedTexts& judged);
    void close(Shared& shared, Places& places);
    // Copies the ids of the rows so far, whose bytes are about to go.
    void keep_ids();

    bool add(const char* text, size_t size, uint32_t hash, double score) {
        if (rows_ == scores_.size() && !grow()) return false;
        const uint32_t row = rows_++;
        top_ = score > top_ ? score : top_;
        scores_[row] = single_ ? static_cast<double>(static_cast<float>(score)) : score;
        ids_[row] = {text, static_cast<uint32_t>(size)};
        const uint32_t known = slots_.find_or_add(hash, row + 1, [&](uint32_t number) { return id_of(number).is(text, size); });
        if (known != 0) met_again(known, row);
        return true;
    }
    void set_single(bool single) { single_ = single; }

   private:
    static constexpr uint32_t kJudged = 0x80000000u;  // marks a slot whose number is of a judged document

    bool single_ = false;
    uint32_t rows_ = 0;
    uint32_t kept_ = 0;
    double top_ = 0;
    std::vector<double> scores_;
    std::vector<Id> ids_;
    std::vector<std::unique_ptr<char[]>> copies_;
    Slots slots_;
    const Id* judged_ = nullptr;          // the query's judged documents,
    int64_t judged_start_ = 0;            // the place of the first among all,
    std::vector<uint32_t> judged_row_;    // and 1 + the row where each first stood
    std::vector<Found> found_;
    std::vector<Repeat> repeats_;

    const Id& id_of(uint32_t number) const {
        return number & kJudged ? judged_[number & ~kJudged] : ids_[number - 1];
    }
    void met_again(uint32_t number, uint32_t row);
    bool grow();
};

class Scan {
   public:
    explicit Scan(Shared& shared) : shared_(shared) { query_.set_single(shared.ordering.single); }

    // Whole lines only, but for the last of a file.
    Outcome lines(const char* begin, const char* end);
    // The same for lines that stand anywhere: those of one query must come together.
    Outcome line_at(const char* begin, const char* end);
    void finish() { query_.close(shared_, places); }
    void keep_ids() { query_.keep_ids(); }

    Places places;
    RunOnly run_only;
    bool any_lines = false;
    bool has_tag = false;
    std::string tag;

   private:
    Shared& shared_;
    OpenQuery query_;
    std::string query_id_;
    Repeated before_id_, after_score_;
    char separator_ = ' ';
    uint32_t foreign_ = 0;  // not zero once a byte outside ASCII came

    // Both give the start of the next line: `quick` nothing where the line is not like the one before,
    // `careful` nothing where it is odd.
    const char* quick(const char* line);
    const char* careful(const char* line, const char* end);
    size_t reach() const { return before_id_.size() + after_score_.size() + 128; }
    Outcome start_query(const char* text, size_t size);
    Outcome outcome_ = Outcome::clean;
};

// A file in memory, on several threads. Pieces are cut where a query ends, near every `piece` bytes.
struct FileScan {
    Outcome outcome;
    Places places;
    RunOnly run_only;
    bool has_tag = false;
    std::string tag;
};
FileScan scan_pieces(Shared& shared, const char* begin, const char* end, unsigned threads, size_t piece);
// The same for files whose queries interleave: lines are sorted by query first, eight bytes each.
FileScan scan_interleaved(Shared& shared, const char* begin, const char* end);

}  // namespace steelyard
