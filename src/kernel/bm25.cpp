// Sparse retrieval for Python: postings from texts or tokens, and the best documents for a query's terms.
#include <exception>
#include <system_error>
#include <thread>

#include "answer.hpp"
#include "postings.hpp"
#include "tokens.hpp"
#include "topk.hpp"

namespace steelyard {

namespace {

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;

// An array that owns its values, without a copy.
template <class T>
nb::object array_of(std::unique_ptr<T[]> values, size_t size) {
    T* const data = values.release();
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<T*>(p); });
    return nb::cast(Array<T>(data, {size}, owner));
}
template <class T>
nb::object array_of(const std::vector<T>& values) {
    std::unique_ptr<T[]> copy(new T[values.size()]);
    std::copy(values.begin(), values.end(), copy.get());
    return array_of(std::move(copy), values.size());
}

// UTF-8 of a Python text, where half of a character is three bytes.
std::string utf8_of(nb::handle text, const char* otherwise) {
    if (!PyUnicode_Check(text.ptr())) throw nb::type_error(otherwise);
    nb::object bytes = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!bytes.is_valid()) throw nb::python_error();
    return {PyBytes_AS_STRING(bytes.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.ptr()))};
}

std::vector<std::string> stop_words_of(nb::list words) {
    std::vector<std::string> found;
    for (nb::handle word : words) found.push_back(utf8_of(word, "a stop word must be text"));
    return found;
}

// Collects documents and gives their postings.
class Indexer {
   public:
    // characters, stems and stop words: those of a Tokenizer, or none of them, if only `tokenize` is used. It is called for
    // texts that are not plain.
    Indexer(Column<uint32_t> characters, bool stems, nb::list stop_words, nb::object tokenize)
        : tokenizer_({characters.data(), characters.data() + characters.size()}, stems, stop_words_of(stop_words)),
          tokenize_(std::move(tokenize)) {}
    Indexer(const Indexer&) = delete;
    Indexer& operator=(const Indexer&) = delete;

    void add_text(nb::str text) { add(text); }
    void add_texts(nb::iterable texts) {
        for (nb::handle text : texts) {
            if (!PyUnicode_Check(text.ptr())) throw nb::type_error("a document must be text");
            add(text);
        }
    }
    void add_tokens(nb::iterable documents) {
        for (nb::handle tokens : documents) add_tokens_of(tokens);
    }

    // (vocabulary; starts, documents, codes; counts and lengths of the codes; number of documents and of tokens).
    // Nothing can be added afterwards.
    nb::tuple finish() {
        const Terms& terms = tokenizer_.terms();
        nb::list vocabulary;
        for (size_t i = 0; i < terms.size(); ++i) {
            const nb::object text = nb::steal(PyUnicode_DecodeUTF8(terms[i].data(), static_cast<Py_ssize_t>(terms[i].size()), "surrogatepass"));
            if (!text.is_valid()) throw nb::python_error();
            vocabulary.append(text);
        }
        Postings found;
        {
            nb::gil_scoped_release release;
            found = postings_.finish(terms.size());
        }
        const size_t size = found.size();
        nb::object codes = found.codes ? array_of(std::move(found.codes), size) : array_of(std::move(found.short_codes), size);
        return nb::make_tuple(vocabulary, array_of(found.starts), array_of(std::move(found.docs), size), codes, array_of(found.counts),
                              array_of(found.lengths), found.documents, found.tokens);
    }

   private:
    Tokenizer tokenizer_;
    PostingsBuilder postings_;
    nb::object tokenize_;
    std::vector<uint32_t> points_;
    std::vector<uint32_t> held_;
    std::string token_;

    void add(nb::handle text) {
        PyObject* const object = text.ptr();
        const auto size = static_cast<size_t>(PyUnicode_GET_LENGTH(object));
        if (PyUnicode_IS_ASCII(object)) {
            if (tokenizer_.ascii(reinterpret_cast<const char*>(PyUnicode_DATA(object)), size, postings_)) return postings_.end_document();
        } else {
            points_.resize(size);
            const int kind = PyUnicode_KIND(object);
            const void* const data = PyUnicode_DATA(object);
            for (size_t i = 0; i < size; ++i) points_[i] = PyUnicode_READ(kind, data, static_cast<Py_ssize_t>(i));
            if (tokenizer_.wide(points_.data(), size, postings_)) return postings_.end_document();
        }
        add_tokens_of(tokenize_(text));
    }
    // All tokens are checked before any is added.
    void add_tokens_of(nb::handle document) {
        if (!PyList_Check(document.ptr()) && !PyTuple_Check(document.ptr()))
            throw nb::type_error("a tokenizer must return a list of tokens");
        held_.clear();
        for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(document.ptr()); ++i) {
            PyObject* const token = PySequence_Fast_GET_ITEM(document.ptr(), i);
            if (PyUnicode_Check(token) && PyUnicode_IS_COMPACT_ASCII(token)) {
                token_.assign(reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(token)), static_cast<size_t>(PyUnicode_GET_LENGTH(token)));
            } else {
                token_ = utf8_of(token, "a token must be text");
            }
            const size_t size = token_.size();
            token_.append(kPadding, '\0');
            held_.push_back(tokenizer_.terms().number(token_.data(), size));
        }
        for (const uint32_t term : held_) postings_.add(term);
        postings_.end_document();
    }
};

// The queries of a search: terms by number.
struct Asked {
    const Column<int64_t>&starts, &terms;
    size_t size() const { return starts.size() - (starts.size() > 0); }
};

using CodeColumn = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Codes codes_of(const CodeColumn& codes) {
    const bool is_wide = codes.dtype() == nb::dtype<uint32_t>();
    if (!is_wide && codes.dtype() != nb::dtype<uint16_t>()) throw nb::type_error("codes must be of type uint16 or uint32");
    return {codes.data(), is_wide};
}

struct Index {
    const Column<int64_t>& starts;
    const Column<int32_t>& docs;
    Codes codes;
    Factors factors;
    const Column<double>&idf, &bases, &most;
    int32_t documents;
};

// The results of a range of queries.
struct Results {
    std::vector<int64_t> sizes;
    std::vector<int32_t> docs;
    std::vector<double> scores;
};

Results searched(const Index& index, const Asked& asked, size_t from, size_t to, size_t k, bool matching) {
    // So many queries are searched together that their results fit into the second-level cache.
    const size_t together = std::max<size_t>(1, std::min<size_t>(256, (size_t{1} << 15) / std::max<size_t>(1, k)));
    Results found;
    Search search(index.docs.data(), index.codes, index.documents, k, matching, index.factors);
    std::vector<Query> queries;
    for (size_t done = from; done < to; done += together) {
        queries.clear();
        for (size_t at = done; at < std::min(to, done + together); ++at) {
            std::vector<Term> terms;
            for (int64_t i = asked.starts.data()[at]; i < asked.starts.data()[at + 1]; ++i) {
                const int64_t term = asked.terms.data()[i];
                const int64_t begin = index.starts.data()[term], end = index.starts.data()[term + 1];
                terms.push_back({index.docs.data() + begin, index.docs.data() + end, index.idf.data()[term], index.bases.data()[term],
                                 index.most.data()[term]});
            }
            queries.emplace_back(std::move(terms), std::min(k, static_cast<size_t>(index.documents)));
        }
        search.run(queries);
        for (Query& query : queries) {
            found.sizes.push_back(static_cast<int64_t>(query.best.found().size()));
            for (const Scored& one : query.best.found()) {
                found.docs.push_back(one.doc);
                found.scores.push_back(one.score);
            }
        }
    }
    return found;
}

nb::tuple search_all(const Index& index, const Asked& asked, size_t k, bool matching, size_t threads) {
    // A thread is started for so many postings.
    constexpr int64_t kWorthAThread = 1 << 18;
    int64_t postings = 0;
    for (size_t i = 0; i < asked.terms.size(); ++i)
        postings += index.starts.data()[asked.terms.data()[i] + 1] - index.starts.data()[asked.terms.data()[i]];
    threads = std::min({threads, asked.size(), size_t{64}, static_cast<size_t>(postings / kWorthAThread)});
    threads = std::max<size_t>(1, threads);
    std::vector<Results> parts(threads);
    {
        nb::gil_scoped_release release;
        std::vector<std::exception_ptr> failures(threads);
        std::vector<std::thread> others;
        const auto work = [&](size_t n) {
            try {
                parts[n] = searched(index, asked, asked.size() * n / threads, asked.size() * (n + 1) / threads, k, matching);
            } catch (...) {
                failures[n] = std::current_exception();
            }
        };
        for (size_t n = 1; n < threads; ++n) {
            try {
                others.emplace_back(work, n);
            } catch (const std::system_error&) {
                work(n);  // no thread can be started
            }
        }
        work(0);
        for (std::thread& other : others) other.join();
        for (const std::exception_ptr& one : failures)
            if (one) std::rethrow_exception(one);
    }
    for (size_t n = 1; n < threads; ++n) {
        parts[0].sizes.insert(parts[0].sizes.end(), parts[n].sizes.begin(), parts[n].sizes.end());
        parts[0].docs.insert(parts[0].docs.end(), parts[n].docs.begin(), parts[n].docs.end());
        parts[0].scores.insert(parts[0].scores.end(), parts[n].scores.begin(), parts[n].scores.end());
        parts[n] = Results();
    }
    return nb::make_tuple(bytes_of(parts[0].sizes), bytes_of(parts[0].docs), bytes_of(parts[0].scores));
}

// Per query, how many documents were found; then the numbers of all of them, and their scores. factors: one per code, or
// four if `long_weights`. most: per term, at least the largest of its weights.
nb::tuple bm25_search(Column<int64_t> starts, Column<int32_t> docs, CodeColumn codes, Column<double> factors, bool long_weights,
                      Column<double> idf, Column<double> bases, Column<double> most, int32_t documents, Column<int64_t> query_starts,
                      Column<int64_t> query_terms, size_t k, bool matching, size_t threads) {
    const Asked asked{query_starts, query_terms};
    const Codes known = codes_of(codes);
    const size_t vocabulary = idf.size(), each = long_weights ? LongWeight::kFactors : ShortWeight::kFactors;
    checked_starts(query_starts, asked.size(), query_terms.size());
    if (starts.size() != vocabulary + 1 || bases.size() != vocabulary || most.size() != vocabulary || docs.size() != codes.size() ||
        factors.size() % each != 0 || (!known.is_wide && factors.size() < each << 16) || documents < 0 || documents > std::numeric_limits<int32_t>::max() / 2)
        throw nb::value_error("postings must fit together");
    for (size_t i = 0; i < query_terms.size(); ++i) {
        const int64_t term = query_terms.data()[i];
        if (term < 0 || term >= static_cast<int64_t>(vocabulary))
            throw nb::value_error("a query's terms must be in the vocabulary");
        const int64_t begin = starts.data()[term], end = starts.data()[term + 1];
        if (begin < 0 || begin > end || end > static_cast<int64_t>(docs.size()) || factors.size() == 0 ||
            !std::isfinite(bases.data()[term]))
            throw nb::value_error("postings must fit together");
    }
    const Factors by_code{factors.data(), factors.size() / each, long_weights};
    return search_all(Index{starts, docs, known, by_code, idf, bases, most, documents}, asked, k, matching, threads);
}

// Pauses the garbage collector: it would look for cycles among pairs again and again while they are made.
struct CollectorPaused {
    const int enabled = PyGC_Disable();
    ~CollectorPaused() {
        if (enabled) PyGC_Enable();
    }
};

// Results as lists of (id, score) pairs, one per query. `id_of` returns a new reference to the id of a position, and `soon`
// is called some positions before it.
template <class IdOf, class Soon>
nb::list lists_of(size_t known, const Column<int64_t>& sizes, const Column<int32_t>& positions, const Column<double>& scores, IdOf id_of,
                  Soon soon) {
    constexpr size_t kAhead = 12;
    const CollectorPaused paused;
    if (positions.size() != scores.size()) throw nb::value_error("results must fit together");
    for (size_t i = 0; i < positions.size(); ++i)
        if (positions.data()[i] < 0 || static_cast<size_t>(positions.data()[i]) >= known)
            throw nb::value_error("results must be of known documents");
    nb::list lists;
    nb::object score;
    size_t at = 0;
    for (size_t query = 0; query < sizes.size(); ++query) {
        const int64_t size = sizes.data()[query];
        if (size < 0 || size > static_cast<int64_t>(scores.size() - at)) throw nb::value_error("results must fit together");
        nb::object list = nb::steal(PyList_New(static_cast<Py_ssize_t>(size)));
        if (!list.is_valid()) throw nb::python_error();
        for (int64_t i = 0; i < size; ++i, ++at) {
            if (at + kAhead < positions.size()) soon(static_cast<size_t>(positions.data()[at + kAhead]));
            nb::object pair = nb::steal(PyTuple_New(2));
            nb::object id = nb::steal(id_of(static_cast<size_t>(positions.data()[at])));
            // Equal scores follow each other, and may be one object.
            if (at == 0 || !(scores.data()[at] == scores.data()[at - 1])) score = nb::steal(PyFloat_FromDouble(scores.data()[at]));
            if (!pair.is_valid() || !id.is_valid() || !score.is_valid()) throw nb::python_error();
            PyTuple_SET_ITEM(pair.ptr(), 0, id.release().ptr());
            PyTuple_SET_ITEM(pair.ptr(), 1, Py_NewRef(score.ptr()));
            // A text and a number cannot be part of a cycle; the collector also finds this, one by one.
            PyObject_GC_UnTrack(pair.ptr());
            PyList_SET_ITEM(list.ptr(), static_cast<Py_ssize_t>(i), pair.release().ptr());
        }
        lists.append(list);
    }
    return lists;
}

nb::list bm25_lists(nb::list ids, Column<int64_t> sizes, Column<int32_t> positions, Column<double> scores) {
    return lists_of(ids.size(), sizes, positions, scores,
                    [&](size_t n) { return Py_NewRef(PyList_GET_ITEM(ids.ptr(), static_cast<Py_ssize_t>(n))); },
                    [&](size_t n) { prefetch(PyList_GET_ITEM(ids.ptr(), static_cast<Py_ssize_t>(n))); });
}

// The same with the ids in one block of UTF-8, and where each ends.
nb::list bm25_packed_lists(nb::bytes ids, Column<int64_t> ends, Column<int64_t> sizes, Column<int32_t> positions, Column<double> scores) {
    return lists_of(ends.size(), sizes, positions, scores, [&](size_t n) {
        const int64_t begin = n == 0 ? 0 : ends.data()[n - 1], end = ends.data()[n];
        if (begin < 0 || begin > end || end > static_cast<int64_t>(ids.size())) throw nb::value_error("ids must fit together");
        return PyUnicode_DecodeUTF8(ids.c_str() + begin, static_cast<Py_ssize_t>(end - begin), "surrogatepass");
    }, [&](size_t n) { prefetch(ends.data() + n); });
}

// Per term, the largest of the values of its codes; 0 without postings.
nb::object bm25_largest(Column<int64_t> starts, CodeColumn codes, Column<double> values) {
    const Codes known = codes_of(codes);
    const size_t terms = starts.size() - (starts.size() > 0);
    checked_starts(starts, terms, codes.size());
    std::vector<double> most(terms, 0.0);
    nb::gil_scoped_release release;
    for (size_t term = 0; term < terms; ++term)
        for (int64_t i = starts.data()[term]; i < starts.data()[term + 1]; ++i) {
            const size_t code = known[i];
            if (code < values.size()) most[term] = std::max(most[term], values.data()[code]);
        }
    nb::gil_scoped_acquire acquire;
    return array_of(most);
}

}  // namespace

void register_bm25(nb::module_& m) {
    nb::class_<Indexer>(m, "Indexer")
        .def(nb::init<Column<uint32_t>, bool, nb::list, nb::object>(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg().none())
        .def("add_text", &Indexer::add_text)
        .def("add_texts", &Indexer::add_texts)
        .def("add_tokens", &Indexer::add_tokens)
        .def("finish", &Indexer::finish);
    const auto exact = nb::arg().noconvert();
    m.def("bm25_lists", &bm25_lists, nb::arg(), exact, exact, exact);
    m.def("bm25_packed_lists", &bm25_packed_lists, nb::arg(), exact, exact, exact, exact);
    m.def("bm25_search", &bm25_search, exact, exact, exact, exact, nb::arg(), exact, exact, exact, nb::arg(), exact, exact, nb::arg(), nb::arg(), nb::arg());
    m.def("bm25_largest", &bm25_largest, exact, exact, exact);
}

}  // namespace steelyard
