// The rows of a TREC run as columns. Ids are in the form of Arrow's views, which frames hold without a copy.
#pragma once

#include <limits>
#include <vector>

#include "pieces.hpp"

namespace steelyard {

// A text of at most 12 bytes, or the first 4 bytes of a longer one and its place in a buffer.
struct TextView {
    uint32_t size;
    char start[4];
    union {
        char rest[8];
        struct {
            int32_t buffer, offset;
        } place;
    };
};
static_assert(sizeof(TextView) == 16, "the size of a view");

class Columns : public Part, public RunLines<Columns> {
   public:
    std::vector<TextView> queries, docs;
    std::vector<double> scores;
    std::vector<char> texts;  // the bytes of long ids

    Outcome lines(const char* begin, const char* end) override { return read_lines(begin, end); }
    void finish() override {}

   private:
    friend RunLines<Columns>;
    static constexpr uint32_t kInside = 12;

    TextView query_{};
    bool full_ = false;  // more text than an offset can reach

    bool start_query(const char* text, size_t size) {
        query_ = view({text, static_cast<uint32_t>(size)});
        return true;
    }
    STEELYARD_INLINE bool add(Id id, double score, bool) {
        queries.push_back(query_);
        docs.push_back(view(id));
        scores.push_back(score);
        return !full_;
    }
    TextView view(Id id) {
        TextView made{};
        made.size = id.size;
        if (id.size <= kInside) {
            std::memcpy(made.start, id.text, id.size);
            return made;
        }
        std::memcpy(made.start, id.text, sizeof made.start);
        made.place.offset = static_cast<int32_t>(texts.size());
        full_ |= texts.size() + id.size > static_cast<size_t>(std::numeric_limits<int32_t>::max());
        if (!full_) texts.insert(texts.end(), id.text, id.text + id.size);
        return made;
    }
};

}  // namespace steelyard
