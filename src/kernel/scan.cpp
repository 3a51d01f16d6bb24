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
    for (uint32_t row = kept_; row < query_.rows(); ++row) bytes += query_.ids()[row].size;
    copies_.emplace_back(new char[bytes]);
    char* to = copies_.back().get();
    for (; kept_ < query_.rows(); ++kept_) {
        Id& id = query_.ids()[kept_];
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

}  // namespace steelyard
