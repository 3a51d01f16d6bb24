#include "pieces.hpp"

#include <algorithm>
#include <system_error>

namespace steelyard {

namespace {

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

}  // namespace

Pieces::Pieces(const Source& source, size_t piece, std::function<std::unique_ptr<Part>()> make, size_t block)
    : source_(source), make_(std::move(make)), block_(block) {
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
    parts.resize(borders_.size() - 1);
    outcomes_.resize(parts.size(), Outcome::clean);
}

void Pieces::work() {
    Buffer buffer;
    try {
        for (size_t i; !stop_ && (i = next_++) < parts.size();) {
            parts[i] = make_();
            try {
                each_block(source_, borders_[i], borders_[i + 1], block_, buffer, [&](const char* begin, const char* end) {
                    outcomes_[i] = parts[i]->lines(begin, end);
                    return outcomes_[i] == Outcome::clean;
                });
            } catch (const Changed&) {
                outcomes_[i] = Outcome::changed;
            }
            if (outcomes_[i] != Outcome::clean) stop_ = true;
            parts[i]->finish();
        }
    } catch (const std::bad_alloc&) {
        out_of_memory_ = stop_ = true;
    }
}

Outcome Pieces::outcome() const {
    if (out_of_memory_) throw std::bad_alloc();
    const auto any = [this](Outcome one) { return std::find(outcomes_.begin(), outcomes_.end(), one) != outcomes_.end(); };
    return changed_ || any(Outcome::changed)        ? Outcome::changed
           : !clean_start_ || any(Outcome::unusual) ? Outcome::unusual
           : any(Outcome::interleaved)              ? Outcome::interleaved
                                                    : Outcome::clean;
}

std::vector<std::thread> start_workers(Pieces& pieces, size_t count) {
    std::vector<std::thread> workers;
    workers.reserve(count);
    try {
        while (workers.size() < count) workers.emplace_back([&pieces] { pieces.work(); });
    } catch (const std::system_error&) {
    }
    return workers;
}

void read_pieces(Pieces& pieces, unsigned threads) {
    std::vector<std::thread> workers = start_workers(pieces, std::max<size_t>(1, std::min<size_t>(threads, pieces.count())) - 1);
    pieces.work();
    for (std::thread& worker : workers) worker.join();
}

}  // namespace steelyard
