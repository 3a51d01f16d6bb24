// One pass over the lines of a TREC run that keeps only the ranks of the judged documents.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "judged.hpp"
#include "open_query.hpp"
#include "source.hpp"

namespace steelyard {

// unusual: not a clean run file, left to the readers of steelyard.io. interleaved: the lines of a query are not
// together. changed: the file became shorter while it was read. Python sees the numbers.
enum class Outcome { clean, unusual, interleaved, changed };

// Distinct texts, in the order they were first added.
class Distinct {
   public:
    Distinct() = default;
    Distinct(Distinct&&) = default;
    Distinct& operator=(Distinct&&) = default;

    void add(const std::string& text) {
        const auto added = known_.insert(text);
        if (added.second) in_order_.push_back(&*added.first);
    }
    void add(const Distinct& later) {
        for (const std::string* text : later.in_order_) add(*text);
    }
    size_t count() const { return known_.size(); }
    const std::string& operator[](size_t i) const { return *in_order_[i]; }

   private:
    struct Hash {
        size_t operator()(const std::string& text) const { return hash_id(text.data(), text.size()); }
    };
    std::unordered_set<std::string, Hash> known_;
    std::vector<const std::string*> in_order_;  // the strings of a set do not move
};

// Shared by the scans of the pieces of one file. Each judged query is written by only one of them.
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

    // Whole lines; only the last line of a file may lack its line end.
    Outcome lines(const char* begin, const char* end);
    // One line. The lines of a query must come one after another, but need not be adjacent in memory.
    Outcome line_at(const char* begin, const char* end);
    void finish();
    // Copies the ids of the open query: the bytes they point to are about to be freed.
    void keep_ids();

    Places places;
    Distinct run_only;  // queries without judgments
    Distinct tags;

   private:
    Shared& shared_;
    OpenQuery<Id> query_;
    uint32_t kept_ = 0;  // rows of the open query whose ids are copies in copies_
    std::vector<std::unique_ptr<char[]>> copies_;
    bool any_lines_ = false;
    std::string query_id_, tag_;
    Repeated before_id_, after_score_;
    char separator_ = ' ';
    uint32_t foreign_ = 0;  // not zero once a byte outside ASCII was read

    // Both return the start of the next line. `quick` returns null for a line that does not begin and end like the
    // line before it, `careful` for an unusual line.
    const char* quick(const char* line);
    const char* careful(const char* line, const char* end);
    // How many bytes `quick` may read at most.
    size_t reach() const { return before_id_.size() + after_score_.size() + 128; }
    bool start_query(const char* text, size_t size);
    Outcome trouble_ = Outcome::unusual;  // why `careful` returned null
};

// The result of a whole run. The queries in `places` are in no particular order.
struct RunScan {
    Outcome outcome = Outcome::unusual;
    Places places;
    Distinct run_only, tags;

    void absorb(Scan& part);
};

// False for an empty file and one that starts with a byte order mark.
bool starts_cleanly(const char* begin, const char* end);
// The bytes of a file that a thread has in memory: few enough for the second-level cache.
constexpr size_t kBlock = size_t{1} << 18;

// Scans a file in pieces of about `piece` bytes, cut where a query ends. Any number of threads may work on it at once,
// and a thread may join late.
class PieceScan {
   public:
    PieceScan(Shared& shared, const Source& source, size_t piece, size_t block = kBlock);
    void work();            // scans pieces that no other thread took, until none is left
    void stop() { stop_ = true; }
    RunScan result();       // once no thread works any more
    size_t pieces() const { return scans_.size(); }

   private:
    Shared& shared_;
    const Source& source_;
    const size_t block_;
    bool clean_start_ = false, changed_ = false;
    std::vector<size_t> borders_{0};
    std::vector<std::unique_ptr<Scan>> scans_;
    std::vector<Outcome> outcomes_;
    std::atomic<size_t> next_{0};
    std::atomic<bool> stop_{false}, out_of_memory_{false};
};

// Threads that do the work; fewer if the system refuses to start as many.
std::vector<std::thread> start_workers(PieceScan& scan, size_t count);
// The same on several threads, from start to end.
RunScan scan_pieces(Shared& shared, const Source& source, unsigned threads, size_t piece, size_t block = kBlock);
// The same in memory, for files whose queries interleave: the offsets of the lines, 8 bytes each, are sorted by query first.
RunScan scan_interleaved(Shared& shared, const char* begin, const char* end);

}  // namespace steelyard
