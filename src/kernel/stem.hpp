// The English stemmer of steelyard.retrievers.tokenizers, on words of lower-case letters, digits and underscores.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "inlining.hpp"

namespace steelyard {

// A word in place. Characters outside ASCII may be replaced by any byte that is not: none is a vowel or part of an ending.
class Stemmed {
   public:
    Stemmed(char* word, size_t size) : word_(word), size_(size) {
        if (fixed() || size_ < 3) return;
        mark_consonant_y();
        find_regions();
        plural();
        past_or_progressive();
        if (size_ > 2 && (at(size_ - 1) == 'y' || at(size_ - 1) == 'Y') && !vowel(size_ - 2)) word_[size_ - 1] = 'i';
        step_2();
        step_3();
        step_4();
        last_letter();
        for (size_t i = 0; i < size_; ++i)
            if (word_[i] == 'Y') word_[i] = 'y';
    }
    size_t size() const { return size_; }

   private:
    struct Change {
        std::string_view ending, to;
    };

    char* const word_;
    size_t size_, r1_ = 0, r2_ = 0;

    char at(size_t i) const { return word_[i]; }
    bool vowel(size_t i) const {
        const char c = word_[i];
        return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u' || c == 'y';
    }
    bool any_vowel(size_t end) const {
        for (size_t i = 0; i < end; ++i)
            if (vowel(i)) return true;
        return false;
    }
    STEELYARD_APART bool same(size_t begin, std::string_view text) const {
        for (size_t i = 0; i < text.size(); ++i)
            if (word_[begin + i] != text[i]) return false;
        return true;
    }
    bool is(size_t end, std::string_view text) const { return end == text.size() && same(0, text); }
    bool ends(size_t end, std::string_view text) const { return end >= text.size() && same(end - text.size(), text); }
    static bool among(char c, std::string_view letters) {
        for (const char letter : letters)
            if (c == letter) return true;
        return false;
    }
    void put(size_t begin, std::string_view text) {
        for (size_t i = 0; i < text.size(); ++i) word_[begin + i] = text[i];
        size_ = begin + text.size();
    }
    // The change with the longest ending that the word has.
    template <size_t n>
    const Change* longest(const Change (&changes)[n]) const {
        const Change* found = nullptr;
        for (const Change& change : changes)
            if (ends(size_, change.ending) && (!found || change.ending.size() > found->ending.size())) found = &change;
        return found;
    }

    bool fixed() {
        static constexpr Change kFixed[] = {{"skis", "ski"},     {"skies", "sky"},     {"idly", "idl"},   {"gently", "gentl"},
                                            {"ugly", "ugli"},    {"early", "earli"},   {"only", "onli"},  {"singly", "singl"},
                                            {"sky", "sky"},      {"news", "news"},     {"howe", "howe"},  {"atlas", "atlas"},
                                            {"cosmos", "cosmos"}, {"bias", "bias"},    {"andes", "andes"}};
        for (const Change& change : kFixed)
            if (is(size_, change.ending)) {
                put(0, change.to);
                return true;
            }
        return false;
    }
    void mark_consonant_y() {
        for (size_t i = 0; i < size_; ++i)
            if (word_[i] == 'y' && (i == 0 || vowel(i - 1))) word_[i] = 'Y';
    }
    void find_regions() {
        static constexpr std::string_view kPrefixes[] = {"gener", "commun", "arsen", "past", "univers",
                                                         "later", "emerg",  "organ", "inter"};
        r1_ = 0;
        for (const std::string_view prefix : kPrefixes)
            if (r1_ == 0 && size_ >= prefix.size() && same(0, prefix)) r1_ = prefix.size();
        if (r1_ == 0) r1_ = after_vowel_and_consonant(0);
        r2_ = after_vowel_and_consonant(r1_);
    }
    size_t after_vowel_and_consonant(size_t begin) const {
        for (size_t i = begin + 1; i < size_; ++i)
            if (!vowel(i) && vowel(i - 1)) return i + 1;
        return size_;
    }
    bool ends_short(size_t end) const {
        if (end == 2) return vowel(0) && !vowel(1);
        if (ends(end, "past")) return true;
        return end > 2 && !vowel(end - 1) && !among(at(end - 1), "wxY") && vowel(end - 2) && !vowel(end - 3);
    }
    void plural() {
        if (ends(size_, "sses"))
            size_ -= 2;
        else if (ends(size_, "ied") || ends(size_, "ies"))
            size_ -= size_ > 4 ? 2 : 1;
        else if (ends(size_, "s") && !ends(size_, "ss") && !ends(size_, "us") && any_vowel(size_ > 2 ? size_ - 2 : 0))
            --size_;
    }
    void past_or_progressive() {
        static constexpr Change kEndings[] = {{"eed", ""}, {"eedly", ""}, {"ed", ""}, {"edly", ""}, {"ing", ""}, {"ingly", ""}};
        static constexpr std::string_view kKept[] = {"even", "cann", "inn", "earr", "herr", "out"};
        const Change* const found = longest(kEndings);
        if (!found) return;
        const size_t before = size_ - found->ending.size();
        if (found->ending[1] == 'e') {
            if (before >= r1_ && !is(before, "succ") && !is(before, "proc") && !is(before, "exc")) put(before, "ee");
            return;
        }
        if (found->ending == "ing") {
            if (before == 2 && at(1) == 'y' && !vowel(0)) return put(1, "ie");
            for (const std::string_view kept : kKept)
                if (is(before, kept)) return;
        }
        if (!any_vowel(before)) return;
        if (ends(before, "at") || ends(before, "bl") || ends(before, "iz")) return put(before, "e");
        if (before >= 2 && at(before - 1) == at(before - 2) && among(at(before - 1), "bdfgmnprt")) {
            size_ = before == 3 && among(at(0), "aeo") ? before : before - 1;
            return;
        }
        put(before, before == r1_ && ends_short(before) ? "e" : "");
    }
    void step_2() {
        static constexpr Change kChanges[] = {
            {"tional", "tion"}, {"enci", "ence"},   {"anci", "ance"}, {"abli", "able"},   {"entli", "ent"},
            {"izer", "ize"},    {"ization", "ize"}, {"ational", "ate"}, {"ation", "ate"}, {"ator", "ate"},
            {"alism", "al"},    {"aliti", "al"},    {"alli", "al"},   {"fulness", "ful"}, {"ousli", "ous"},
            {"ousness", "ous"}, {"iveness", "ive"}, {"iviti", "ive"}, {"biliti", "ble"},  {"bli", "ble"},
            {"ogist", "og"},    {"ogi", "og"},      {"fulli", "ful"}, {"lessli", "less"}, {"li", ""}};
        const Change* const found = longest(kChanges);
        if (!found) return;
        const size_t before = size_ - found->ending.size();
        if (before < r1_) return;
        if (found->ending == "ogi" && !ends(before, "l")) return;
        if (found->ending == "li" && (before == 0 || !among(at(before - 1), "cdeghkmnrt"))) return;
        put(before, found->to);
    }
    void step_3() {
        static constexpr Change kChanges[] = {{"tional", "tion"}, {"ational", "ate"}, {"alize", "al"}, {"icate", "ic"}, {"iciti", "ic"},
                                              {"ical", "ic"},     {"ful", ""},        {"ness", ""},    {"ative", ""}};
        const Change* const found = longest(kChanges);
        if (!found) return;
        const size_t before = size_ - found->ending.size();
        if (before >= (found->ending == "ative" ? r2_ : r1_)) put(before, found->to);
    }
    void step_4() {
        static constexpr Change kEndings[] = {{"al", ""},  {"ance", ""}, {"ence", ""}, {"er", ""},  {"ic", ""},  {"able", ""},
                                              {"ible", ""}, {"ant", ""}, {"ement", ""}, {"ment", ""}, {"ent", ""}, {"ism", ""},
                                              {"ate", ""}, {"iti", ""},  {"ous", ""},  {"ive", ""}, {"ize", ""}, {"ion", ""}};
        const Change* const found = longest(kEndings);
        if (!found) return;
        const size_t before = size_ - found->ending.size();
        if (before < r2_ || (found->ending == "ion" && !ends(before, "s") && !ends(before, "t"))) return;
        size_ = before;
    }
    void last_letter() {
        if (size_ == 0) return;
        const size_t before = size_ - 1;
        const bool dropped = at(before) == 'e' ? before >= r2_ || (before >= r1_ && !ends_short(before))
                                               : ends(size_, "ll") && before >= r2_;
        if (dropped) size_ = before;
    }
};

}  // namespace steelyard
