// The tokenizers default, words and whitespace of steelyard.retrievers.tokenizers, for texts of plain characters.
//
// Python passes what it knows of characters as a table: for each code point, its normalised lower-case form and its kind. A
// text with a character that is not plain (its form depends on its neighbours, or has several characters) is left to Python.
#pragma once

#include <algorithm>

#include "stem.hpp"
#include "terms.hpp"

namespace steelyard {

enum Kind : uint32_t { not_plain, separator, letter, unspaced };
constexpr unsigned kKindBits = 2;

// Appends a code point in UTF-8.
inline char* put_utf8(char* to, uint32_t c) {
    if (c < 0x80) {
        *to++ = static_cast<char>(c);
    } else if (c < 0x800) {
        *to++ = static_cast<char>(0xc0 | c >> 6);
        *to++ = static_cast<char>(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = static_cast<char>(0xe0 | c >> 12);
        *to++ = static_cast<char>(0x80 | (c >> 6 & 0x3f));
        *to++ = static_cast<char>(0x80 | (c & 0x3f));
    } else {
        *to++ = static_cast<char>(0xf0 | (c >> 18 & 0x07));
        *to++ = static_cast<char>(0x80 | (c >> 12 & 0x3f));
        *to++ = static_cast<char>(0x80 | (c >> 6 & 0x3f));
        *to++ = static_cast<char>(0x80 | (c & 0x3f));
    }
    return to;
}

// The code points of UTF-8; false if the bytes are not UTF-8.
inline bool read_utf8(const char* at, const char* end, std::vector<uint32_t>& to) {
    to.clear();
    while (at < end) {
        const auto first = static_cast<unsigned char>(*at++);
        if (first < 0x80) {
            to.push_back(first);
            continue;
        }
        const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
        if (first < 0xc2 || first > 0xf4 || end - at < more) return false;
        uint32_t c = first & (0x3fu >> more);
        for (int i = 0; i < more; ++i) {
            const auto next = static_cast<unsigned char>(*at++);
            if ((next & 0xc0) != 0x80) return false;
            c = c << 6 | (next & 0x3fu);
        }
        if (c < (more == 3 ? 0x10000u : more == 2 ? 0x800u : 0x80u) || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) return false;
        to.push_back(c);
    }
    return true;
}

// Numbers of terms, by the order in which they first occur.
class Tokenizer {
   public:
    // characters: from code point 0, the form << kKindBits | the kind. With `stems`, words are stemmed, and stop words have
    // no term.
    Tokenizer(std::vector<uint32_t> characters, bool stems, const std::vector<std::string>& stop_words)
        : characters_(std::move(characters)), stems_(stems) {
        for (unsigned c = 0; c < 0x80; ++c) {
            const uint32_t known = c < characters_.size() ? characters_[c] : 0;
            const uint32_t kind = known & kKinds, form = known >> kKindBits;
            plain_ascii_ &= kind == separator || (kind == letter && form < 0x80);
            form_[c] = kind == letter ? static_cast<int8_t>(form & 0x7f) : kSeparator;
        }
        for (const std::string& word : stop_words) {
            words_.number(word);
            term_of_.push_back(kNone);
        }
    }

    Terms& terms() { return terms_; }
    const Terms& terms() const { return terms_; }

    // Adds the terms of an ASCII text to the current document of `postings`; false, and nothing is added, if it is left to Python.
    template <class Postings>
    bool ascii(const char* text, size_t size, Postings& postings) {
        if (!plain_ascii_) return false;
        char* const word = reserve(size);
        const char* const end = text + size;
        while (text < end) {
            char* to = word;
            int8_t form;
            while (text < end && (form = form_[*text & 0x7f]) != kSeparator) *to++ = static_cast<char>(form), ++text;
            if (to != word) add(word, to, postings);
            while (text < end && form_[*text & 0x7f] == kSeparator) ++text;
        }
        return true;
    }

    // The same for code points.
    template <class Postings>
    bool wide(const uint32_t* text, size_t size, Postings& postings) {
        for (size_t i = 0; i < size; ++i)
            if (text[i] >= characters_.size() || (characters_[text[i]] & kKinds) == not_plain) return false;
        char* const word = reserve(4 * size);
        for (size_t i = 0; i < size;) {
            const uint32_t kind = characters_[text[i]] & kKinds;
            const size_t begin = i;
            while (i < size && (characters_[text[i]] & kKinds) == kind) ++i;
            if (kind == letter) {
                char* to = word;
                for (size_t j = begin; j < i; ++j) to = put_utf8(to, form(text[j]));
                add(word, to, postings);
            } else if (kind == unspaced) {
                // Pairs of neighbours; a single character is a token.
                for (size_t j = begin; j + 1 < i || j == begin; ++j) {
                    char* to = put_utf8(word, form(text[j]));
                    if (j + 1 < i) to = put_utf8(to, form(text[j + 1]));
                    postings.add(terms_.number(word, static_cast<size_t>(to - word)));
                }
            }
        }
        return true;
    }

   private:
    static constexpr uint32_t kKinds = (1u << kKindBits) - 1, kNone = ~0u;
    static constexpr int8_t kSeparator = -1;

    const std::vector<uint32_t> characters_;
    const bool stems_;
    bool plain_ascii_ = true;
    int8_t form_[0x80];
    Terms terms_, words_;
    std::vector<uint32_t> term_of_;  // of each word; kNone for one without a term
    std::vector<char> buffer_;
    std::vector<uint32_t> points_;
    std::string letters_;

    uint32_t form(uint32_t c) const { return characters_[c] >> kKindBits; }
    char* reserve(size_t size) {
        if (buffer_.size() < size + 2 * kPadding) buffer_.resize(size + size / 2 + 2 * kPadding);
        return buffer_.data();
    }

    template <class Postings>
    STEELYARD_INLINE void add(char* word, char* end, Postings& postings) {
        const auto size = static_cast<size_t>(end - word);
        if (!stems_) return postings.add(terms_.number(word, size));
        const uint32_t number = words_.number(word, size);
        if (number == term_of_.size()) term_of_.push_back(stemmed(word, size));
        if (term_of_[number] != kNone) postings.add(term_of_[number]);
    }
    STEELYARD_APART uint32_t stemmed(char* word, size_t size) {
        if (std::all_of(word, word + size, [](char c) { return static_cast<unsigned char>(c) < 0x80; })) {
            size = Stemmed(word, size).size();
        } else {
            if (!read_utf8(word, word + size, points_)) return kNone;
            constexpr char kForeign = '\x80';
            letters_.clear();
            for (const uint32_t c : points_) letters_.push_back(c < 0x80 ? static_cast<char>(c) : kForeign);
            letters_.resize(Stemmed(letters_.data(), letters_.size()).size());
            char* to = word;
            for (size_t i = 0; i < letters_.size(); ++i) to = put_utf8(to, letters_[i] == kForeign ? points_[i] : static_cast<uint32_t>(letters_[i]));
            size = static_cast<size_t>(to - word);
        }
        return size == 0 ? kNone : terms_.number(word, size);
    }
};

}  // namespace steelyard
