// One pass over the lines of a TREC run that keeps only the ranks of the judged documents.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "open_query.hpp"
#include "pieces.hpp"

namespace steelyard {

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

class Scan : public Part, public RunLines<Scan> {
   public:
    explicit Scan(Shared& shared) : shared_(shared) {}

    Outcome lines(const char* begin, const char* end) override {
        const Outcome outcome = read_lines(begin, end);
        keep_ids();
        return outcome;
    }
    void finish() override;

    Places places;
    Distinct run_only;  // queries without judgments

   private:
    friend RunLines<Scan>;
    Shared& shared_;
    OpenQuery<Id> query_;
    uint32_t kept_ = 0;  // rows of the open query whose ids are copies in copies_
    std::vector<std::unique_ptr<char[]>> copies_;

    // Copies the ids of the open query.
    void keep_ids();
    // False if the query had lines before.
    bool start_query(const char* text, size_t size);
    STEELYARD_INLINE bool add(Id id, double score, bool readable) {
        if (query_.index < 0) return true;
        return query_.add(id, readable ? hash_readable(id.text, id.size) : hash_id(id.text, id.size), score);
    }
};

// The result of a whole run. The queries in `places` are in no particular order.
struct RunScan {
    Outcome outcome = Outcome::unusual;
    Places places;
    Distinct run_only, tags;

    void absorb(Scan& part);
};

// The parts of a scan in pieces, once no thread works any more.
RunScan result_of(Pieces& pieces);
// The same on several threads, from start to end.
RunScan scan_pieces(Shared& shared, const Source& source, unsigned threads, size_t piece, size_t block = kBlock);

}  // namespace steelyard
