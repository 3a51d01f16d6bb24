// One pass over the lines of a TREC run, keeping only where the judged documents stand.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "judged.hpp"
#include "open_query.hpp"

namespace steelyard {

// Odd: not a clean run file, for a careful reader to look at. Interleaved: a query's lines do not stand together.
enum class Outcome { clean, odd, interleaved };

// Queries of the run that nobody judged, in the order they first came.
class RunOnly {
   public:
    RunOnly() = default;
    RunOnly(RunOnly&&) = default;
    RunOnly& operator=(RunOnly&&) = default;

    void add(const std::string& query) {
        const auto added = known_.insert(query);
        if (added.second) in_order_.push_back(&*added.first);
    }
    void add(const RunOnly& later) {
        for (const std::string* query : later.in_order_) add(*query);
    }
    size_t count() const { return known_.size(); }
    const std::string& operator[](size_t i) const { return *in_order_[i]; }

   private:
    std::unordered_set<std::string> known_;
    std::vector<const std::string*> in_order_;  // a set's strings stay where they are
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

class Scan {
   public:
    explicit Scan(Shared& shared) : shared_(shared) {}

    // Whole lines only, but for the last of a file.
    Outcome lines(const char* begin, const char* end);
    // The same for lines that stand anywhere: those of one query must come together.
    Outcome line_at(const char* begin, const char* end);
    void finish();
    // Copies the ids of the open query, whose bytes are about to go.
    void keep_ids();

    Places places;
    RunOnly run_only;

   private:
    Shared& shared_;
    OpenQuery<Id> query_;
    uint32_t kept_ = 0;  // rows of the open query whose ids are copies,
    std::vector<std::unique_ptr<char[]>> copies_;
    bool any_lines_ = false;
    std::string query_id_;
    Repeated before_id_, after_score_;
    char separator_ = ' ';
    uint32_t foreign_ = 0;  // not zero once a byte outside ASCII came

    // Both give the start of the next line: `quick` nothing where the line is not like the one before,
    // `careful` nothing where it is odd.
    const char* quick(const char* line);
    const char* careful(const char* line, const char* end);
    // How many bytes `quick` may read.
    size_t reach() const { return before_id_.size() + after_score_.size() + 128; }
    bool start_query(const char* text, size_t size);
    Outcome trouble_ = Outcome::odd;  // why `careful` gave nothing
};

// What a whole run gave; `places` is in no order of queries.
struct RunScan {
    Outcome outcome = Outcome::odd;
    Places places;
    RunOnly run_only;
    std::string tag;  // empty where the first line has none

    void absorb(Scan& part);
};

// Empty files and byte order marks are not for this reader.
bool starts_cleanly(const char* begin, const char* end);
// The sixth word of a line, or nothing.
std::string tag_of(const char* line, const char* end);
// A file in memory in pieces, cut where a query ends, near every `piece` bytes. Any number of threads may
// work at it at once, and one may join late.
class PieceScan {
   public:
    PieceScan(Shared& shared, const char* begin, const char* end, size_t piece);
    void work();            // scans pieces that nobody else took, until none is left
    void stop() { stop_ = true; }
    RunScan result();       // once nobody works any more
    size_t pieces() const { return scans_.size(); }

   private:
    Shared& shared_;
    const bool clean_start_;
    std::vector<const char*> borders_;
    std::vector<std::unique_ptr<Scan>> scans_;
    std::vector<Outcome> outcomes_;
    std::atomic<size_t> next_{0};
    std::atomic<bool> stop_{false}, out_of_memory_{false};
};

// The same on several threads, from beginning to end.
RunScan scan_pieces(Shared& shared, const char* begin, const char* end, unsigned threads, size_t piece);
// The same for files whose queries interleave: lines are sorted by query first, eight bytes each.
RunScan scan_interleaved(Shared& shared, const char* begin, const char* end);

}  // namespace steelyard
