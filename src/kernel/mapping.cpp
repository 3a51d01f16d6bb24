// Runs in memory: dicts of scores, or lists of ids or (id, score) pairs, read where they stand.
#include "answer.hpp"
#include "open_query.hpp"

namespace steelyard {

namespace {

// A Python string; its own hash is kept in it.
struct StringId {
    PyObject* text;

    bool known() const { return true; }
    bool is(const StringId& other) const { return text == other.text || PyUnicode_Compare(text, other.text) == 0; }
    int compare(const StringId& other) const { return PyUnicode_Compare(text, other.text); }
    uint32_t hash() const { return fold(static_cast<uint64_t>(PyObject_Hash(text)) * kSpread); }
};

class MappingScan {
   public:
    MappingScan(nb::dict index, nb::handle starts, nb::handle doc_ids, nb::handle floating, nb::handle integer,
                const Ordering& ordering)
        : index_(index),
          floating_(reinterpret_cast<PyTypeObject*>(floating.ptr())),
          integer_(reinterpret_cast<PyTypeObject*>(integer.ptr())),
          ordering_(ordering),
          tallies_(nb::len(index)),
          docs_(nb::steal(PySequence_Fast(doc_ids.ptr(), "ids must be a sequence"))) {
        if (!docs_.is_valid()) throw nb::python_error();
        const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(docs_.ptr()));
        for (size_t i = 0; i < count; ++i) {
            ids_.push_back({PySequence_Fast_GET_ITEM(docs_.ptr(), static_cast<Py_ssize_t>(i))});
            if (!PyUnicode_CheckExact(ids_.back().text)) throw nb::type_error("ids must be strings");
            hashes_.push_back(ids_.back().hash());
        }
        Py_buffer view;
        if (PyObject_GetBuffer(starts.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
        starts_.resize(static_cast<size_t>(view.len) / sizeof(int64_t));
        std::memcpy(starts_.data(), view.buf, starts_.size() * sizeof(int64_t));
        PyBuffer_Release(&view);
        if (starts_.size() != tallies_.size() + 1 || starts_.front() != 0 || starts_.back() != static_cast<int64_t>(count) ||
            !std::is_sorted(starts_.begin(), starts_.end()))
            throw nb::value_error("starts must rise from 0 to the number of documents, one more than there are queries");
    }

    // False where something is not a clean run.
    bool queries(nb::dict run) {
        PyObject *query, *docs;
        for (Py_ssize_t at = 0; PyDict_Next(run.ptr(), &at, &query, &docs);) {
            if (!PyUnicode_CheckExact(query)) return false;
            PyObject* place = PyDict_GetItemWithError(index_.ptr(), query);
            if (place) {
                const auto i = PyLong_AsSize_t(place);
                open_.open(static_cast<int64_t>(i), ids_.data(), hashes_.data(), static_cast<size_t>(starts_[i]),
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
        return nb::make_tuple(arrays_of(tallies_, places_), run_only_, nb::tuple(examples_), nb::none(), repeated);
    }

   private:
    nb::dict index_;
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

    // A finite float, int or numpy number, in ways that run nobody's Python code.
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
        // A dict of another kind may keep an order of its own, which a plain one takes over.
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
            // Ids and scores lie scattered: asked for a little before they are needed, they come together.
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

    // Ids, or (id, score) pairs, in an order of their own: numbers that fall row by row keep it.
    bool ranked(PyObject* docs) {
        any_ranked_ = true;
        const Py_ssize_t count = PySequence_Fast_GET_SIZE(docs);
        const bool pairs = count > 0 && !PyUnicode_Check(PySequence_Fast_GET_ITEM(docs, 0));
        double top = std::numeric_limits<double>::quiet_NaN(), score;
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* id = PySequence_Fast_GET_ITEM(docs, i);
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

// As a scan of a file answers; None where the run is not a clean one.
nb::object scan_mapping(nb::dict run, nb::dict index, nb::handle starts, nb::handle doc_ids, nb::handle floating,
                        nb::handle integer, int ties, bool collapse, bool single) {
    MappingScan scan(index, starts, doc_ids, floating, integer, ordering_of(ties, collapse, single));
    if (!scan.queries(run)) return nb::none();
    return scan.answer();
}

}  // namespace

void register_mappings(nb::module_& m) { m.def("scan_mapping", &scan_mapping); }

}  // namespace steelyard
