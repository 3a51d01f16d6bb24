// A document on a line of JSON: {"_id": "d1", "title": "...", "text": "..."} and other fields, which are skipped.
//
// Only lines are read that Python's reader reads alike: everything unusual, and everything that may be an error, is left to it.
#pragma once

#include <string_view>
#include <vector>

#include "json.hpp"

namespace steelyard {

class JsonLine : private JsonCursor {
   public:
    JsonText id, title, text;

    // False if the line is left to Python.
    bool read(const char* begin, const char* end) {
        at_ = begin;
        end_ = end;
        id.found = title.found = text.found = false;
        title.text = {};
        title.ascii = true;
        if (!object(0)) return false;
        space();
        return at_ == end_ && id.found && text.found && !id.text.empty();
    }

   private:
    static constexpr int kDeepest = 8;
    static constexpr size_t kMostFields = 24;

    std::vector<std::string_view> names_;
    JsonText skipped_;

    bool object(int depth) {
        if (!take('{')) return false;
        if (take('}')) return true;
        const size_t first = names_.size();
        const bool done = fields(depth, first);
        names_.resize(first);
        return done;
    }
    bool fields(int depth, size_t first) {
        do {
            space();
            JsonText& name = skipped_;
            if (!string(name) || !name.copy.empty() || names_.size() - first >= kMostFields) return false;
            // A name that occurs twice is an error of the line.
            for (size_t i = first; i < names_.size(); ++i)
                if (names_[i] == name.text) return false;
            names_.push_back(name.text);
            if (!take(':')) return false;
            space();
            if (!(depth == 0 ? field(names_.back()) : value(depth))) return false;
        } while (take(','));
        return take('}');
    }
    bool field(std::string_view name) {
        if (name == "_id") return string(id);
        if (name == "title") return string(title);
        if (name == "text") return string(text);
        // These are checked by the reader of datasets.
        if (name == "links" || name == "group") return false;
        return value(0);
    }
    bool value(int depth) {
        if (at_ >= end_ || depth > kDeepest) return false;
        if (*at_ == '"') return string(skipped_);
        if (*at_ == '{') return object(depth + 1);
        if (*at_ == '[') return list(depth);
        for (const std::string_view word : {"null", "true", "false"})
            if (static_cast<size_t>(end_ - at_) >= word.size() && std::string_view(at_, word.size()) == word) {
                at_ += word.size();
                return true;
            }
        return number();
    }
    bool list(int depth) {
        ++at_;
        if (take(']')) return true;
        do {
            space();
            if (!value(depth + 1)) return false;
        } while (take(','));
        return take(']');
    }
};

}  // namespace steelyard
