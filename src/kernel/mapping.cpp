// Qrels and runs in memory: dicts of numbers, lists of ids, or lists of (id, score) pairs, read without copying them.
#include "answer.hpp"
#include "open_query.hpp"

namespace steelyard {

namespace {

// A Python string, which caches its hash.
struct StringId {
    PyObject* text;

    bool known() const { return true; }
    bool is(const StringId& other) const { return text == other.text || PyUnicode_Compare(text, other.text) == 0; }
    int compare(const StringId& other) const { return PyUnicode_Compare(text, other.text); }
    uint32_t hash() const {
        const Py_hash_t known = reinterpret_cast<PyASCIIObject*>(text)->hash;
        return fold(static_cast<uint64_t>(known != -1 ? known : PyObject_Hash(text)) * kSpread);
    }
};

// The numbers of the judged queries. Most runs have them in the order of the qrels: the query after the last one found
// is tried first, and a dict is built only if that fails.
class QueryIndex {
   public:
    explicit QueryIndex(nb::handle query_ids) : ids_(nb::steal(PySequence_Fast(query_ids.ptr(), "ids must be a sequence"))) {
        if (!ids_.is_valid()) throw nb::python_error();
        for (size_t i = 0; i < size(); ++i)
            if (!PyUnicode_CheckExact(id(i))) throw nb::type_error("ids must be strings");
    }
    size_t size() const { return static_cast<size_t>(PySequence_Fast_GET_SIZE(ids_.ptr())); }

    // -1 for a query without judgments.
    int64_t find(PyObject* query) {
        if (next_ < size() && StringId{query}.is({id(next_)})) return static_cast<int64_t>(next_++);
        if (!places_.is_valid()) {
            places_ = nb::dict();
            for (size_t i = 0; i < size(); ++i) places_[nb::handle(id(i))] = i;
        }
        PyObject* place = PyDict_GetItemWithError(places_.ptr(), query);
        if (!place) return -1;
        next_ = PyLong_AsSize_t(place) + 1;
        return static_cast<int64_t>(next_ - 1);
    }

   private:
    nb::object ids_;
    nb::dict places_ = nb::steal<nb::dict>(nb::handle());
    size_t next_ = 0;

    PyObject* id(size_t i) const { return PySequence_Fast_GET_ITEM(ids_.ptr(), static_cast<Py_ssize_t>(i)); }
};

class MappingScan {
   public:
    MappingScan(nb::handle query_ids, Column<int64_t> starts, nb::handle doc_ids, nb::handle floating, nb::handle integer,
                const Ordering& ordering)
        : index_(query_ids),
          floating_(reinterpret_cast<PyTypeObject*>(floating.ptr())),
          integer_(reinterpret_cast<PyTypeObject*>(integer.ptr())),
          ordering_(ordering),
          tallies_(index_.size()),
          docs_(nb::steal(PySequence_Fast(doc_ids.ptr(), "ids must be a sequence"))) {
        if (!docs_.is_valid()) throw nb::python_error();
        const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(docs_.ptr()));
        ids_.reserve(count);
        hashes_.reserve(count);
        for (size_t i = 0; i < count; ++i) {
            ids_.push_back({PySequence_Fast_GET_ITEM(docs_.ptr(), static_cast<Py_ssize_t>(i))});
            if (!PyUnicode_CheckExact(ids_.back().text)) throw nb::type_error("ids must be strings");
            hashes_.push_back(ids_.back().hash());
        }
        starts_ = checked_starts(starts, tallies_.size(), count);
    }

    // False if the run is not a clean one.
    bool queries(nb::dict run) {
        PyObject *query, *docs;
        for (Py_ssize_t at = 0; PyDict_Next(run.ptr(), &at, &query, &docs);) {
            if (!PyUnicode_CheckExact(query)) return false;
            const int64_t place = index_.find(query);
            if (place >= 0) {
                const auto i = static_cast<size_t>(place);
                open_.open(place, ids_.data(), hashes_.data(), static_cast<size_t>(starts_[i]),
                           static_cast<size_t>(starts_[i + 1]), PyDict_Check(docs));
            } else if (++run_only_ <= kExamples) {
                examples_.append(nb::borrow(query));
            }
            if (!documents(docs)) return false;
        }
        return !(any_scores_ && any_ranked_);
    }

    nb::tuple answer() {
        nb::object repeated = nb::none();
        if (places_.repeated_query >= 0) repeated = nb::make_tuple(places_.repeated_query, nb::borrow(repeated_doc_));
        return nb::make_tuple(arrays_of(tallies_, places_), run_only_, nb::tuple(examples_), nb::make_tuple(), repeated);
    }

   private:
    QueryIndex index_;
    PyTypeObject *floating_, *integer_;
    const Ordering ordering_;
    std::vector<Tally> tallies_;
    nb::object docs_;
    std::vector<StringId> ids_;
    std::vector<uint32_t> hashes_;
    std::vector<int64_t> starts_;
    OpenQuery<StringId> open_;
    Places places_;
    nb::object repeated_doc_;
    size_t run_only_ = 0;
    bool any_scores_ = false, any_ranked_ = false;
    nb::list examples_;
    struct Entry {
        PyObject *id, *value;
    };
    std::vector<Entry> entries_;  // of the dict being read
    static constexpr size_t kAhead = 12;

    static void prefetch(const void* object) {
#ifdef __GNUC__
        __builtin_prefetch(object);
#endif
        (void)object;
    }

    bool add(PyObject* id, double score) {
        if (!PyUnicode_CheckExact(id)) return false;
        const StringId document{id};
        return open_.index < 0 || open_.add(document, document.hash(), score);
    }

    // A finite float, int or numpy number, read without running any Python code.
    bool number(PyObject* value, double& score) const {
        if (PyFloat_Check(value)) {
            score = PyFloat_AS_DOUBLE(value);
        } else if (PyLong_CheckExact(value) || PyType_IsSubtype(Py_TYPE(value), floating_) ||
                   PyType_IsSubtype(Py_TYPE(value), integer_)) {
            score = PyFloat_AsDouble(value);
            if (PyErr_Occurred()) {
                PyErr_Clear();
                return false;
            }
        } else {
            return false;
        }
        return std::isfinite(score);
    }

    bool documents(PyObject* docs) {
        if (PyDict_CheckExact(docs)) return scores(docs);
        if (PyList_CheckExact(docs) || PyTuple_CheckExact(docs)) return ranked(docs);
        if (!PyDict_Check(docs)) return false;
        // A subclass of dict may define its own order of iteration, which a plain copy keeps.
        const nb::object held = nb::borrow(docs);
        const nb::object copy = nb::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyDict_Type), docs));
        if (!copy.is_valid()) throw nb::python_error();
        return scores(copy.ptr());
    }

    bool scores(PyObject* docs) {
        any_scores_ = true;
        entries_.clear();
        PyObject *id, *value;
        for (Py_ssize_t at = 0; PyDict_Next(docs, &at, &id, &value);) entries_.push_back({id, value});
        double score;
        for (size_t i = 0; i < entries_.size(); ++i) {
            // Ids and scores are scattered in memory: they are prefetched a little before they are needed.
            if (i + kAhead < entries_.size()) {
                prefetch(entries_[i + kAhead].id);
                prefetch(entries_[i + kAhead].value);
            }
            if (!PyUnicode_CheckExact(entries_[i].id) || !number(entries_[i].value, score)) return false;
            const StringId document{entries_[i].id};
            if (open_.index >= 0 && !open_.add_unique(document, document.hash(), score)) return false;
        }
        close(ordering_);
        return true;
    }

    // Ids or (id, score) pairs in the order of the list: descending numbers as scores keep it.
    bool ranked(PyObject* docs) {
        any_ranked_ = true;
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(docs);
        const bool pairs = count > 0 && !PyUnicode_Check(PySequence_Fast_GET_ITEM(docs, 0));
        double top = std::numeric_limits<double>::quiet_NaN(), score;
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* id = PySequence_Fast_GET_ITEM(docs, i);
            if (i + static_cast<Py_ssize_t>(kAhead) < count)
                prefetch(PySequence_Fast_GET_ITEM(docs, i + static_cast<Py_ssize_t>(kAhead)));
            if (pairs) {
                if (!(PyTuple_CheckExact(id) || PyList_CheckExact(id)) || PySequence_Fast_GET_SIZE(id) != 2) return false;
                if (!number(PySequence_Fast_GET_ITEM(id, 1), score)) return false;
                top = top >= score ? top : score;
                id = PySequence_Fast_GET_ITEM(id, 0);
            }
            if (!add(id, -static_cast<double>(i))) return false;
        }
        const int64_t query = open_.index;
        close({Ties::stable, ordering_.collapse, false});
        if (query >= 0) tallies_[static_cast<size_t>(query)].top_score = top;
        return true;
    }

    void close(const Ordering& ordering) {
        if (open_.index < 0) return;
        const int64_t query = open_.index;
        const StringId* repeated = open_.close(ordering, tallies_[static_cast<size_t>(query)], places_);
        if (repeated)
            places_.note_repeated(query, [&] {
                repeated_doc_ = nb::borrow(repeated->text);
                return std::string();
            });
    }
};

// The result has the form of a scan of a file; None if the run is not a clean one.
nb::object scan_mapping(nb::dict run, nb::handle query_ids, Column<int64_t> starts, nb::handle doc_ids,
                        nb::type_object floating, nb::type_object integer, int ties, bool collapse, bool single) {
    MappingScan scan(query_ids, starts, doc_ids, floating, integer, ordering_of(ties, collapse, single));
    if (!scan.queries(run)) return nb::none();
    return scan.answer();
}

// Qrels gathered from one list or dict per query.
class Flattened {
   public:
    // False if the value is not a list or tuple of text or a dict of text to finite numbers, if lists and dicts are mixed,
    // or if a list names a document twice.
    bool add(PyObject* value) {
        if (PyDict_CheckExact(value)) {
            PyObject *id, *grade;
            for (Py_ssize_t at = 0; PyDict_Next(value, &at, &id, &grade);) {
                if (!PyFloat_CheckExact(grade) && !PyLong_CheckExact(grade)) return false;
                grades_.push_back(PyFloat_AsDouble(grade));
                if (PyErr_Occurred()) {  // an int that is too large
                    PyErr_Clear();
                    return false;
                }
                if (!PyUnicode_CheckExact(id) || !std::isfinite(grades_.back())) return false;
                docs_.push_back(id);
            }
            any_graded_ = true;
        } else if (PyList_CheckExact(value) || PyTuple_CheckExact(value)) {
            const Py_ssize_t count = PySequence_Fast_GET_SIZE(value);
            for (Py_ssize_t i = 0; i < count; ++i) {
                docs_.push_back(PySequence_Fast_GET_ITEM(value, i));
                if (!PyUnicode_CheckExact(docs_.back())) return false;
            }
            if (!last_differ(static_cast<size_t>(count))) return false;
            any_listed_ = true;
        } else {
            return false;
        }
        starts_.push_back(static_cast<int64_t>(docs_.size()));
        return !(any_graded_ && any_listed_);
    }

    // (document ids, starts, grades or None)
    nb::tuple answer() const {
        nb::object ids = nb::steal(PyList_New(static_cast<Py_ssize_t>(docs_.size())));
        if (!ids.is_valid()) throw nb::python_error();
        for (size_t i = 0; i < docs_.size(); ++i) PyList_SET_ITEM(ids.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(docs_[i]));
        const auto same = [](const auto& cell) { return cell; };
        nb::object grades = nb::none();
        if (any_graded_) grades = column(grades_, same);
        return nb::make_tuple(ids, column(starts_, same), grades);
    }

   private:
    std::vector<PyObject*> docs_;
    std::vector<int64_t> starts_{0};
    std::vector<double> grades_;
    bool any_graded_ = false, any_listed_ = false;
    Slots seen_;

    // Whether the last `count` ids are all different.
    bool last_differ(size_t count) {
        PyObject* const* ids = docs_.data() + (docs_.size() - count);
        const auto is = [&](size_t i, size_t j) { return StringId{ids[i]}.is({ids[j]}); };
        if (count <= 4) {
            for (size_t i = 1; i < count; ++i)
                for (size_t j = 0; j < i; ++j)
                    if (is(i, j)) return false;
            return true;
        }
        seen_.clear(count);
        for (size_t i = 0; i < count; ++i)
            if (seen_.find_or_add(StringId{ids[i]}.hash(), static_cast<uint32_t>(i + 1), [&](uint32_t n) { return is(i, n - 1); }))
                return false;
        return true;
    }
};

nb::object flatten(nb::list values) {
    Flattened flat;
    for (const nb::handle value : values)
        if (!flat.add(value.ptr())) {
            PyErr_Clear();  // a number too large for a double
            return nb::none();
        }
    return flat.answer();
}

}  // namespace

void register_mappings(nb::module_& m) {
    m.def("flatten", &flatten);
    m.def("scan_mapping", &scan_mapping, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(),
          nb::arg(), nb::arg(), nb::arg());
}

}  // namespace steelyard
