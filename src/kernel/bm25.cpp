// Sparse retrieval: postings from tokens, and the best documents for a query's terms.
//
// Sums are taken in float64, a query's terms in their order, so that the scores are those of the portable form
// (steelyard.retrievers.sparse) to the last bit. Nothing is multiplied here: the weights come ready.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace nb = nanobind;

namespace steelyard {

namespace {

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
nb::bytes bytes_of(const std::vector<T>& values) {
    return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// The vocabulary is a Python dict of token to number, numbered as tokens are met.
class Tokens {
   public:
    explicit Tokens(nb::dict vocabulary) : vocabulary_(vocabulary) {}

    // One document's tokens: a list or a tuple.
    void add(nb::handle document) {
        if (!PyList_Check(document.ptr()) && !PyTuple_Check(document.ptr()))
            throw nb::type_error("a tokenizer must give a list of tokens");
        const Py_ssize_t size = PySequence_Fast_GET_SIZE(document.ptr());
        PyObject** const items = PySequence_Fast_ITEMS(document.ptr());
        for (Py_ssize_t i = 0; i < size; ++i) terms_.push_back(number(items[i]));
        lengths_.push_back(size);
    }

    // starts of each term's postings, their documents and their counts, and the documents' lengths.
    nb::tuple postings() const {
        const size_t vocabulary = nb::len(vocabulary_);
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
        return nb::make_tuple(bytes_of(starts), bytes_of(docs), bytes_of(counts), bytes_of(lengths_));
    }

   private:
    nb::dict vocabulary_;
    std::vector<int32_t> terms_;
    std::vector<int64_t> lengths_;

    int32_t number(PyObject* token) {
        if (PyObject* known = PyDict_GetItemWithError(vocabulary_.ptr(), token))
            return static_cast<int32_t>(PyLong_AsLong(known));
        if (PyErr_Occurred()) throw nb::python_error();
        const auto fresh = static_cast<int32_t>(nb::len(vocabulary_));
        if (PyDict_SetItem(vocabulary_.ptr(), token, nb::int_(fresh).ptr()) != 0) throw nb::python_error();
        return fresh;
    }

    template <class Visit>
    void each(Visit visit) const {
        const int32_t* term = terms_.data();
        for (size_t doc = 0; doc < lengths_.size(); ++doc)
            for (int64_t i = 0; i < lengths_[doc]; ++i) visit(*term++, static_cast<int32_t>(doc));
    }
};

nb::tuple bm25_postings(nb::iterable documents, nb::dict vocabulary) {
    Tokens tokens(vocabulary);
    for (nb::handle document : documents) tokens.add(document);
    return tokens.postings();
}

struct Scored {
    double score;
    int32_t doc;

    bool before(const Scored& other) const { return score != other.score ? score > other.score : doc < other.doc; }
};

// One term of the query: its postings not yet read, and what a document without the term gets.
struct Cursor {
    const int32_t* doc;
    const int32_t* end;
    const double* weight;
    double base;
};

class Search {
   public:
    Search(int32_t documents, size_t k, bool matching)
        : documents_(documents), k_(std::min(k, static_cast<size_t>(documents))), matching_(matching) {
        std::fill(sums_, sums_ + kBlock, kUntouched);
    }

    // The best k documents: by score, then in document order.
    const std::vector<Scored>& best(const std::vector<Cursor>& terms) {
        terms_ = terms;
        best_.clear();
        untouched_ = kUntouched;
        based_ = std::any_of(terms.begin(), terms.end(), [](const Cursor& term) { return term.base != 0; });
        if (based_)
            for (const Cursor& term : terms) untouched_ += term.base;
        for (int32_t first = 0; first < documents_; first += kBlock) {
            const int32_t size = std::min(kBlock, documents_ - first);
            if (!add_block(first, size)) continue;
            collect(first, size);
            std::fill(sums_, sums_ + size, kUntouched);
        }
        if (!matching_ && (best_.size() < k_ || best_.front().score <= untouched_)) fill(terms);
        std::sort(best_.begin(), best_.end(), [](const Scored& a, const Scored& b) { return a.before(b); });
        return best_;
    }

   private:
    // Blocks of documents whose sums stay in the first cache.
    static constexpr int32_t kBlock = 4096;
    // Adding any weight to -0.0 gives the weight, and no sum of weights is -0.0: it marks a document never met.
    static constexpr double kUntouched = -0.0;

    const int32_t documents_;
    const size_t k_;
    const bool matching_;
    std::vector<Cursor> terms_;
    std::vector<Scored> best_;  // a heap, its worst in front
    double untouched_ = kUntouched;
    bool based_ = false;
    double sums_[kBlock], fresh_[kBlock];

    // False where no document of the block has any of the terms.
    bool add_block(int32_t first, int32_t size) {
        const int32_t limit = first + size;
        bool any = false;
        for (const Cursor& term : terms_) any |= term.doc != term.end && *term.doc < limit;
        if (!any) return false;
        for (Cursor& term : terms_) {
            const int32_t* doc = term.doc;
            if (!based_) {
                for (; doc != term.end && *doc < limit; ++doc) sums_[*doc - first] += *term.weight++;
            } else {
                size_t count = 0;
                for (; doc != term.end && *doc < limit; ++doc) fresh_[count++] = sums_[*doc - first] + *term.weight++;
                for (int32_t i = 0; i < size; ++i) sums_[i] += term.base;
                for (size_t i = 0; i < count; ++i) sums_[term.doc[i] - first] = fresh_[i];
            }
            term.doc = doc;
        }
        return true;
    }

    bool untouched(double sum) const { return std::memcmp(&sum, &untouched_, sizeof sum) == 0; }

    void collect(int32_t first, int32_t size) {
        constexpr int32_t kStep = 8;
        int32_t i = 0;
        for (; i < size && best_.size() < k_; ++i)
            if (!untouched(sums_[i])) push(sums_[i], first + i);
        for (; i + kStep <= size; i += kStep) {
            const double worst = best_.front().score;
            int above = 0;
            for (int32_t j = 0; j < kStep; ++j) above |= sums_[i + j] > worst;
            if (above)
                for (int32_t j = 0; j < kStep; ++j) offer(sums_[i + j], first + i + j);
        }
        for (; i < size; ++i) offer(sums_[i], first + i);
    }

    // Documents come in their order: an equal score comes too late.
    void offer(double sum, int32_t doc) {
        if (!(sum > best_.front().score) || untouched(sum)) return;
        std::pop_heap(best_.begin(), best_.end(), [](const Scored& a, const Scored& b) { return a.before(b); });
        best_.pop_back();
        push(sum, doc);
    }

    void push(double sum, int32_t doc) {
        best_.push_back({sum, doc});
        std::push_heap(best_.begin(), best_.end(), [](const Scored& a, const Scored& b) { return a.before(b); });
    }

    // The first documents that have none of the terms, against the worst of those that have.
    void fill(std::vector<Cursor> terms) {
        size_t found = 0;
        for (int32_t doc = 0; doc < documents_ && found < k_; ++doc) {
            bool met = false;
            for (Cursor& term : terms) {
                while (term.doc != term.end && *term.doc < doc) ++term.doc;
                met |= term.doc != term.end && *term.doc == doc;
            }
            if (met) continue;
            ++found;
            best_.push_back({untouched_ + 0.0, doc});
        }
        std::sort(best_.begin(), best_.end(), [](const Scored& a, const Scored& b) { return a.before(b); });
        if (best_.size() > k_) best_.resize(k_);
    }
};

// Per query: how many documents came back; all their numbers, and their scores.
nb::tuple bm25_search(Column<int64_t> starts, Column<int32_t> docs, Column<double> weights, Column<double> bases,
                      int32_t documents, Column<int64_t> query_starts, Column<int64_t> query_terms, size_t k,
                      bool matching) {
    const size_t vocabulary = bases.size(), queries = query_starts.size() - 1;
    if (starts.size() != vocabulary + 1 || docs.size() != weights.size() ||
        starts.data()[vocabulary] != static_cast<int64_t>(docs.size()) || query_starts.size() == 0 ||
        query_starts.data()[queries] != static_cast<int64_t>(query_terms.size()))
        throw nb::value_error("postings and queries must fit together");
    for (size_t i = 0; i < query_terms.size(); ++i)
        if (query_terms.data()[i] < 0 || query_terms.data()[i] >= static_cast<int64_t>(vocabulary))
            throw nb::value_error("a query's terms must be in the vocabulary");

    std::vector<int64_t> sizes;
    std::vector<int32_t> found;
    std::vector<double> scores;
    {
        nb::gil_scoped_release release;
        Search search(documents, k, matching);
        std::vector<Cursor> terms;
        for (size_t query = 0; query < queries; ++query) {
            terms.clear();
            for (int64_t i = query_starts.data()[query]; i < query_starts.data()[query + 1]; ++i) {
                const int64_t term = query_terms.data()[i];
                const int64_t begin = starts.data()[term], end = starts.data()[term + 1];
                terms.push_back({docs.data() + begin, docs.data() + end, weights.data() + begin, bases.data()[term]});
            }
            const std::vector<Scored>& best = search.best(terms);
            sizes.push_back(static_cast<int64_t>(best.size()));
            for (const Scored& one : best) {
                found.push_back(one.doc);
                scores.push_back(one.score);
            }
        }
    }
    return nb::make_tuple(bytes_of(sizes), bytes_of(found), bytes_of(scores));
}

}  // namespace

void register_bm25(nb::module_& m) {
    m.def("bm25_postings", &bm25_postings);
    m.def("bm25_search", &bm25_search);
}

}  // namespace steelyard
