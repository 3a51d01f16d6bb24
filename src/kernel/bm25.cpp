// Sparse retrieval: postings from tokens, and the best documents for a query's terms.
//
// Sums are computed in float64 in the order of a query's terms, so that the scores equal those of the portable
// implementation (steelyard.retrievers.bm25) to the last bit. Nothing is multiplied here: the weights are precomputed.

#include <algorithm>
#include <cstdint>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "answer.hpp"
#include "slots.hpp"

namespace steelyard {

namespace {

template <class T>
nb::bytes bytes_of(const std::vector<T>& values) {
    return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A distinct token. One of up to 8 ASCII characters is compared as a 64-bit word, without reading Python's memory.
struct Token {
    PyObject* text;
    uint64_t word;
    Py_ssize_t size;  // 0 unless the token is short

    explicit Token(PyObject* token) : text(token), word(0), size(0) {
        if (!PyUnicode_Check(token)) throw nb::type_error("a token must be text");
        const Py_ssize_t length = PyUnicode_GET_LENGTH(token);
        if (length > 8 || !PyUnicode_IS_COMPACT_ASCII(token)) return;
        size = length;
        std::memcpy(&word, PyUnicode_1BYTE_DATA(token), static_cast<size_t>(length));
    }
    bool is(const Token& other) const {
        if (size != other.size || word != other.word) return false;
        return size > 0 || text == other.text || PyUnicode_Compare(text, other.text) == 0;
    }
    uint32_t hash() const {
        if (size > 0) return fold(word * kSpread);
        const Py_hash_t hash = PyObject_Hash(text);
        if (hash == -1) throw nb::python_error();
        return fold(static_cast<uint64_t>(hash) * kSpread);
    }
};

// The tokens of documents as numbers, assigned in the order in which tokens first occur.
class Tokens {
   public:
    Tokens() { slots_.clear(1 << 10); }

    // The tokens of one document: a list or a tuple.
    void add(nb::handle document) {
        if (!PyList_Check(document.ptr()) && !PyTuple_Check(document.ptr()))
            throw nb::type_error("a tokenizer must return a list of tokens");
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(document.ptr());
        PyObject** const items = PySequence_Fast_ITEMS(document.ptr());
        for (Py_ssize_t i = 0; i < size; ++i) terms_.push_back(number(Token(items[i])));
        lengths_.push_back(size);
    }

    // The vocabulary; starts of each term's postings, their documents and their counts; the documents' lengths.
    nb::tuple postings() const {
        const size_t vocabulary = known_.size();
        std::vector<int64_t> starts(vocabulary + 1, 0);
        std::vector<int32_t> last(vocabulary, -1);
        each([&](int32_t term, int32_t doc) {
            if (last[term] == doc) return;
            last[term] = doc;
            ++starts[term + 1];
        });
        for (size_t term = 0; term < vocabulary; ++term) starts[term + 1] += starts[term];

        std::vector<int32_t> docs(static_cast<size_t>(starts.back())), counts(docs.size());
        std::vector<int64_t> next(starts.begin(), starts.end() - 1);
        std::fill(last.begin(), last.end(), -1);
        each([&](int32_t term, int32_t doc) {
            if (last[term] == doc) {
                ++counts[next[term] - 1];
                return;
            }
            last[term] = doc;
            docs[next[term]] = doc;
            counts[next[term]++] = 1;
        });
        return nb::make_tuple(vocabulary_, bytes_of(starts), bytes_of(docs), bytes_of(counts), bytes_of(lengths_));
    }

   private:
    nb::list vocabulary_;  // keeps the texts alive that known_ points to
    std::vector<Token> known_;
    Slots slots_;
    std::vector<int32_t> terms_;
    std::vector<int64_t> lengths_;

    int32_t number(const Token& token) {
        if (known_.size() >= slots_.room()) slots_.grow([this](uint32_t n) { return known_[n - 1].hash(); });
        const auto fresh = static_cast<uint32_t>(known_.size() + 1);
        const uint32_t met = slots_.find_or_add(token.hash(), fresh, [&](uint32_t n) { return known_[n - 1].is(token); });
        if (met != 0) return static_cast<int32_t>(met - 1);
        known_.push_back(token);
        vocabulary_.append(nb::borrow(token.text));
        return static_cast<int32_t>(fresh - 1);
    }

    template <class Visit>
    void each(Visit visit) const {
        const int32_t* term = terms_.data();
        for (size_t doc = 0; doc < lengths_.size(); ++doc)
            for (int64_t i = 0; i < lengths_[doc]; ++i) visit(*term++, static_cast<int32_t>(doc));
    }
};

nb::tuple bm25_postings(nb::iterable documents) {
    Tokens tokens;
    for (nb::handle document : documents) tokens.add(document);
    return tokens.postings();
}

struct Scored {
    double score;
    int32_t doc;
};

// Best first: by score, then in document order.
bool before(const Scored& a, const Scored& b) { return a.score != b.score ? a.score > b.score : a.doc < b.doc; }

// One term of a query: its unread postings, and what a document without the term is given.
struct Term {
    const int32_t* doc;
    const int32_t* end;
    const double* weight;
    double base;
};

// Adding any weight to -0.0 gives the weight, and no sum of weights is -0.0: it marks a document without any term.
constexpr double kUntouched = -0.0;

// A query that is being searched: its terms in their order, and the best documents so far.
struct Query {
    std::vector<Term> terms;
    std::vector<Scored> best;        // a heap, the worst first
    double untouched = kUntouched;  // the sum of a document that has none of the terms
    bool based = false;             // whether some term gives anything to a document without it

    explicit Query(std::vector<Term> of) : terms(std::move(of)) {
        based = std::any_of(terms.begin(), terms.end(), [](const Term& term) { return term.base != 0; });
        if (based)
            for (const Term& term : terms) untouched += term.base;
    }
    bool never_met(double sum) const { return std::memcmp(&sum, &untouched, sizeof sum) == 0; }

    void push(const Scored& one) {
        best.push_back(one);
        std::push_heap(best.begin(), best.end(), before);
    }
    // Documents come in ascending order: one of equal score ranks after those before it.
    void offer(const Scored& one) {
        if (!(one.score > best.front().score) || never_met(one.score)) return;
        std::pop_heap(best.begin(), best.end(), before);
        best.pop_back();
        push(one);
    }
};

// Searches one block of documents after another, all queries in each: the sums of a block stay in the first-level cache,
// and the postings of words that many queries share in the second.
class Search {
   public:
    Search(int32_t documents, size_t k, bool matching)
        : documents_(documents), k_(std::min(k, static_cast<size_t>(documents))), matching_(matching) {
        std::fill(blank_, blank_ + kBlock, kUntouched);
        std::memcpy(sums_, blank_, sizeof sums_);
    }

    // Finds the best k documents of each query, best first.
    void run(std::vector<Query>& queries) {
        if (k_ == 0) return;
        std::vector<std::vector<Term>> unread;
        for (const Query& query : queries) unread.push_back(query.terms);
        for (int32_t first = 0; first < documents_; first += kBlock) {
            const int32_t size = std::min(kBlock, documents_ - first);
            for (Query& query : queries) {
                if (!add(query, first, size)) continue;
                collect(query, first, size);
                std::memcpy(sums_, blank_, sizeof sums_);
            }
        }
        for (size_t i = 0; i < queries.size(); ++i) {
            std::vector<Scored>& best = queries[i].best;
            if (!matching_ && (best.size() < k_ || best.front().score <= queries[i].untouched)) {
                queries[i].terms = unread[i];
                fill(queries[i]);
            }
            std::sort(best.begin(), best.end(), before);
        }
    }

   private:
    static constexpr int32_t kBlock = 4096;

    const int32_t documents_;
    const size_t k_;
    const bool matching_;
    double sums_[kBlock], fresh_[kBlock], blank_[kBlock];

    // Adds the weights of the terms, in the query's order; false if no document of the block has any of the terms.
    bool add(Query& query, int32_t first, int32_t size) {
        const int32_t limit = first + size;
        if (std::none_of(query.terms.begin(), query.terms.end(),
                         [&](const Term& term) { return term.doc != term.end && *term.doc < limit; }))
            return false;
        for (Term& term : query.terms) {
            const int32_t* const doc = term.doc;
            const double* const weight = term.weight;
            const int32_t* const far = term.end - doc > size ? doc + size : term.end;
            const auto count = static_cast<size_t>(std::lower_bound(doc, far, limit) - doc);
            double* const sums = sums_;
            // Within the block also where the documents of a term do not ascend, which is not checked.
            const auto place = [doc, first](size_t i) {
                return (static_cast<uint32_t>(doc[i]) - static_cast<uint32_t>(first)) % static_cast<uint32_t>(kBlock);
            };
            if (!query.based) {
                for (size_t i = 0; i < count; ++i) sums[place(i)] += weight[i];
            } else {
                for (size_t i = 0; i < count; ++i) fresh_[i] = sums[place(i)] + weight[i];
                for (int32_t i = 0; i < size; ++i) sums[i] += term.base;
                for (size_t i = 0; i < count; ++i) sums[place(i)] = fresh_[i];
            }
            term.doc += count;
            term.weight += count;
        }
        return true;
    }

    void collect(Query& query, int32_t first, int32_t size) {
        constexpr int32_t kLanes = 8, kStretch = 64;
        int32_t i = 0;
        for (; i < size && query.best.size() < k_; ++i)
            if (!query.never_met(sums_[i]) && sums_[i] == sums_[i]) query.push({sums_[i], first + i});
        // The best of each stretch first: most stretches have nothing better than the worst so far.
        for (; i + kStretch <= size; i += kStretch) {
            double most[kLanes];
            std::copy(sums_ + i, sums_ + i + kLanes, most);
            for (int32_t j = kLanes; j < kStretch; j += kLanes)
                for (int32_t lane = 0; lane < kLanes; ++lane)
                    most[lane] = sums_[i + j + lane] > most[lane] ? sums_[i + j + lane] : most[lane];
            if (!(*std::max_element(most, most + kLanes) > query.best.front().score)) continue;
            for (int32_t j = i; j < i + kStretch; ++j) query.offer({sums_[j], first + j});
        }
        for (; i < size; ++i) query.offer({sums_[i], first + i});
    }

    // Adds the first documents that have none of the terms, if they beat the worst of those that have some.
    void fill(Query& query) const {
        size_t found = 0;
        for (int32_t doc = 0; doc < documents_ && found < k_; ++doc) {
            bool met = false;
            for (Term& term : query.terms) {
                while (term.doc != term.end && *term.doc < doc) ++term.doc;
                met |= term.doc != term.end && *term.doc == doc;
            }
            if (met) continue;
            ++found;
            query.best.push_back({query.untouched + 0.0, doc});
        }
        std::sort(query.best.begin(), query.best.end(), before);
        if (query.best.size() > k_) query.best.resize(k_);
    }
};

// Per query, how many documents were found; then the numbers of all of them, and their scores.
nb::tuple bm25_search(Column<int64_t> starts, Column<int32_t> docs, Column<double> weights, Column<double> bases,
                      int32_t documents, Column<int64_t> query_starts, Column<int64_t> query_terms, size_t k,
                      bool matching) {
    constexpr size_t kTogether = 1024;
    const size_t vocabulary = bases.size(), asked = query_starts.size() - (query_starts.size() > 0);
    checked_starts(query_starts, asked, query_terms.size());
    if (starts.size() != vocabulary + 1 || docs.size() != weights.size() || documents < 0 ||
        documents > std::numeric_limits<int32_t>::max() / 2)
        throw nb::value_error("postings must fit together");
    for (size_t i = 0; i < query_terms.size(); ++i) {
        const int64_t term = query_terms.data()[i];
        if (term < 0 || term >= static_cast<int64_t>(vocabulary))
            throw nb::value_error("a query's terms must be in the vocabulary");
        const int64_t begin = starts.data()[term], end = starts.data()[term + 1];
        if (begin < 0 || begin > end || end > static_cast<int64_t>(docs.size()) || !std::isfinite(bases.data()[term]))
            throw nb::value_error("postings must fit together");
    }

    std::vector<int64_t> sizes;
    std::vector<int32_t> found;
    std::vector<double> scores;
    {
        nb::gil_scoped_release release;
        Search search(documents, k, matching);
        std::vector<Query> queries;
        for (size_t done = 0; done < asked; done += kTogether) {
            queries.clear();
            for (size_t at = done; at < std::min(asked, done + kTogether); ++at) {
                std::vector<Term> terms;
                for (int64_t i = query_starts.data()[at]; i < query_starts.data()[at + 1]; ++i) {
                    const int64_t term = query_terms.data()[i];
                    const int64_t begin = starts.data()[term], end = starts.data()[term + 1];
                    terms.push_back({docs.data() + begin, docs.data() + end, weights.data() + begin, bases.data()[term]});
                }
                queries.emplace_back(std::move(terms));
            }
            search.run(queries);
            for (const Query& query : queries) {
                sizes.push_back(static_cast<int64_t>(query.best.size()));
                for (const Scored& one : query.best) {
                    found.push_back(one.doc);
                    scores.push_back(one.score);
                }
            }
        }
    }
    return nb::make_tuple(bytes_of(sizes), bytes_of(found), bytes_of(scores));
}

}  // namespace

void register_bm25(nb::module_& m) {
    m.def("bm25_postings", &bm25_postings);
    m.def("bm25_search", &bm25_search, nb::arg().noconvert(), nb::arg().noconvert(), nb::arg().noconvert(),
          nb::arg().noconvert(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg(), nb::arg());
}

}  // namespace steelyard
