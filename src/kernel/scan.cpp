#include "scan.hpp"

#include <thread>

namespace steelyard {

void OpenQuery::open(int64_t query, const JudgedTexts& judged) {
    index = query;
    top_ = -std::numeric_limits<double>::infinity();
    if (query < 0) {
        rows_ = 0;
        return;
    }
    judged_start_ = judged.starts[static_cast<size_t>(query)];
    judged_ = judged.docs.data() + judged_start_;
    const auto count = static_cast<size_t>(judged.starts[static_cast<size_t>(query) + 1] - judged_start_);
    // As many rows as the query before: lists of one run are about as long.
    slots_.clear(rows_ + count);
    rows_ = kept_ = 0;
    found_.clear();
    repeats_.clear();
    copies_.clear();
    judged_row_.assign(count, 0);
    for (size_t i = 0; i < count; ++i)
        if (judged_[i].text)
            slots_.find_or_add(judged.hashes[static_cast<size_t>(judged_start_) + i], kJudged | static_cast<uint32_t>(i),
                               [](uint32_t) { return false; });
}

bool OpenQuery::grow() {
    if (rows_ >= kJudged / 2) return false;
    const size_t size = rows_ < 512 ? 1024 : 2 * static_cast<size_t>(rows_);
    scores_.resize(size);
    ids_.resize(size);
    return true;
}

void OpenQuery::met_again(uint32_t number, uint32_t row) {
    if (number & kJudged) {
        uint32_t& first = judged_row_[number & ~kJudged];
        if (first == 0) {
            first = row + 1;
            found_.push_back({row, judged_start_ + (number & ~kJudged)});
        } else {
            repeats_.push_back({row, first - 1});
        }
    } else {
        repeats_.push_back({row, number - 1});
    }
}

void OpenQuery::keep_ids() {
    if (index < 0) return;
    size_t bytes = 0;
    for (uint32_t row = kept_; row < rows_; ++row) bytes += ids_[row].size;
    copies_.emplace_back(new char[bytes]);
    char* to = copies_.back().get();
    for (; kept_ < rows_; ++kept_) {
        std::memcpy(to, ids_[kept_].text, ids_[kept_].size);
        ids_[kept_].text = to;
        to += ids_[kept_].size;
    }
}

void OpenQuery::close(Shared& shared, Places& places) {
    if (index < 0) return;
    Tally& tally = shared.tallies[static_cast<size_t>(index)];
    tally.answered = true;
    tally.retrieved = rows_;
    tally.top_score = top_;
    const auto compare = [this](uint32_t a, uint32_t b) { return ids_[a].compare(ids_[b]); };
    Ranker<decltype(compare)> ranker(scores_.data(), rows_, shared.ordering, compare);
    if (repeats_.empty()) {
        ranker.place(index, found_, places.hits);
    } else {
        const uint32_t row = ranker.place_repeats(index, found_, repeats_, places, tally.retrieved);
        if (places.repeated_query < 0 || index < places.repeated_query) {
            places.repeated_query = index;
            places.repeated_doc.assign(ids_[row].text, ids_[row].size);
        }
    }
    index = -1;
}

Outcome Scan::start_query(const char* text, size_t size) {
    query_.close(shared_, places);
    query_id_.assign(text, size);
    const int64_t index = shared_.judged.query(text, size);
    if (index < 0) run_only.add(query_id_);
    if (index >= 0 && shared_.seen[static_cast<size_t>(index)].exchange(true, std::memory_order_relaxed))
        return Outcome::interleaved;
    query_.open(index, shared_.judged);
    return Outcome::clean;
}

inline const char* Scan::quick(const char* line) {
    if (!before_id_.at(line)) return nullptr;
    const char* id = line + before_id_.size();
    const Block block = look(id);
    uint64_t blanks = block.blanks;
    uint32_t foreign = block.foreign;
    // Three blanks must show: after the id, the rank and the score.
    uint64_t after_rank = blanks & (blanks - 1), after_score = after_rank & (after_rank - 1);
    if (after_score == 0) {
        const Block next = look(id + 32);
        blanks |= static_cast<uint64_t>(next.blanks) << 32;
        foreign |= next.foreign;
        after_rank = blanks & (blanks - 1);
        after_score = after_rank & (after_rank - 1);
        if (after_score == 0) return nullptr;
    }
    const unsigned id_end = lowest_bit(blanks), rank_end = lowest_bit(after_rank), score_end = lowest_bit(after_score);
    if (id_end == 0 || rank_end == id_end + 1 || id[id_end] != separator_ || id[rank_end] != separator_) return nullptr;
    if (!after_score_.at(id + score_end)) return nullptr;
    double score;
    if (!parse_decimal(id + rank_end + 1, id + score_end, score)) return nullptr;
    foreign_ |= foreign;
    if (query_.index >= 0 && !query_.add(id, id_end, hash_readable(id, id_end), score)) return nullptr;
    return id + score_end + after_score_.size();
}

const char* Scan::careful(const char* line, const char* end) {
    struct Field {
        const char *begin, *end;
    } fields[6];
    int count = 0;
    const char* p = line;
    for (;;) {
        while (p < end && (*p == ' ' || *p == '\t')) ++p;
        if (p == end || static_cast<unsigned char>(*p) < ' ') break;
        const char* begin = p;
        for (; p < end && static_cast<unsigned char>(*p) > ' '; ++p) foreign_ |= static_cast<unsigned char>(*p) >> 7;
        if (count < 6) fields[count] = {begin, p};
        ++count;
    }
    outcome_ = Outcome::odd;
    if (p + 1 < end && p[0] == '\r' && p[1] == '\n') ++p;
    if (p < end && *p != '\n') return nullptr;
    const char* next = p < end ? p + 1 : end;
    if (count < 5 || *fields[0].begin == '#') return nullptr;
    double score;
    if (!parse_any_decimal(fields[4].begin, fields[4].end, score)) return nullptr;
    const auto query_size = static_cast<size_t>(fields[0].end - fields[0].begin);
    if (!any_lines && count > 5) {
        has_tag = true;
        tag.assign(fields[5].begin, fields[5].end);
    }
    if (!any_lines || query_id_.size() != query_size || std::memcmp(query_id_.data(), fields[0].begin, query_size) != 0) {
        const Outcome started = start_query(fields[0].begin, query_size);
        if (started != Outcome::clean) {
            outcome_ = started;
            return nullptr;
        }
    }
    any_lines = true;
    const auto size = static_cast<size_t>(fields[2].end - fields[2].begin);
    if (query_.index >= 0 && !query_.add(fields[2].begin, size, hash_id(fields[2].begin, size), score)) return nullptr;
    before_id_.set(line, static_cast<size_t>(fields[2].begin - line));
    after_score_.set(fields[4].end, static_cast<size_t>(next - fields[4].end));
    separator_ = *fields[2].end;
    return next;
}

Outcome Scan::lines(const char* begin, const char* end) {
    const char* line = begin;
    while (line < end) {
        const char* next = nullptr;
        if (!before_id_.empty())
            while (static_cast<size_t>(end - line) >= reach() && (next = quick(line)) != nullptr) line = next;
        if (line < end && (line = careful(line, end)) == nullptr) return outcome_;
    }
    return foreign_ && !valid_utf8(begin, end) ? Outcome::odd : Outcome::clean;
}

Outcome Scan::line_at(const char* line, const char* end) {
    if (!before_id_.empty() && static_cast<size_t>(end - line) >= reach() && quick(line) != nullptr) return Outcome::clean;
    return careful(line, end) == nullptr ? outcome_ : Outcome::clean;
}

namespace {

struct QueryText {
    const char* begin;
    size_t size;
};

// The first word of a line: nothing where the line starts with a break or a control byte.
QueryText query_of(const char* line, const char* end) {
    while (line < end && (*line == ' ' || *line == '\t')) ++line;
    const char* p = line;
    while (p < end && static_cast<unsigned char>(*p) > ' ') ++p;
    return {line, static_cast<size_t>(p - line)};
}

const char* next_line(const char* line, const char* end) {
    const void* found = std::memchr(line, '\n', static_cast<size_t>(end - line));
    return found ? static_cast<const char*>(found) + 1 : end;
}

// The start of the first line at or after `from` whose query is another than that of the line before it.
const char* query_border(const char* from, const char* end) {
    const char* line = next_line(from, end);
    if (line == end) return end;
    const QueryText query = query_of(line, end);
    while ((line = next_line(line, end)) != end) {
        const QueryText other = query_of(line, end);
        if (other.size != query.size || std::memcmp(other.begin, query.begin, query.size) != 0) return line;
    }
    return end;
}

bool starts_oddly(const char* begin, const char* end) {
    return begin == end || (end - begin >= 3 && std::memcmp(begin, "\xef\xbb\xbf", 3) == 0);
}

void absorb(FileScan& whole, Scan& part) {
    whole.places.hits.insert(whole.places.hits.end(), part.places.hits.begin(), part.places.hits.end());
    whole.places.repeats.insert(whole.places.repeats.end(), part.places.repeats.begin(), part.places.repeats.end());
    if (part.places.repeated_query >= 0 &&
        (whole.places.repeated_query < 0 || part.places.repeated_query < whole.places.repeated_query)) {
        whole.places.repeated_query = part.places.repeated_query;
        whole.places.repeated_doc = part.places.repeated_doc;
    }
    whole.run_only.add(part.run_only);
}

}  // namespace

FileScan scan_pieces(Shared& shared, const char* begin, const char* end, unsigned threads, size_t piece) {
    FileScan whole{};
    whole.outcome = Outcome::odd;
    if (starts_oddly(begin, end)) return whole;
    std::vector<const char*> borders{begin};
    while (static_cast<size_t>(end - borders.back()) > piece) borders.push_back(query_border(borders.back() + piece, end));
    if (borders.back() != end) borders.push_back(end);
    const size_t pieces = borders.size() - 1;
    std::vector<std::unique_ptr<Scan>> scans(pieces);
    std::vector<Outcome> outcomes(pieces, Outcome::clean);
    std::atomic<size_t> next_piece{0};
    std::atomic<bool> stop{false}, out_of_memory{false};
    const auto work = [&] {
        try {
            for (size_t i; !stop && (i = next_piece++) < pieces;) {
                scans[i] = std::make_unique<Scan>(shared);
                outcomes[i] = scans[i]->lines(borders[i], borders[i + 1]);
                if (outcomes[i] != Outcome::clean) stop = true;
                scans[i]->finish();
            }
        } catch (const std::bad_alloc&) {
            out_of_memory = stop = true;
        }
    };
    std::vector<std::thread> workers;
    for (unsigned i = 1; i < threads && i < pieces; ++i) workers.emplace_back(work);
    work();
    for (std::thread& worker : workers) worker.join();
    if (out_of_memory) throw std::bad_alloc();
    whole.outcome = Outcome::clean;
    for (const Outcome outcome : outcomes) {
        if (outcome == Outcome::odd) whole.outcome = Outcome::odd;
        if (outcome == Outcome::interleaved && whole.outcome == Outcome::clean) whole.outcome = Outcome::interleaved;
    }
    if (whole.outcome != Outcome::clean) return whole;
    for (const auto& scan : scans) absorb(whole, *scan);
    whole.has_tag = scans.front()->has_tag;
    whole.tag = scans.front()->tag;
    return whole;
}

FileScan scan_interleaved(Shared& shared, const char* begin, const char* end) {
    FileScan whole{};
    whole.outcome = Outcome::odd;
    if (starts_oddly(begin, end) || !valid_utf8(begin, end)) return whole;
    const size_t queries = shared.judged.queries.size();
    // Lines of queries that nobody judged go last, in a place of their own: they are still checked.
    const auto each_line = [&](auto&& visit) {
        std::string previous;
        size_t place = queries;
        for (const char* line = begin; line < end; line = next_line(line, end)) {
            const QueryText query = query_of(line, end);
            if (line == begin || previous.size() != query.size || std::memcmp(previous.data(), query.begin, query.size) != 0) {
                previous.assign(query.begin, query.size);
                const int64_t index = shared.judged.query(query.begin, query.size);
                place = index < 0 ? queries : static_cast<size_t>(index);
            }
            visit(place, line);
        }
    };
    std::vector<uint64_t> ends(queries + 2, 0);
    each_line([&](size_t place, const char*) { ++ends[place + 1]; });
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<uint64_t> offsets(ends.back());
    each_line([&](size_t place, const char* line) { offsets[ends[place]++] = static_cast<uint64_t>(line - begin); });
    Scan scan(shared);
    for (const uint64_t offset : offsets) {
        whole.outcome = scan.line_at(begin + offset, end);
        if (whole.outcome != Outcome::clean) return whole;
    }
    scan.finish();
    absorb(whole, scan);
    // The tag is the first line's, whichever query that belongs to.
    Scan first(shared);
    const QueryText query = query_of(begin, end);
    const int64_t index = shared.judged.query(query.begin, query.size);
    if (index >= 0) shared.seen[static_cast<size_t>(index)] = false;
    first.line_at(begin, next_line(begin, end));
    whole.has_tag = first.has_tag;
    whole.tag = first.tag;
    return whole;
}

}  // namespace steelyard
