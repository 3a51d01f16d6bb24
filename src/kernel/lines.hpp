// The words of one line of a TREC file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

namespace steelyard {

struct Word {
    const char *begin, *end;
    size_t size() const { return static_cast<size_t>(end - begin); }
    bool is_q0() const { return size() == 2 && (*begin == 'Q' || *begin == 'q') && begin[1] == '0'; }
    bool is(const std::string& text) const {
        return size() == text.size() && std::memcmp(begin, text.data(), text.size()) == 0;
    }
};

// The first words of a line, their number (six at most), and the start of the next line, which is null if the line has a
// control byte. `foreign` is not zero if a byte is outside ASCII.
struct Line {
    Word words[6];
    int count = 0;
    uint32_t foreign = 0;
    const char* next = nullptr;
};

inline Line split(const char* p, const char* end) {
    Line line;
    for (;;) {
        while (p < end && (*p == ' ' || *p == '\t')) ++p;
        if (p == end || static_cast<unsigned char>(*p) < ' ') break;
        const char* begin = p;
        for (; p < end && static_cast<unsigned char>(*p) > ' '; ++p) line.foreign |= static_cast<unsigned char>(*p) >> 7;
        if (line.count < 6) line.words[line.count++] = {begin, p};
    }
    if (end - p >= 2 && p[0] == '\r' && p[1] == '\n') ++p;
    if (p == end || *p == '\n') line.next = p < end ? p + 1 : end;
    return line;
}

}  // namespace steelyard
