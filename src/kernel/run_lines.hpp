// The lines of a TREC run: what is read of each, and what makes a file unusual.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "judged.hpp"
#include "lines.hpp"

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

// False for an empty file and one that starts with a byte order mark.
inline bool starts_cleanly(const char* begin, const char* end) {
    return begin < end && (end - begin < 3 || std::memcmp(begin, "\xef\xbb\xbf", 3) != 0);
}

// A reader of lines, to be derived from. `Reader` has start_query(text, size), which returns false if the query may not
// start here, and add(id, score, readable), which returns false if there are too many rows; `readable`: 8 bytes from the
// start of the id may be read.
template <class Reader>
class RunLines {
   public:
    // Whole lines; only the last line of a file may lack its line end.
    STEELYARD_HOT Outcome read_lines(const char* begin, const char* end) {
        const char* line = begin;
        while (line < end) {
            const char* next = nullptr;
            if (!before_id_.empty())
                while (static_cast<size_t>(end - line) >= reach() && (next = quick(line)) != nullptr) line = next;
            if (line < end && (line = careful(line, end)) == nullptr) return trouble_;
        }
        return foreign_ && !valid_utf8(begin, end) ? Outcome::unusual : Outcome::clean;
    }

    Distinct tags;

   private:
    bool any_lines_ = false;
    std::string query_id_, tag_;
    Repeated before_id_, after_score_;
    char separator_ = ' ';
    uint32_t foreign_ = 0;                // not zero once a byte outside ASCII was read
    Outcome trouble_ = Outcome::unusual;  // why `careful` returned null

    Reader& reader() { return static_cast<Reader&>(*this); }
    // How many bytes `quick` may read at most.
    size_t reach() const { return before_id_.size() + after_score_.size() + 128; }

    // Both return the start of the next line. `quick` returns null for a line that does not begin and end like the
    // line before it, `careful` for an unusual line.
    STEELYARD_INLINE const char* quick(const char* line) {
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
        if (!reader().add({id, id_end}, score, true)) return nullptr;
        return id + score_end + after_score_.size();
    }

    const char* careful(const char* begin, const char* end) {
        const Line line = split(begin, end);
        const Word query = line.words[0], id = line.words[2], place = line.words[3], number = line.words[4];
        double rank, score;
        trouble_ = Outcome::unusual;
        if (!line.next || line.count < 5 || *query.begin == '#' || (id.is_q0() && !line.words[1].is_q0())) return nullptr;
        // The rank is not used, but a rank that is not a number reveals shifted columns.
        if (!parse_any_decimal(place.begin, place.end, rank) || !parse_any_decimal(number.begin, number.end, score))
            return nullptr;
        if (!any_lines_ || !query.is(query_id_)) {
            query_id_.assign(query.begin, query.end);
            if (!reader().start_query(query.begin, query.size())) {
                trouble_ = Outcome::interleaved;
                return nullptr;
            }
            any_lines_ = true;
        }
        if (!reader().add({id.begin, static_cast<uint32_t>(id.size())}, score, false)) return nullptr;
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
};

}  // namespace steelyard
