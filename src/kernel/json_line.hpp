// A document on a line of JSON: {"_id": "d1", "title": "...", "text": "..."} and other fields, which are skipped.
//
// Only lines are read that Python's reader reads alike: everything unusual, and everything that may be an error, is left to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokens.hpp"

namespace steelyard {

struct JsonText {
    std::string_view text;  // in the line, or in `copy` if it has escapes
    std::string copy;
    bool ascii = true, found = false;
};

class JsonLine {
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

    const char *at_ = nullptr, *end_ = nullptr;
    std::vector<std::string_view> names_;
    JsonText skipped_;

    void space() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
    }
    bool take(char c) {
        space();
        if (at_ >= end_ || *at_ != c) return false;
        ++at_;
        return true;
    }
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
    bool digits() {
        const char* const begin = at_;
        while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
        return at_ > begin && at_ - begin <= 300;
    }
    bool number() {
        if (at_ < end_ && *at_ == '-') ++at_;
        const char* const begin = at_;
        if (!digits() || (*begin == '0' && at_ - begin > 1)) return false;
        if (at_ < end_ && *at_ == '.' && (++at_, !digits())) return false;
        if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
            ++at_;
            if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
            return digits();
        }
        return true;
    }
    bool string(JsonText& to) {
        to.copy.clear();
        to.found = to.ascii = true;
        if (at_ >= end_ || *at_ != '"') return false;
        const char* from = ++at_;
        bool copied = false;
        for (;; ++at_) {
            if (at_ >= end_ || static_cast<unsigned char>(*at_) < 0x20) return false;
            if (*at_ == '"') break;
            to.ascii &= static_cast<unsigned char>(*at_) < 0x80;
            if (*at_ != '\\') continue;
            to.copy.append(from, at_);
            if (!escape(to)) return false;
            copied = true;
            from = at_ + 1;
        }
        if (copied) to.copy.append(from, at_);
        to.text = copied ? std::string_view(to.copy) : std::string_view(from, static_cast<size_t>(at_ - from));
        ++at_;
        return true;
    }
    // Half of a character that is written as two escapes is left to Python.
    bool escape(JsonText& to) {
        if (++at_ >= end_) return false;
        switch (*at_) {
            case '"': case '\\': case '/': to.copy += *at_; return true;
            case 'b': to.copy += '\b'; return true;
            case 'f': to.copy += '\f'; return true;
            case 'n': to.copy += '\n'; return true;
            case 'r': to.copy += '\r'; return true;
            case 't': to.copy += '\t'; return true;
            case 'u': break;
            default: return false;
        }
        if (end_ - at_ < 5) return false;
        uint32_t c = 0;
        for (int i = 0; i < 4; ++i) {
            const char d = *++at_;
            const int value = d >= '0' && d <= '9' ? d - '0' : d >= 'a' && d <= 'f' ? d - 'a' + 10 : d >= 'A' && d <= 'F' ? d - 'A' + 10 : -1;
            if (value < 0) return false;
            c = c << 4 | static_cast<uint32_t>(value);
        }
        if (c >= 0xd800 && c < 0xe000) return false;
        char bytes[4];
        to.copy.append(bytes, put_utf8(bytes, c));
        to.ascii &= c < 0x80;
        return true;
    }
};

}  // namespace steelyard
