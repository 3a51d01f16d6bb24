// Runs held as frames: the hits of one run, and the pool of several runs for fusion.
#include <limits>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "arrow.hpp"
#include "keyed.hpp"
#include "run_answer.hpp"

namespace steelyard {

namespace {

// An array that is written to.
template <class T, class... Shape>
using Output = nb::ndarray<T, nb::c_contig, nb::device::cpu, Shape...>;

std::string_view view_of(const Id& id) { return {id.text, id.size}; }

// One pass over the rows of a run, as Scan makes over the lines of a file. The rows of a query must be together.
class FrameScan {
   public:
    FrameScan(Shared& shared, bool ordered) : shared_(shared), ordered_(ordered) {}

    STEELYARD_HOT Outcome rows(const TextColumn& queries, const TextColumn& docs, const double* scores) {
        TextColumn::Cursor query(queries), doc(docs);
        Id current{nullptr, 0};
        for (size_t row = 0; row < queries.size(); ++row) {
            const Id id = query.next(), document = doc.next();
            if (!current.text || !id.is(current)) {
                close();
                current = id;
                if (!start(id)) return Outcome::interleaved;
                first_ = row;
            }
            if (open_.index < 0) continue;
            const double score = scores[row];
            if (ordered_ && !(best_ >= score) && score == score) best_ = score;
            const double key = ordered_ ? -static_cast<double>(row - first_) : score;
            if (!open_.add(document, hash_id(document.text, document.size), key)) return Outcome::unusual;
        }
        close();
        return Outcome::clean;
    }

    Places places;
    Distinct run_only;

   private:
    Shared& shared_;
    const bool ordered_;
    OpenQuery<Id> open_;
    size_t first_ = 0;
    double best_ = 0;  // of an ordered list

    // False if the query had rows before.
    bool start(const Id& id) {
        best_ = std::numeric_limits<double>::quiet_NaN();
        const int64_t place = shared_.judged.query(id.text, id.size);
        if (place < 0) {
            run_only.add(std::string(view_of(id)));
            return true;
        }
        const auto i = static_cast<size_t>(place);
        if (shared_.tallies[i].answered) return false;
        const JudgedTexts& judged = shared_.judged;
        open_.open(place, judged.docs.data(), judged.hashes.data(), static_cast<size_t>(judged.starts[i]),
                   static_cast<size_t>(judged.starts[i + 1]));
        return true;
    }

    void close() {
        if (open_.index < 0) return;
        const int64_t query = open_.index;
        Tally& tally = shared_.tallies[static_cast<size_t>(query)];
        Ordering ordering = shared_.ordering;
        if (ordered_) ordering = {Ties::stable, ordering.collapse, false};
        const Id* repeated = open_.close(ordering, tally, places);
        if (ordered_) tally.top_score = best_;
        if (repeated) places.note_repeated(query, [&] { return std::string(view_of(*repeated)); });
    }
};

// The result has the form of a scan of a file; the number of the Outcome if it is not clean.
nb::object scan_frame(nb::handle queries, nb::handle docs, Column<double> scores, const Judged& judged, bool ordered,
                      int ties, bool collapse, bool single) {
    const TextColumn query_column(queries), doc_column(docs);
    RunScan result;
    Shared shared(judged.texts(), ordering_of(ties, collapse, single));
    if (query_column.usable() && doc_column.usable()) {
        if (query_column.size() != doc_column.size() || query_column.size() != scores.size())
            throw nb::value_error("columns must have the same number of rows");
        nb::gil_scoped_release released;
        FrameScan scan(shared, ordered);
        result.outcome = scan.rows(query_column, doc_column, scores.data());
        result.places = std::move(scan.places);
        result.run_only = std::move(scan.run_only);
    }
    return answer(shared, result);
}

// A run of a fusion: (column of queries, of documents, scores, whether it is ordered).
struct PooledRun {
    explicit PooledRun(nb::handle run) : queries(part(run, 0)), docs(part(run, 1)) {
        if (!nb::try_cast(run[2], scores, false) || !nb::try_cast(run[3], ordered, false)) throw nb::type_error(kForm);
        if (queries.usable() && docs.usable() && (queries.size() != docs.size() || docs.size() != scores.size()))
            throw nb::value_error("columns must have the same number of rows");
    }
    size_t size() const { return docs.size(); }

    const TextColumn queries, docs;
    Column<double> scores;
    bool ordered = false;

   private:
    static constexpr const char* kForm = "a run is a column of queries, one of documents, scores, and whether it is ordered";
    static nb::object part(nb::handle run, Py_ssize_t i) {
        if (!PyTuple_Check(run.ptr()) || PyTuple_GET_SIZE(run.ptr()) != 4) throw nb::type_error(kForm);
        return run[i];
    }
};

// The candidates of a fusion, query by query: see steelyard.fusion.candidates.Pool.
class Pooling {
   public:
    // False if the rows of a query of a run are not together.
    bool add_run(const TextColumn& queries) {
        std::vector<Segment> segments;
        TextColumn::Cursor cursor(queries);
        Id current{nullptr, 0};
        for (size_t row = 0; row < queries.size(); ++row) {
            const Id id = cursor.next();
            if (current.text && id.is(current)) continue;
            if (!segments.empty()) segments.back().end = row;
            current = id;
            const auto added = numbers_.emplace(view_of(id), query_ids.size());
            if (added.second) query_ids.push_back(id);
            segments.push_back({added.first->second, row, queries.size()});
        }
        lists_.emplace_back(query_ids.size(), Segment{0, 0, 0});
        for (const Segment& segment : segments) {
            if (lists_.back()[segment.query].end != 0) return false;
            lists_.back()[segment.query] = segment;
        }
        run_queries.push_back(segments.size());
        return true;
    }

    // Fills the first columns of `rank` and `value`, which have one row of `width` per run, and `rows`, a row of each
    // candidate among those of all runs.
    void fill(const std::vector<std::unique_ptr<PooledRun>>& pooled, size_t width, int64_t* rank, double* value, int64_t* rows) {
        const size_t runs = pooled.size();
        std::vector<TextColumn::Cursor> cursors;
        std::vector<int64_t> before{0};
        for (const auto& run : pooled) {
            cursors.emplace_back(run->docs);
            before.push_back(before.back() + static_cast<int64_t>(run->size()));
        }
        repeats.assign(runs, 0);
        increases.assign(runs, false);
        size_t done = 0;
        for (size_t query = 0; query < query_ids.size(); ++query) {
            starts.push_back(static_cast<int64_t>(done));
            collect(query, cursors, before, rows + done);
            sort_by_id(rows + done);
            for (size_t run = 0; run < runs; ++run)
                place(run, query, pooled[run]->scores.data(), pooled[run]->ordered, rank + run * width + done, value + run * width + done);
            done += found_.size();
        }
        size = done;
    }

    std::vector<Id> query_ids;
    std::vector<size_t> run_queries;  // the number of queries of each run
    std::vector<int64_t> starts;
    std::vector<int64_t> repeats;     // of each run
    std::vector<char> increases;      // whether a score of an ordered run is higher than the one before
    size_t size = 0;

   private:
    struct Segment {
        size_t query, begin, end;
    };
    std::unordered_map<std::string_view, size_t> numbers_;
    std::vector<std::vector<Segment>> lists_;  // of each run, by query
    Slots slots_;
    std::vector<Id> found_;  // the candidates, as they were met
    std::vector<uint32_t> hashes_;
    std::vector<Keyed> keys_;
    KeyedSort sort_;
    std::vector<std::vector<uint32_t>> members_;  // of each run, the candidate of each row
    std::vector<uint32_t> place_of_;
    std::vector<int64_t> held_;

    Segment segment(size_t run, size_t query) const {
        return query < lists_[run].size() ? lists_[run][query] : Segment{query, 0, 0};
    }

    void collect(size_t query, std::vector<TextColumn::Cursor>& cursors, const std::vector<int64_t>& before, int64_t* rows) {
        found_.clear();
        hashes_.clear();
        members_.resize(cursors.size());
        size_t expected = 0;
        for (size_t run = 0; run < cursors.size(); ++run) {
            const Segment here = segment(run, query);
            expected += here.end - here.begin;
        }
        slots_.clear(expected);
        for (size_t run = 0; run < cursors.size(); ++run) {
            const Segment here = segment(run, query);
            members_[run].clear();
            if (here.begin == here.end) continue;
            cursors[run].seek(here.begin);
            for (size_t row = here.begin; row < here.end; ++row) {
                const Id id = cursors[run].next();
                const uint32_t hash = hash_id(id.text, id.size);
                uint32_t number = slots_.find_or_add(hash, static_cast<uint32_t>(found_.size() + 1), [&](uint32_t known) {
                    return hashes_[known - 1] == hash && found_[known - 1].is(id);
                });
                if (number == 0) {
                    rows[found_.size()] = before[run] + static_cast<int64_t>(row);
                    found_.push_back(id);
                    hashes_.push_back(hash);
                    number = static_cast<uint32_t>(found_.size());
                }
                members_[run].push_back(number - 1);
            }
        }
    }

    // The first bytes of an id that follow those which all have: a number that descends as ids ascend.
    static uint64_t key_of(const Id& id, size_t skipped) {
        unsigned char bytes[8] = {};
        std::memcpy(bytes, id.text + skipped, std::min<size_t>(8, id.size - skipped));
        uint64_t head = 0;
        STEELYARD_UNROLL for (const unsigned char byte : bytes) head = head << 8 | byte;
        return ~head;
    }

    // How many bytes all candidates begin with.
    size_t common_bytes() const {
        const Id& first = found_.front();
        size_t common = first.size;
        for (const Id& id : found_) {
            common = std::min<size_t>(common, id.size);
            while (std::memcmp(id.text, first.text, common) != 0) --common;
        }
        return common;
    }

    // Largest id first, as ties are broken.
    void sort_by_id(int64_t* rows) {
        keys_.clear();
        const size_t common = common_bytes();
        for (uint32_t i = 0; i < found_.size(); ++i) keys_.push_back({key_of(found_[i], common), i});
        sort_(keys_);
        for (auto begin = keys_.begin(); begin != keys_.end();) {
            const auto end = std::find_if(begin, keys_.end(), [&](const Keyed& key) { return key.key != begin->key; });
            if (end - begin > 1)
                std::sort(begin, end, [this](const Keyed& a, const Keyed& b) {
                    return found_[a.number].compare(found_[b.number]) > 0;
                });
            begin = end;
        }
        place_of_.resize(found_.size());
        held_.assign(rows, rows + found_.size());
        for (size_t i = 0; i < found_.size(); ++i) {
            place_of_[keys_[i].number] = static_cast<uint32_t>(i);
            rows[i] = held_[keys_[i].number];
        }
    }

    // The ranks and scores of one list: a repeated document counts at its best rank, or at its first of an ordered list.
    void place(size_t run, size_t query, const double* scores, bool ordered, int64_t* rank, double* value) {
        std::fill(value, value + found_.size(), std::numeric_limits<double>::quiet_NaN());
        std::fill(rank, rank + found_.size(), 0);
        const Segment here = segment(run, query);
        if (here.begin == here.end) return;
        int64_t ranked = 0;
        uint32_t before = 0;
        bool in_order = true;
        double last = std::numeric_limits<double>::quiet_NaN();
        for (size_t row = here.begin; row < here.end; ++row) {
            const uint32_t candidate = place_of_[members_[run][row - here.begin]];
            const double score = scores[row];
            if (rank[candidate] != 0) {
                ++repeats[run];
                if (!ordered && score > value[candidate]) {
                    value[candidate] = score;
                    in_order = false;
                }
                continue;
            }
            rank[candidate] = ++ranked;
            value[candidate] = score;
            // Equal scores are in the order of the candidates.
            if (ranked > 1 && !(score < last || (score == last && candidate > before))) in_order = false;
            if (ordered && score > last) increases[run] = true;
            last = score;
            before = candidate;
        }
        if (ordered || in_order) return;
        keys_.clear();
        for (uint32_t candidate = 0; candidate < found_.size(); ++candidate)
            if (rank[candidate] != 0) keys_.push_back({descending_key(value[candidate]), candidate});
        sort_(keys_);
        for (size_t i = 0; i < keys_.size(); ++i) rank[keys_[i].number] = static_cast<int64_t>(i) + 1;
    }
};

// (query ids, starts, number of candidates, queries and repeats of each run, whether its scores increase); None where the
// columns are not plain text or the rows of a query are not together.
nb::object pool_frames(nb::list runs, Output<int64_t, nb::ndim<2>> rank, Output<double, nb::ndim<2>> value,
                       Output<int64_t, nb::ndim<1>> rows) {
    std::vector<std::unique_ptr<PooledRun>> pooled;
    size_t total = 0;
    for (const nb::handle run : runs) {
        pooled.push_back(std::make_unique<PooledRun>(run));
        if (!pooled.back()->queries.usable() || !pooled.back()->docs.usable()) return nb::none();
        total += pooled.back()->size();
    }
    if (rank.shape(0) != pooled.size() || value.shape(0) != pooled.size() || rank.shape(1) != total || value.shape(1) != total ||
        rows.shape(0) != total || total >= kMostRows)
        throw nb::value_error("expected arrays with one place per row of every run");
    Pooling pooling;
    bool together = true;
    {
        nb::gil_scoped_release released;
        for (const auto& run : pooled) together = together && pooling.add_run(run->queries);
        if (together) pooling.fill(pooled, total, rank.data(), value.data(), rows.data());
    }
    if (!together) return nb::none();
    nb::list ids, increases;
    for (const Id& id : pooling.query_ids) ids.append(nb::str(id.text, id.size));
    for (const char each : pooling.increases) increases.append(each != 0);
    return nb::make_tuple(ids, bytes_of(pooling.starts), pooling.size, bytes_of(pooling.run_queries), bytes_of(pooling.repeats), increases);
}

// The candidates by query, in descending order of score, equal ones in their order; those with a score of NaN are left
// out. Returns how many are written to `order`.
size_t best_first(Column<int64_t> starts, Column<double> scores, Output<int64_t, nb::ndim<1>> order) {
    const size_t size = scores.size();
    if (order.shape(0) != size) throw nb::value_error("expected one place per candidate");
    const std::vector<int64_t> borders(starts.data(), starts.data() + starts.size());
    if (!std::is_sorted(borders.begin(), borders.end()) || (!borders.empty() && (borders.front() < 0 || borders.back() > static_cast<int64_t>(size))))
        throw nb::value_error("starts must ascend within the candidates");
    const double* const score = scores.data();
    int64_t* const to = order.data();
    nb::gil_scoped_release released;
    std::vector<Keyed> keys;
    KeyedSort sort;
    size_t done = 0;
    for (size_t query = 0; query < borders.size(); ++query) {
        const int64_t begin = borders[query], end = query + 1 < borders.size() ? borders[query + 1] : static_cast<int64_t>(size);
        keys.clear();
        for (int64_t i = begin; i < end; ++i)
            if (score[i] == score[i]) keys.push_back({descending_key(score[i]), static_cast<uint32_t>(i - begin)});
        sort(keys);
        for (const Keyed& each : keys) to[done++] = begin + each.number;
    }
    return done;
}

}  // namespace

void register_frames(nb::module_& m) {
    m.def("scan_frame", &scan_frame, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("pool_frames", &pool_frames, nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
    m.def("best_first", &best_first, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert());
}

}  // namespace steelyard
