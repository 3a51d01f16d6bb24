// The kernel's tokenizer, postings and search on arbitrary bytes. Texts have the same tokens in every form, postings are
// those of a count term by term, and the search finds what scoring every document finds.
//
// An input is two bytes of options and lines, each of them the text of a document. The form is that of libFuzzer;
// fuzz/driver.cpp runs it where there is none.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>

#include "../src/kernel/postings.hpp"
#include "../src/kernel/tokens.hpp"
#include "../src/kernel/topk.hpp"

using namespace steelyard;

namespace {

void require(bool holds, const char* what) {
    if (holds) return;
    std::fprintf(stderr, "not the same: %s\n", what);
    std::abort();
}

// Exactly these bytes, so that the sanitizer finds every read past them.
std::unique_ptr<char[]> copied(const char* begin, size_t size) {
    std::unique_ptr<char[]> copy(new char[size]);
    if (size) std::memcpy(copy.get(), begin, size);
    return copy;
}

std::vector<uint32_t> characters() {
    std::vector<uint32_t> table(0x5000, not_plain);
    for (uint32_t c = 0; c < 0x250; ++c) {
        const bool upper = (c >= 'A' && c <= 'Z') || (c >= 0xc0 && c < 0xde);
        const bool word = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c >= 0xdf;
        table[c] = (upper ? c + 0x20 : c) << kKindBits | (word ? letter : separator);
    }
    table[0xbd] = not_plain;
    for (uint32_t c = 0x4e00; c < 0x5000; ++c) table[c] = c << kKindBits | unspaced;
    return table;
}

using Tokens = std::vector<std::string>;

// The tokens of a text in each of the forms that it has; false if it is left to Python.
bool tokens_of(Tokenizer& tokenizer, const std::string& text, Tokens& tokens) {
    struct Added : std::vector<uint32_t> {
        void add(uint32_t term) { push_back(term); }
    } terms;
    std::vector<uint32_t> points;
    const auto exact = copied(text.data(), text.size());
    if (!read_utf8(exact.get(), exact.get() + text.size(), points)) return false;
    const std::unique_ptr<uint32_t[]> wide(new uint32_t[points.size()]);
    std::copy(points.begin(), points.end(), wide.get());
    if (!tokenizer.wide(wide.get(), points.size(), terms)) return false;
    tokens.clear();
    for (const uint32_t term : terms) tokens.emplace_back(tokenizer.terms()[term]);
    if (points.size() == text.size()) {
        const std::vector<uint32_t> first = terms;
        terms.clear();
        require(tokenizer.ascii(exact.get(), text.size(), terms) && terms == first, "the tokens of an ASCII text");
    }
    return true;
}

template <class Weight>
void search(const std::vector<Tokens>& documents, Tokenizer& tokenizer, unsigned options, unsigned more) {
    PostingsBuilder builder;
    const int32_t stride = more & 1 ? 1 : 1 + static_cast<int32_t>(more >> 1) * 40;
    std::vector<std::map<uint32_t, int32_t>> counts;
    for (const Tokens& tokens : documents) {
        counts.emplace_back();
        for (const std::string& token : tokens) {
            const uint32_t term = tokenizer.terms().number(token);
            builder.add(term);
            ++counts.back()[term];
        }
        builder.end_document();
    }
    Postings found = builder.finish(tokenizer.terms().size());
    size_t postings = 0;
    for (size_t doc = 0; doc < counts.size(); ++doc)
        for (const auto& [term, count] : counts[doc]) {
            const int32_t* const begin = found.docs.get() + found.starts[term];
            const int32_t* const end = found.docs.get() + found.starts[term + 1];
            const int32_t* const at = std::lower_bound(begin, end, static_cast<int32_t>(doc));
            require(at != end && *at == static_cast<int32_t>(doc), "the documents of a term");
            const size_t code = found.short_codes[static_cast<size_t>(at - found.docs.get())];
            require(found.counts[code] == count && found.lengths[code] == static_cast<int64_t>(documents[doc].size()), "the pair of a code");
            ++postings;
        }
    require(postings == found.size() && found.documents == static_cast<int64_t>(documents.size()), "the number of postings");

    // Documents far from each other are in several windows.
    for (size_t i = 0; i < found.size(); ++i) found.docs[i] *= stride;
    const auto size = static_cast<int32_t>(documents.size()) * stride;
    if (options & 4)  // the documents and codes of a damaged file
        for (size_t i = 0; i < found.size(); ++i) {
            found.docs[i] = static_cast<int32_t>(static_cast<uint32_t>(found.docs[i]) * 0x9e3779b9u + more);
            found.short_codes[i] = static_cast<uint16_t>(found.short_codes[i] * 40503u + more);
        }
    static std::vector<double> factors(Weight::kFactors << 16, 0.0);
    for (size_t code = 0; code < found.counts.size(); ++code)
        for (size_t i = 0; i < Weight::kFactors; ++i)
            factors[Weight::kFactors * code + i] = (found.counts[code] + 0.3 * static_cast<double>(i)) / (1.0 + 0.1 * static_cast<double>(found.lengths[code]));
    const auto idf_of = [&](size_t term) { return (options & 8 && term % 5 == 0 ? -0.4 : 0.0) + static_cast<double>(term % 7) * 0.37; };
    const auto base_of = [&](size_t term) { return options & 16 ? idf_of(term) * 0.05 : 0.0; };
    const auto weight = [&](size_t term, size_t code) { return Weight::of(idf_of(term), &factors[Weight::kFactors * code]); };

    const size_t k = 1 + (options >> 5) % 5;
    const bool matching = options & 2;
    std::vector<std::vector<uint32_t>> asked(1);
    for (size_t n = 0; n < documents.size() && n < 4; ++n) {
        asked.emplace_back();
        for (const std::string& token : documents[n])
            if (asked.back().size() < 6) asked.back().push_back(tokenizer.terms().number(token));
    }
    std::vector<Query> queries;
    for (const auto& terms : asked) {
        std::vector<Term> given;
        for (const uint32_t term : terms) {
            const auto begin = static_cast<size_t>(found.starts[term]), end = static_cast<size_t>(found.starts[term + 1]);
            double most = 0;
            for (size_t i = begin; i < end; ++i) most = std::max(most, weight(term, found.short_codes[i]));
            given.push_back({found.docs.get() + begin, found.docs.get() + end, idf_of(term), base_of(term), most});
        }
        queries.emplace_back(std::move(given), std::min(k, static_cast<size_t>(size)));
    }
    const Factors all{factors.data(), size_t{1} << 16, Weight::kFactors == LongWeight::kFactors};
    const std::vector<uint32_t> wide(found.short_codes.get(), found.short_codes.get() + found.size());
    const Codes codes = more & 2 ? Codes{wide.data(), true} : Codes{found.short_codes.get(), false};
    Search(found.docs.get(), codes, size, k, matching, all).run(queries);
    if (options & 4) return;
    for (size_t q = 0; q < asked.size(); ++q) {
        std::vector<Scored> expected;
        for (int32_t doc = 0; doc < size; ++doc) {
            // Of those without any terms, the first k are enough.
            if (doc % stride != 0 && doc > 2 * static_cast<int32_t>(k) + 2) doc += stride - doc % stride;
            if (doc >= size) break;
            double sum = 0;
            bool met = false;
            for (const uint32_t term : asked[q]) {
                const int32_t* const begin = found.docs.get() + found.starts[term];
                const int32_t* const end = found.docs.get() + found.starts[term + 1];
                const int32_t* const at = std::lower_bound(begin, end, doc);
                const bool here = at != end && *at == doc;
                met |= here;
                sum += here ? weight(term, found.short_codes[static_cast<size_t>(at - found.docs.get())]) : base_of(term);
            }
            if (met || !matching) expected.push_back({sum, doc});
        }
        std::sort(expected.begin(), expected.end(), Before());
        if (expected.size() > k) expected.resize(k);
        const std::vector<Scored>& got = queries[q].best.found();
        require(got.size() == expected.size(), "the number of documents found");
        for (size_t i = 0; i < got.size(); ++i)
            require(got[i].doc == expected[i].doc && got[i].score == expected[i].score, "the documents found");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    if (size < 2) return 0;
    const unsigned options = data[0], more = data[1];
    static const std::vector<uint32_t> table = characters();
    Tokenizer tokenizer(table, options & 1, {"the", "of"});
    std::vector<Tokens> documents;
    const char* at = reinterpret_cast<const char*>(data) + 2;
    const char* const end = at + (size - 2);
    while (at < end) {
        const char* const stop = std::find(at, end, '\n');
        Tokens tokens;
        if (tokens_of(tokenizer, std::string(at, stop), tokens)) documents.push_back(tokens);
        at = stop == end ? end : stop + 1;
    }
    if (documents.empty()) return 0;
    if (more & 128)
        search<LongWeight>(documents, tokenizer, options, more & 127);
    else
        search<ShortWeight>(documents, tokenizer, options, more);
    return 0;
}
