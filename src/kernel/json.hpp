// The characters of JSON: white space, texts and numbers.
//
// Only what Python's json reads alike: everything unusual, and everything that may be an error, is left to it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tokens.hpp"

namespace steelyard {

struct JsonText {
    std::string_view text;  // in the input, or in `copy` if it has escapes
    std::string copy;
    bool ascii = true, found = false;
};

class JsonCursor {
   public:
    JsonCursor() = default;
    JsonCursor(const char* begin, const char* end) : at_(begin), end_(end) {}

   protected:
    const char *at_ = nullptr, *end_ = nullptr;

    void space() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
    }
    bool take(char c) {
        space();
        if (at_ >= end_ || *at_ != c) return false;
        ++at_;
        return true;
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
