// Postings of documents: the documents of each term, and for each of them a code for its count and the document's length.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <unordered_map>
#include <utility>
#include <vector>

#include "inlining.hpp"

namespace steelyard {

// The result: term t has docs[starts[t]] to docs[starts[t + 1]], in document order. codes are numbers of (count, length)
// pairs, which are sorted. They have 16 bits if that is enough.
struct Postings {
    std::vector<int64_t> starts;
    std::unique_ptr<int32_t[]> docs;
    std::unique_ptr<uint16_t[]> short_codes;
    std::unique_ptr<uint32_t[]> codes;
    std::vector<int32_t> counts;
    std::vector<int64_t> lengths;
    int64_t tokens = 0;
    int64_t documents = 0;
    size_t size() const { return static_cast<size_t>(starts.back()); }
};

// Collects documents in order. A term of a document takes five bytes until the end, in blocks that are freed one by one.
class PostingsBuilder {
   public:
    // One token of the current document.
    STEELYARD_INLINE void add(uint32_t term) {
        if (term >= seen_.size()) seen_.resize(std::max<size_t>(term + size_t{1}, 2 * seen_.size()), Seen{-1, 0});
        Seen& seen = seen_[term];
        ++length_;
        if (seen.doc == doc_) {
            ++current_[seen.at].count;
            return;
        }
        seen = {doc_, static_cast<uint32_t>(current_.size())};
        current_.push_back({term, 1});
    }
    void end_document() {
        if (doc_ >= std::numeric_limits<int32_t>::max() / 2 - 1 || length_ > std::numeric_limits<int32_t>::max())
            throw std::length_error("too many documents, or a document that is too long");
        Row& row = rows_[length_];
        for (const Counted& one : current_) {
            if (blocks_.empty() || used_ == kBlock) {
                blocks_.push_back(std::unique_ptr<Block>(new Block));
                used_ = 0;
            }
            row.see(one.count);
            blocks_.back()->term[used_] = one.term;
            blocks_.back()->count[used_++] = static_cast<uint8_t>(std::min<uint32_t>(one.count, kLarge));
            if (one.count >= kLarge) large_.push_back(one.count);
        }
        documents_.push_back({static_cast<uint32_t>(length_), static_cast<uint32_t>(current_.size())});
        tokens_ += static_cast<int64_t>(length_);
        current_.clear();
        length_ = 0;
        ++doc_;
    }

    // The postings of `terms` terms. The builder is empty afterwards.
    Postings finish(size_t terms) {
        Postings found;
        found.documents = doc_;
        found.tokens = tokens_;
        found.starts.assign(terms + 1, 0);
        for (size_t b = 0; b < blocks_.size(); ++b)
            for (size_t i = 0; i < (b + 1 == blocks_.size() ? used_ : kBlock); ++i) ++found.starts.at(blocks_[b]->term[i] + size_t{1});
        for (size_t term = 0; term < terms; ++term) found.starts[term + 1] += found.starts[term];
        number_pairs(found);
        found.docs.reset(new int32_t[found.size()]);
        if (found.counts.size() <= std::numeric_limits<uint16_t>::max()) {
            found.short_codes.reset(new uint16_t[found.size()]);
            place(found, found.short_codes.get());
        } else {
            found.codes.reset(new uint32_t[found.size()]);
            place(found, found.codes.get());
        }
        *this = PostingsBuilder();
        return found;
    }

   private:
    static constexpr size_t kBlock = size_t{1} << 16;
    static constexpr uint32_t kLarge = 255;

    struct Seen {
        int32_t doc;
        uint32_t at;
    };
    struct Counted {
        uint32_t term, count;
    };
    struct Block {
        uint32_t term[kBlock];
        uint8_t count[kBlock];
    };
    struct Document {
        uint32_t length, terms;
    };
    // The counts in documents of one length, each with its code.
    struct Row {
        std::vector<uint32_t> small;
        std::map<uint32_t, uint32_t> large;

        void see(uint32_t count) {
            if (count >= kLarge)
                large[count] = 0;
            else if (count >= small.size())
                small.resize(count + 1, kUnseen);
            if (count < kLarge) small[count] = 0;
        }
        uint32_t& code(uint32_t count) { return count >= kLarge ? large[count] : small[count]; }
    };
    static constexpr uint32_t kUnseen = ~0u;

    std::vector<Seen> seen_;
    std::vector<Counted> current_;
    std::vector<std::unique_ptr<Block>> blocks_;
    std::vector<uint32_t> large_;  // counts that do not fit into a byte, in order
    std::vector<Document> documents_;
    std::unordered_map<uint64_t, Row> rows_;
    size_t used_ = 0;
    uint64_t length_ = 0;
    int64_t tokens_ = 0;
    int32_t doc_ = 0;

    void number_pairs(Postings& found) {
        std::vector<std::pair<uint32_t, uint64_t>> pairs;
        for (const auto& [length, row] : rows_) {
            for (uint32_t count = 0; count < row.small.size(); ++count)
                if (row.small[count] != kUnseen) pairs.emplace_back(count, length);
            for (const auto& [count, code] : row.large) pairs.emplace_back(count, length);
        }
        std::sort(pairs.begin(), pairs.end());
        for (const auto& [count, length] : pairs) {
            rows_[length].code(count) = static_cast<uint32_t>(found.counts.size());
            found.counts.push_back(static_cast<int32_t>(count));
            found.lengths.push_back(static_cast<int64_t>(length));
        }
    }

    template <class Code>
    void place(Postings& found, Code* codes) {
        std::vector<int64_t> next(found.starts.begin(), found.starts.end() - 1);
        size_t block = 0, at = 0, large = 0;
        for (size_t doc = 0; doc < documents_.size(); ++doc) {
            Row& row = rows_[documents_[doc].length];
            for (uint32_t i = 0; i < documents_[doc].terms; ++i) {
                if (at == kBlock) {
                    blocks_[block++].reset();
                    at = 0;
                }
                const uint8_t count = blocks_[block]->count[at];
                const auto place = static_cast<size_t>(next[blocks_[block]->term[at++]]++);
                found.docs[place] = static_cast<int32_t>(doc);
                codes[place] = static_cast<Code>(row.code(count == kLarge ? large_[large++] : count));
            }
        }
    }
};

}  // namespace steelyard
