#include "scan.hpp"

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
    const int64_t index = shared_.judged.query(text, size);
    if (index < 0) run_only.add(std::string(text, size));
    if (index >= 0 && shared_.seen[static_cast<size_t>(index)].exchange(true, std::memory_order_relaxed)) return false;
    if (index >= 0) {
        const auto begin = static_cast<size_t>(shared_.judged.starts[static_cast<size_t>(index)]);
        const auto end = static_cast<size_t>(shared_.judged.starts[static_cast<size_t>(index) + 1]);
        query_.open(index, shared_.judged.docs.data(), shared_.judged.hashes.data(), begin, end);
    }
    return true;
}

namespace {

// The sixth word of a line; empty if there is none.
std::string tag_of(const char* begin, const char* end) {
    const Line line = split(begin, end);
    return line.count > 5 ? std::string(line.words[5].begin, line.words[5].end) : std::string();
}

}  // namespace

void RunScan::absorb(Scan& part) {
    places.hits.insert(places.hits.end(), part.places.hits.begin(), part.places.hits.end());
    places.repeats.insert(places.repeats.end(), part.places.repeats.begin(), part.places.repeats.end());
    if (part.places.repeated_query >= 0)
        places.note_repeated(part.places.repeated_query, [&] { return part.places.repeated_doc; });
    run_only.add(part.run_only);
    tags.add(part.tags);
}

RunScan result_of(Pieces& pieces) {
    RunScan whole;
    whole.outcome = pieces.outcome();
    if (whole.outcome != Outcome::clean) return whole;
    for (const auto& part : pieces.parts) whole.absorb(static_cast<Scan&>(*part));
    return whole;
}

RunScan scan_pieces(Shared& shared, const Source& source, unsigned threads, size_t piece, size_t block) {
    Pieces pieces(source, piece, [&shared] { return std::make_unique<Scan>(shared); }, block);
    read_pieces(pieces, threads);
    return result_of(pieces);
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
