#include "scan.hpp"

#include <system_error>

#include "lines.hpp"

namespace steelyard {

void Scan::finish() {
    if (query_.index < 0) return;
    const int64_t query = query_.index;
    const Id* repeated = query_.close(shared_.ordering, shared_.tallies[static_cast<size_t>(query)], places);
    if (repeated) places.note_repeated(query, [&] { return std::string(repeated->text, repeated->size); });
    copies_.clear();
    kept_ = 0;
}

void Scan::keep_ids() {
    if (query_.index < 0) return;
    size_t bytes = 0;
    for (uint32_t row = kept_; row < query_.rows(); ++row) bytes += query_.id(row).size;
    copies_.emplace_back(new char[bytes]);
    char* to = copies_.back().get();
    for (; kept_ < query_.rows(); ++kept_) {
        Id& id = query_.id(kept_);
        std::memcpy(to, id.text, id.size);
        id.text = to;
        to += id.size;
    }
}

bool Scan::start_query(const char* text, size_t size) {
    finish();
    query_id_.assign(text, size);
    const int64_t index = shared_.judged.query(text, size);
    if (index < 0) run_only.add(query_id_);
    if (index >= 0 && shared_.seen[static_cast<size_t>(index)].exchange(true, std::memory_order_relaxed)) return false;
    if (index >= 0) {
        const auto begin = static_cast<size_t>(shared_.judged.starts[static_cast<size_t>(index)]);
        const auto end = static_cast<size_t>(shared_.judged.starts[static_cast<size_t>(index) + 1]);
        query_.open(index, shared_.judged.docs.data(), shared_.judged.hashes.data(), begin, end);
    }
    return true;
}

STEELYARD_INLINE const char* Scan::quick(const char* line) {
    if (!before_id_.at(line)) return nullptr;
    const char* id = line + before_id_.size();
    const Block block = look(id);
    uint64_t blanks = block.blanks;
    uint32_t foreign = block.foreign;
    // Three blanks are needed: after the id, the rank and the score.
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
    const unsigned rank_size = rank_end - id_end - 1;
    // An id of two bytes may be the Q0 of a line whose columns are shifted.
    if (id_end == 0 || id_end == 2 || rank_size - 1 > 7 || id[id_end] != separator_ || id[rank_end] != separator_)
        return nullptr;
    uint64_t bad = 0;
    eight_digits(load_word(id + id_end + 1), rank_size, bad);
    if (bad) return nullptr;
    if (!after_score_.at(id + score_end)) return nullptr;
    double score;
    if (!parse_decimal(id + rank_end + 1, id + score_end, score)) return nullptr;
    foreign_ |= foreign;
    if (query_.index >= 0 && !query_.add({id, id_end}, hash_readable(id, id_end), score)) return nullptr;
    return id + score_end + after_score_.size();
}

const char* Scan::careful(const char* begin, const char* end) {
    const Line line = split(begin, end);
    const Word query = line.words[0], id = line.words[2], place = line.words[3], number = line.words[4];
    double rank, score;
    trouble_ = Outcome::unusual;
    if (!line.next || line.count < 5 || *query.begin == '#' || (id.is_q0() && !line.words[1].is_q0())) return nullptr;
    // The rank is not used, but a rank that is not a number reveals shifted columns.
    if (!parse_any_decimal(place.begin, place.end, rank) || !parse_any_decimal(number.begin, number.end, score))
        return nullptr;
    if (!any_lines_ || !query.is(query_id_)) {
        if (!start_query(query.begin, query.size())) {
            trouble_ = Outcome::interleaved;
            return nullptr;
        }
        any_lines_ = true;
    }
    const Id document{id.begin, static_cast<uint32_t>(id.size())};
    if (query_.index >= 0 && !query_.add(document, hash_id(document.text, document.size), score)) return nullptr;
    if (line.count > 5 && !line.words[5].is(tag_)) {
        tag_.assign(line.words[5].begin, line.words[5].end);
        tags.add(tag_);
    }
    foreign_ |= line.foreign;
    before_id_.set(begin, static_cast<size_t>(id.begin - begin));
    after_score_.set(number.end, static_cast<size_t>(line.next - number.end));
    separator_ = *id.end;
    return line.next;
}

Outcome Scan::lines(const char* begin, const char* end) {
    const char* line = begin;
    while (line < end) {
        const char* next = nullptr;
        if (!before_id_.empty())
            while (static_cast<size_t>(end - line) >= reach() && (next = quick(line)) != nullptr) line = next;
        if (line < end && (line = careful(line, end)) == nullptr) return trouble_;
    }
    return foreign_ && !valid_utf8(begin, end) ? Outcome::unusual : Outcome::clean;
}

Outcome Scan::line_at(const char* line, const char* end) {
    if (!before_id_.empty() && static_cast<size_t>(end - line) >= reach() && quick(line) != nullptr) return Outcome::clean;
    return careful(line, end) == nullptr ? trouble_ : Outcome::clean;
}

namespace {

struct QueryText {
    const char* begin;
    size_t size;
};

// The first word of a line; empty if the line starts with a line end or a control byte.
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

// Visits the bytes from `begin` to `end` in blocks of whole lines, until `visit` returns false. Of a file only one block is
// in memory.
template <class Visit>
void each_block(const Source& source, size_t begin, size_t end, size_t block, Buffer& buffer, Visit visit) {
    for (size_t size = block; begin < end;) {
        size = std::min(size, end - begin);
        const char* const first = source.bytes(begin, begin + size, buffer);
        const char* last = first + size;
        while (begin + size < end && last > first && last[-1] != '\n') --last;
        if (last == first) {
            size *= 2;  // a line longer than the block
            continue;
        }
        begin += static_cast<size_t>(last - first);
        if (!visit(first, last)) return;
        size = block;
    }
}

// The place of the first line after `from` whose query differs from that of the line before it.
size_t query_border(const Source& source, size_t from, size_t block, Buffer& buffer) {
    std::string query;
    bool known = false, partial = true;  // `from` is within a line
    size_t place = from;
    each_block(source, from, source.size(), block, buffer, [&](const char* begin, const char* end) {
        const char* line = begin;
        if (partial) line = next_line(line, end);
        partial = false;
        for (; line < end; line = next_line(line, end)) {
            const QueryText other = query_of(line, end);
            if (!known) {
                query.assign(other.begin, other.size);
                known = true;
            } else if (other.size != query.size() || std::memcmp(other.begin, query.data(), query.size()) != 0) {
                break;
            }
        }
        place += static_cast<size_t>(line - begin);
        return line == end;
    });
    return place;
}

// The sixth word of a line; empty if there is none.
std::string tag_of(const char* begin, const char* end) {
    const Line line = split(begin, end);
    return line.count > 5 ? std::string(line.words[5].begin, line.words[5].end) : std::string();
}

}  // namespace

bool starts_cleanly(const char* begin, const char* end) {
    return begin < end && (end - begin < 3 || std::memcmp(begin, "\xef\xbb\xbf", 3) != 0);
}

void RunScan::absorb(Scan& part) {
    places.hits.insert(places.hits.end(), part.places.hits.begin(), part.places.hits.end());
    places.repeats.insert(places.repeats.end(), part.places.repeats.begin(), part.places.repeats.end());
    if (part.places.repeated_query >= 0)
        places.note_repeated(part.places.repeated_query, [&] { return part.places.repeated_doc; });
    run_only.add(part.run_only);
    tags.add(part.tags);
}

PieceScan::PieceScan(Shared& shared, const Source& source, size_t piece, size_t block)
    : shared_(shared), source_(source), block_(block) {
    const size_t size = source.size();
    Buffer buffer;
    try {
        const size_t first = std::min<size_t>(3, size);
        const char* const start = source.bytes(0, first, buffer);
        clean_start_ = starts_cleanly(start, start + first);
        if (!clean_start_) return;
        while (size - borders_.back() > piece) borders_.push_back(query_border(source, borders_.back() + piece, block, buffer));
    } catch (const Changed&) {
        changed_ = true;
        return;
    }
    if (borders_.back() != size) borders_.push_back(size);
    scans_.resize(borders_.size() - 1);
    outcomes_.resize(scans_.size(), Outcome::clean);
}

void PieceScan::work() {
    Buffer buffer;
    try {
        for (size_t i; !stop_ && (i = next_++) < scans_.size();) {
            scans_[i] = std::make_unique<Scan>(shared_);
            try {
                each_block(source_, borders_[i], borders_[i + 1], block_, buffer, [&](const char* begin, const char* end) {
                    outcomes_[i] = scans_[i]->lines(begin, end);
                    if (outcomes_[i] == Outcome::clean) scans_[i]->keep_ids();
                    return outcomes_[i] == Outcome::clean;
                });
            } catch (const Changed&) {
                outcomes_[i] = Outcome::changed;
            }
            if (outcomes_[i] != Outcome::clean) stop_ = true;
            scans_[i]->finish();
        }
    } catch (const std::bad_alloc&) {
        out_of_memory_ = stop_ = true;
    }
}

RunScan PieceScan::result() {
    RunScan whole;
    if (out_of_memory_) throw std::bad_alloc();
    const auto any = [this](Outcome one) { return std::find(outcomes_.begin(), outcomes_.end(), one) != outcomes_.end(); };
    whole.outcome = changed_ || any(Outcome::changed)                ? Outcome::changed
                    : !clean_start_ || any(Outcome::unusual)         ? Outcome::unusual
                    : any(Outcome::interleaved)                      ? Outcome::interleaved
                                                                     : Outcome::clean;
    if (whole.outcome != Outcome::clean) return whole;
    for (const auto& scan : scans_) whole.absorb(*scan);
    return whole;
}

std::vector<std::thread> start_workers(PieceScan& scan, size_t count) {
    std::vector<std::thread> workers;
    workers.reserve(count);
    try {
        while (workers.size() < count) workers.emplace_back([&scan] { scan.work(); });
    } catch (const std::system_error&) {
    }
    return workers;
}

RunScan scan_pieces(Shared& shared, const Source& source, unsigned threads, size_t piece, size_t block) {
    PieceScan scan(shared, source, piece, block);
    std::vector<std::thread> workers = start_workers(scan, std::max<size_t>(1, std::min<size_t>(threads, scan.pieces())) - 1);
    scan.work();
    for (std::thread& worker : workers) worker.join();
    return scan.result();
}

RunScan scan_interleaved(Shared& shared, const char* begin, const char* end) {
    RunScan whole;
    if (!starts_cleanly(begin, end) || !valid_utf8(begin, end)) return whole;
    const size_t queries = shared.judged.queries.size();
    // Lines of queries without judgments go last: they are still checked.
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
    whole.absorb(scan);
    if (whole.tags.count() > 1) {
        // Lines were read query by query; tags are in the order of the file.
        whole.tags = Distinct();
        for (const char* line = begin; line < end; line = next_line(line, end)) {
            const std::string tag = tag_of(line, end);
            if (!tag.empty()) whole.tags.add(tag);
        }
    }
    return whole;
}

}  // namespace steelyard
