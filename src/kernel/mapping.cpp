// Runs in memory: dicts of scores, lists of ids, or lists of (id, score) pairs, read without copying them.
#include "answer.hpp"
#include "open_query.hpp"

namespace steelyard {

namespace {

// A Python string, which caches its hash.
struct StringId {
    PyObject* text;

    bool known() const { return true; }
    bool is(const StringId& other) const { return text == other.text || same_text(text, other.text); }
    int compare(const StringId& other) const { return PyUnicode_Compare(text, other.text); }
    uint32_t hash() const {
        const Py_hash_t known = reinterpret_cast<PyASCIIObject*>(text)->hash;
        return fold(static_cast<uint64_t>(known != -1 ? known : PyObject_Hash(text)) * kSpread);
    }

   private:
    // Strings that were hashed are in their shortest form: equal ones have equal bytes.
    static bool same_text(PyObject* a, PyObject* b) {
        return PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_KIND(a) == PyUnicode_KIND(b) &&
               std::memcmp(PyUnicode_DATA(a), PyUnicode_DATA(b),
                           static_cast<size_t>(PyUnicode_GET_LENGTH(a)) * static_cast<size_t>(PyUnicode_KIND(a))) == 0;
    }
};

// A string may be on two lines of the cache.
void prefetch_text(const PyObject* text) {
    prefetch(text);
    prefetch(reinterpret_cast<const char*>(text) + 48);
}

// Objects are scattered in memory: each is prefetched so many steps before it is needed.
constexpr size_t kAhead = 12;

// The ids of a list, which cannot change while their addresses are in use: a tuple of them. `each` is called with every id.
template <class Each>
nb::object strings_of(nb::handle ids, Each each) {
    nb::object held = nb::steal(PySequence_Tuple(ids.ptr()));
    if (!held.is_valid()) throw nb::python_error();
    PyObject* const* const items = PySequence_Fast_ITEMS(held.ptr());
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(held.ptr()));
    for (size_t i = 0; i < count; ++i) {
        if (i + kAhead < count) prefetch_text(items[i + kAhead]);
        if (!PyUnicode_CheckExact(items[i])) throw nb::type_error("ids must be strings");
        each(items[i]);
    }
    return held;
}

// The entries of a dict, which lie one after another.
struct Entry {
    PyObject *id, *value;
};

void read_entries(PyObject* dict, std::vector<Entry>& entries) {
    entries.clear();
    PyObject *id, *value;
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &id, &value);) entries.push_back({id, value});
}

// Whether a string has a lone surrogate, which no file and no table could hold.
STEELYARD_APART bool has_lone_surrogate(PyObject* text) {
    const auto any = [&](const auto* letters) {
        return std::any_of(letters, letters + PyUnicode_GET_LENGTH(text), [](uint32_t letter) { return letter >> 11 == 0xD800 >> 11; });
    };
    return PyUnicode_KIND(text) == PyUnicode_2BYTE_KIND ? any(PyUnicode_2BYTE_DATA(text)) : any(PyUnicode_4BYTE_DATA(text));
}

// Whether an object is a string that can be an id.
STEELYARD_INLINE bool is_text(PyObject* id) {
    return PyUnicode_CheckExact(id) && (PyUnicode_KIND(id) == PyUnicode_1BYTE_KIND || !has_lone_surrogate(id));
}

// The numbers of the judged queries. Most runs have them in the order of the qrels: the query after the last one found
// is tried first, and a dict is built only if that fails.
class QueryIndex {
   public:
    explicit QueryIndex(nb::handle query_ids) : ids_(strings_of(query_ids, [](PyObject*) {})) {}
    size_t size() const { return static_cast<size_t>(PyTuple_GET_SIZE(ids_.ptr())); }

    // -1 for a query without judgments. `next` is the query to try first.
    int64_t find(PyObject* query, size_t& next) {
        if (next < size() && PyUnicode_Compare(query, id(next)) == 0) return static_cast<int64_t>(next++);
        if (!places_.is_valid()) {
            places_ = nb::dict();
            for (size_t i = 0; i < size(); ++i) places_[nb::handle(id(i))] = i;
        }
        PyObject* place = PyDict_GetItemWithError(places_.ptr(), query);
        if (!place) return -1;
        next = PyLong_AsSize_t(place) + 1;
        return static_cast<int64_t>(next - 1);
    }

   private:
    nb::object ids_;
    nb::dict places_ = nb::steal<nb::dict>(nb::handle());

    PyObject* id(size_t i) const { return PyTuple_GET_ITEM(ids_.ptr(), static_cast<Py_ssize_t>(i)); }
};

// JudgedDocs for runs in memory, kept from run to run: the ids, their hashes, and for each query with many documents a
// table of them, which is made when the first run has the query.
class JudgedStrings {
   public:
    JudgedStrings(nb::handle query_ids, Column<int64_t> starts, nb::handle doc_ids) : index(query_ids) {
        docs_ = strings_of(doc_ids, [this](PyObject* id) {
            ids_.push_back({id});
            hashes_.push_back(ids_.back().hash());
        });
        starts_ = checked_starts(starts, index.size(), ids_.size());
        tables_.resize(index.size());
    }
    JudgedStrings(const JudgedStrings&) = delete;

    QueryIndex index;

    const StringId* ids() const { return ids_.data(); }
    const uint32_t* hashes() const { return hashes_.data(); }
    size_t begin(size_t query) const { return static_cast<size_t>(starts_[query]); }
    size_t end(size_t query) const { return static_cast<size_t>(starts_[query + 1]); }

    struct Slot {
        uint32_t hash, number;  // number: from 1 among the documents of the query; 0 if the slot is free
    };

    // The table of a query, a power of two of slots of which most are free. Valid until the next call.
    const std::vector<Slot>& table(size_t query) {
        const size_t count = end(query) - begin(query);
        if (count < kMany) return filled(few_, query, count);
        return tables_[query].empty() ? filled(tables_[query], query, count) : tables_[query];
    }

   private:
    nb::object docs_;
    std::vector<StringId> ids_;
    std::vector<uint32_t> hashes_;
    std::vector<int64_t> starts_;
    std::vector<std::vector<Slot>> tables_;
    std::vector<Slot> few_;  // the table of a query with few documents, which is not kept
    static constexpr size_t kMany = 64, kSlots = 4;

    const std::vector<Slot>& filled(std::vector<Slot>& slots, size_t query, size_t count) {
        size_t size = 16;
        while (size < kSlots * count) size *= 2;
        slots.assign(size, {0, 0});
        for (size_t i = 0; i < count; ++i) {
            const uint32_t hash = hashes_[begin(query) + i];
            size_t at = hash & (size - 1);
            while (slots[at].number != 0) at = (at + 1) & (size - 1);
            slots[at] = {hash, static_cast<uint32_t>(i + 1)};
        }
        return slots;
    }
};

class MappingScan {
   public:
    MappingScan(JudgedStrings& judged, nb::handle floating, nb::handle integer, const Ordering& ordering)
        : judged_(judged),
          floating_(reinterpret_cast<PyTypeObject*>(floating.ptr())),
          integer_(reinterpret_cast<PyTypeObject*>(integer.ptr())),
          ordering_(ordering),
          tallies_(judged.index.size()) {}

    // False if the run is not a clean one.
    bool queries(nb::dict run) {
        PyObject *query, *docs;
        for (Py_ssize_t at = 0; PyDict_Next(run.ptr(), &at, &query, &docs);) {
            if (!is_text(query)) return false;
            const int64_t place = judged_.index.find(query, next_);
            if (place < 0 && ++run_only_ <= kExamples) examples_.append(nb::borrow(query));
            if (!documents(docs, place)) return false;
        }
        return !(any_scores_ && any_ranked_);
    }

    nb::tuple answer() {
        nb::object repeated = nb::none();
        if (places_.repeated_query >= 0) repeated = nb::make_tuple(places_.repeated_query, nb::borrow(repeated_doc_));
        return nb::make_tuple(arrays_of(tallies_, places_), run_only_, nb::tuple(examples_), nb::make_tuple(), repeated);
    }

   private:
    JudgedStrings& judged_;
    PyTypeObject *floating_, *integer_;
    const Ordering ordering_;
    std::vector<Tally> tallies_;
    size_t next_ = 0;
    OpenQuery<StringId> open_;
    Places places_;
    nb::object repeated_doc_;
    size_t run_only_ = 0;
    bool any_scores_ = false, any_ranked_ = false;
    nb::list examples_;
    std::vector<Entry> entries_;     // of the dict being read
    std::vector<uint32_t> hashes_;   // of its ids
    struct Candidate {
        uint32_t row, slot;
    };
    std::vector<Candidate> candidates_;  // rows, and slots with the same hash

    // A finite float, int or numpy number, read without running any Python code.
    bool number(PyObject* value, double& score) const {
        if (PyFloat_Check(value)) return std::isfinite(score = PyFloat_AS_DOUBLE(value));
        PyTypeObject* const type = Py_TYPE(value);
        if (!PyLong_CheckExact(value) && !PyType_IsSubtype(type, floating_) && !PyType_IsSubtype(type, integer_)) return false;
        score = PyFloat_AsDouble(value);
        if (!PyErr_Occurred()) return std::isfinite(score);
        PyErr_Clear();
        return false;
    }

    bool documents(PyObject* docs, int64_t query) {
        if (PyDict_CheckExact(docs)) return scores(docs, query);
        if (PyList_CheckExact(docs) || PyTuple_CheckExact(docs)) return ranked(docs, query);
        if (!PyDict_Check(docs)) return false;
        // A subclass of dict may define its own order of iteration, which a plain copy keeps.
        const nb::object held = nb::borrow(docs);
        const nb::object copy = nb::steal(PyObject_CallOneArg(reinterpret_cast<PyObject*>(&PyDict_Type), docs));
        if (!copy.is_valid()) throw nb::python_error();
        return scores(copy.ptr(), query);
    }

    // The keys of a dict cannot repeat, so that only judged documents are looked up.
    STEELYARD_HOT bool scores(PyObject* docs, int64_t query) {
        any_scores_ = true;
        read_entries(docs, entries_);
        const size_t rows = entries_.size();
        if (rows > kMostRows) return false;
        open_.open_unique(query, rows);
        hashes_.resize(rows);
        const std::vector<JudgedStrings::Slot>* const table = query < 0 ? nullptr : &judged_.table(static_cast<size_t>(query));
        const JudgedStrings::Slot* const slots = table ? table->data() : nullptr;
        const size_t mask = table ? table->size() - 1 : 0;
        // Local pointers: those of the vectors would be loaded again after every store.
        const Entry* const entries = entries_.data();
        StringId* const ids = open_.ids();
        double* const scores = open_.scores();
        uint32_t* const hashes = hashes_.data();
        for (size_t i = 0; i < rows; ++i) {
            if (i + kAhead < rows) {
                prefetch_text(entries[i + kAhead].id);
                prefetch(entries[i + kAhead].value);
            }
            if (!is_text(entries[i].id) || !number(entries[i].value, scores[i])) return false;
            ids[i] = {entries[i].id};
            hashes[i] = ids[i].hash();
            prefetch(slots + (hashes[i] & mask));
        }
        if (!table) return true;
        find_judged(slots, mask, static_cast<size_t>(query), rows);
        close(ordering_);
        return true;
    }

    STEELYARD_HOT void find_judged(const JudgedStrings::Slot* slots, size_t mask, size_t query, size_t rows) {
        const size_t begin = judged_.begin(query);
        const StringId* const ids = judged_.ids() + begin;
        candidates_.resize(rows);
        size_t count = 0;
        for (size_t i = 0; i < rows; ++i) {
            const uint32_t hash = hashes_[i];
            size_t at = hash & mask;
            // Nearly every lookup ends at its first slot, so that the processor predicts it.
            while ((slots[at].number != 0) & (slots[at].hash != hash)) at = (at + 1) & mask;
            candidates_[count] = {static_cast<uint32_t>(i), static_cast<uint32_t>(at)};
            count += slots[at].number != 0;
            prefetch(ids + slots[at].number);
        }
        for (size_t i = 0; i < count; ++i) {
            if (i + kAhead < count) prefetch_text(ids[slots[candidates_[i + kAhead].slot].number - 1].text);
            const uint32_t row = candidates_[i].row;
            size_t at = candidates_[i].slot;
            // Another document may have the same hash.
            while (slots[at].number != 0 && !ids[slots[at].number - 1].is(open_.ids()[row])) at = (at + 1) & mask;
            if (slots[at].number != 0) open_.add_found(row, static_cast<int64_t>(begin + slots[at].number - 1));
        }
    }

    // Ids or (id, score) pairs in the order of the list: descending numbers as scores keep it.
    STEELYARD_HOT bool ranked(PyObject* docs, int64_t query) {
        any_ranked_ = true;
        if (query >= 0) {
            const auto i = static_cast<size_t>(query);
            open_.open(query, judged_.ids(), judged_.hashes(), judged_.begin(i), judged_.end(i));
        }
        PyObject* const* const items = PySequence_Fast_ITEMS(docs);
        const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(docs));
        const bool pairs = count > 0 && !PyUnicode_Check(items[0]);
        double top = std::numeric_limits<double>::quiet_NaN(), score;
        for (size_t i = 0; i < std::min(count, kAhead); ++i) prefetch_text(items[i]);
        for (size_t i = 0; i < count; ++i) {
            PyObject* id = items[i];
            if (i + kAhead < count) prefetch_text(items[i + kAhead]);
            if (pairs) {
                if (!(PyTuple_CheckExact(id) || PyList_CheckExact(id)) || PySequence_Fast_GET_SIZE(id) != 2) return false;
                if (!number(PySequence_Fast_GET_ITEM(id, 1), score)) return false;
                top = top >= score ? top : score;
                id = PySequence_Fast_GET_ITEM(id, 0);
            }
            if (!is_text(id)) return false;
            const StringId document{id};
            if (query >= 0 && !open_.add(document, document.hash(), -static_cast<double>(i))) return false;
        }
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
nb::object scan_mapping(nb::dict run, JudgedStrings& judged, nb::type_object floating, nb::type_object integer, int ties,
                        bool collapse, bool single) {
    MappingScan scan(judged, floating, integer, ordering_of(ties, collapse, single));
    if (!scan.queries(run)) return nb::none();
    return scan.answer();
}

// Qrels with a dict of finite numbers, or a list of different ids, for every query: (document ids, starts, grades or None).
// None if a value has another form.
nb::object flatten(nb::list values) {
    constexpr size_t kFew = 8;
    nb::list docs;
    std::vector<int64_t> starts{0};
    std::vector<double> grades;
    std::vector<Entry> entries;
    const bool graded = values.size() > 0 && PyDict_CheckExact(PyList_GET_ITEM(values.ptr(), 0));
    for (const nb::handle one : values) {
        PyObject* const value = one.ptr();
        entries.clear();
        if (graded && PyDict_CheckExact(value))
            read_entries(value, entries);
        else if (!graded && (PyList_CheckExact(value) || PyTuple_CheckExact(value)))
            for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(value); ++i) entries.push_back({PySequence_Fast_GET_ITEM(value, i), nullptr});
        else
            return nb::none();
        for (size_t i = 0; i < entries.size(); ++i) {
            if (i + kAhead < entries.size()) prefetch_text(entries[i + kAhead].id);
            const auto [id, grade] = entries[i];
            if (!is_text(id)) return nb::none();
            for (size_t j = 0; !graded && entries.size() <= kFew && j < i; ++j)
                if (StringId{id}.is({entries[j].id})) return nb::none();
            docs.append(nb::handle(id));
            if (!graded) continue;
            if (!PyFloat_CheckExact(grade) && !PyLong_CheckExact(grade)) return nb::none();
            grades.push_back(PyFloat_AsDouble(grade));
            if (!std::isfinite(grades.back()) || PyErr_Occurred()) {  // an int may be too large
                PyErr_Clear();
                return nb::none();
            }
        }
        if (!graded && entries.size() > kFew) {
            const nb::object different = nb::steal(PySet_New(value));
            if (!different.is_valid()) throw nb::python_error();
            if (static_cast<size_t>(PySet_GET_SIZE(different.ptr())) < entries.size()) return nb::none();
        }
        starts.push_back(static_cast<int64_t>(docs.size()));
    }
    return nb::make_tuple(docs, bytes_of(starts), graded ? nb::object(bytes_of(grades)) : nb::none());
}

}  // namespace

void register_mappings(nb::module_& m) {
    m.def("flatten", &flatten);
    nb::class_<JudgedStrings>(m, "JudgedStrings")
        .def(nb::init<nb::handle, Column<int64_t>, nb::handle>(), nb::arg(), nb::arg().noconvert(), nb::arg());
    m.def("scan_mapping", &scan_mapping);
}

}  // namespace steelyard
