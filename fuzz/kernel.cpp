// The kernel's readers of files on arbitrary bytes. Every way to read a run must give the same result.
//
// An input is one byte of options, qrels, the byte 0xff and a run. The form is that of libFuzzer; fuzz/driver.cpp runs it
// where there is none.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "../src/kernel/columns.hpp"
#include "../src/kernel/qrels.hpp"
#include "../src/kernel/scan.hpp"

using namespace steelyard;

namespace {

// Copies of exactly the bytes that were asked for, so that the sanitizer finds every read past them.
class Exact : public Source {
   public:
    Exact(const char* begin, size_t size) : Source(size), begin_(begin) {}
    const char* bytes(size_t begin, size_t end, Buffer&) const override {
        thread_local std::unique_ptr<char[]> copy;
        copy.reset(new char[end - begin]);
        std::memcpy(copy.get(), begin_ + begin, end - begin);
        return copy.get();
    }

   private:
    const char* begin_;
};

std::unique_ptr<char[]> copied(const char* begin, size_t size) {
    std::unique_ptr<char[]> copy(new char[size]);
    if (size) std::memcpy(copy.get(), begin, size);
    return copy;
}

struct Result {
    std::vector<Tally> tallies;
    RunScan scan;
};

template <class Read>
Result result_of(const JudgedTexts& judged, const Ordering& ordering, Read read) {
    Shared shared(judged, ordering);
    Result result;
    result.scan = read(shared);
    result.tallies = shared.tallies;
    const auto by_query = [](const auto& a, const auto& b) { return a.query < b.query; };
    std::stable_sort(result.scan.places.hits.begin(), result.scan.places.hits.end(), by_query);
    std::stable_sort(result.scan.places.repeats.begin(), result.scan.places.repeats.end(), by_query);
    return result;
}

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "not the same: %s\n", what);
    std::abort();
}

// Slots that are looked at to put words into a table, words of which no two are equal.
size_t slots_looked_at(const std::vector<uint64_t>& words) {
    Slots table;
    table.clear(words.size());
    size_t looked_at = 0;
    for (size_t i = 0; i < words.size(); ++i)
        table.find_or_add(hash_id(reinterpret_cast<const char*>(&words[i]), 8), static_cast<uint32_t>(i + 1), [&](uint32_t) {
            ++looked_at;
            return false;
        });
    return looked_at;
}

// Ids whose hashes would be equal with the golden ratio as the multiplier, which is the usual one, are spread like others.
// The steps are counted: a clock would count other programs too.
void require_spread_hashes() {
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15u;
    uint64_t inverse = kGolden;  // Newton's iteration: every step doubles the right bits
    for (int i = 0; i < 5; ++i) inverse *= 2 - kGolden * inverse;
    std::vector<uint64_t> chosen, others;
    std::mt19937_64 draw(0);
    for (int i = 0; i < 6000; ++i) {
        chosen.push_back((draw() >> 22) * inverse);
        others.push_back(draw());
    }
    require(kGolden * inverse == 1, "the inverse of the golden ratio");
    require(slots_looked_at(chosen) < 4 * slots_looked_at(others) + 6000, "the steps for ids chosen for equal hashes");
}

void compare(const Result& a, const Result& b) {
    const Places &p = a.scan.places, &q = b.scan.places;
    require(p.hits.size() == q.hits.size() && p.repeats.size() == q.repeats.size(), "numbers of hits or repeats");
    for (size_t i = 0; i < p.hits.size(); ++i) {
        const Hit &x = p.hits[i], &y = q.hits[i];
        require(x.query == y.query && x.doc == y.doc && x.rank == y.rank && x.tie_first == y.tie_first && x.tie_size == y.tie_size,
                "hits");
    }
    for (size_t i = 0; i < p.repeats.size(); ++i)
        require(p.repeats[i].query == q.repeats[i].query && p.repeats[i].rank == q.repeats[i].rank, "repeats");
    require(p.repeated_query == q.repeated_query && p.repeated_doc == q.repeated_doc, "the first repeat");
    require(a.scan.run_only.count() == b.scan.run_only.count() && a.scan.tags.count() == b.scan.tags.count(), "queries or tags");
    for (size_t i = 0; i < a.scan.tags.count(); ++i) require(a.scan.tags[i] == b.scan.tags[i], "tags");
    for (size_t i = 0; i < a.tallies.size(); ++i)
        require(a.tallies[i].retrieved == b.tallies[i].retrieved && a.tallies[i].answered == b.tallies[i].answered, "counts");
}

RunScan streamed(Shared& shared, const char* run, size_t size, size_t step) {
    Scan scan(shared);
    RunScan result;
    result.outcome = starts_cleanly(run, run + size) ? Outcome::clean : Outcome::unusual;
    for (size_t begin = 0; begin < size && result.outcome == Outcome::clean;) {
        size_t end = std::min(size, begin + step);
        while (end < size && run[end - 1] != '\n') ++end;
        const auto block = copied(run + begin, end - begin);
        result.outcome = scan.lines(block.get(), block.get() + (end - begin));
        begin = end;
    }
    if (result.outcome != Outcome::clean) return result;
    scan.finish();
    result.absorb(scan);
    return result;
}

// The rows of the run as columns, as a text.
std::string columns_of(const Source& source, size_t step, size_t block, Outcome& outcome) {
    Pieces pieces(source, step, [] { return std::make_unique<Columns>(); }, block);
    read_pieces(pieces, 1);
    outcome = pieces.outcome();
    std::string rows;
    if (outcome != Outcome::clean) return rows;
    for (const auto& part : pieces.parts) {
        const auto& columns = static_cast<const Columns&>(*part);
        for (size_t i = 0; i < columns.scores.size(); ++i) {
            for (const TextView& view : {columns.queries[i], columns.docs[i]}) {
                const Id id{view.size <= sizeof view.start + sizeof view.rest ? view.start : columns.texts.data() + view.place.offset, view.size};
                rows.append(id.text, id.size).append(1, ' ');
            }
            rows.append(reinterpret_cast<const char*>(&columns.scores[i]), sizeof(double)).append(1, '\n');
        }
    }
    return rows;
}

const char kQrels[] = "q1 0 d1 1\nq1 0 d10 0\nq1 0 document-of-some-length 2\nq2 0 d2 1\nq2 0 \xc3\xa9 1\nq3 0 d1 0\n";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    static const bool spread = (require_spread_hashes(), true);
    if (size == 0 || !spread) return 0;
    const unsigned options = data[0];
    const char* const begin = reinterpret_cast<const char*>(data) + 1;
    const char* const end = begin + (size - 1);
    const char* const cut = std::find(begin, end, '\xff');
    const auto qrels_size = static_cast<size_t>(cut - begin);
    const auto run_size = static_cast<size_t>(cut == end ? 0 : end - cut - 1);
    const auto qrels = copied(begin, qrels_size), run = copied(end - run_size, run_size);

    JudgedTexts judged;
    std::vector<double> grades;
    if (!read_qrels(qrels.get(), qrels.get() + qrels_size, judged, grades)) {
        judged = JudgedTexts();
        grades.clear();
        require(read_qrels(kQrels, kQrels + sizeof kQrels - 1, judged, grades), "the qrels of the harness");
    }
    judged.index();

    const Ordering ordering{static_cast<Ties>(options % 3), (options & 4) != 0, (options & 8) != 0};
    const size_t steps[] = {1, 7, 60, 1 << 20};
    const size_t step = steps[options >> 4 & 3], block = steps[options >> 6 & 3];
    const unsigned threads = options == 0x51 ? 2 : 1;  // rarely: the sanitizer makes threads slow
    const Exact source(run.get(), run_size);
    const Result pieces =
        result_of(judged, ordering, [&](Shared& s) { return scan_pieces(s, source, threads, step, block); });
    const Result stream = result_of(judged, ordering, [&](Shared& s) { return streamed(s, run.get(), run_size, block); });
    require(pieces.scan.outcome != Outcome::changed, "a file that did not change");
    if (pieces.scan.outcome == Outcome::clean) {
        require(stream.scan.outcome == Outcome::clean, "clean or not");
        compare(pieces, stream);
    } else {
        require(stream.scan.outcome != Outcome::clean, "clean or not, in pieces");
    }
    Outcome outcome, at_once;
    const std::string rows = columns_of(source, step, block, outcome);
    require(rows == columns_of(source, run_size + 1, run_size + 1, at_once) && outcome == at_once, "columns");
    // Columns take queries in any order; a scan stops where one comes back, and may not see a wrong line below.
    if (outcome == Outcome::clean) require(pieces.scan.outcome != Outcome::unusual, "clean or not, as columns");
    if (pieces.scan.outcome == Outcome::clean) require(outcome == Outcome::clean, "clean or not, as columns");
    return 0;
}
