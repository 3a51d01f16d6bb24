// The judged documents as a scan takes them from Python, and the result of a scan as Python receives it.
#pragma once

#include "answer.hpp"
#include "scan.hpp"

namespace steelyard {

// JudgedDocs for the scan. The ids point to the UTF-8 bytes of Python's strings, which tuples keep alive.
class Judged {
   public:
    Judged(nb::sequence query_ids, Column<int64_t> starts, nb::sequence doc_ids)
        : query_ids_(kept(query_ids)), doc_ids_(kept(doc_ids)) {
        texts_.queries = ids_of(query_ids_);
        texts_.docs = ids_of(doc_ids_);
        texts_.starts = checked_starts(starts, texts_.queries.size(), texts_.docs.size());
        texts_.index();
    }
    const JudgedTexts& texts() const { return texts_; }

   private:
    nb::object query_ids_, doc_ids_;
    JudgedTexts texts_;

    static nb::object kept(nb::handle ids) {
        PyObject* items = PySequence_Tuple(ids.ptr());
        if (!items) throw nb::python_error();
        return nb::steal(items);
    }
    static std::vector<Id> ids_of(nb::handle sequence) {
        const auto count = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence.ptr()));
        PyObject** items = PySequence_Fast_ITEMS(sequence.ptr());
        std::vector<Id> ids(count);
        for (size_t i = 0; i < count; ++i) {
            Py_ssize_t size = 0;
            const char* text = PyUnicode_AsUTF8AndSize(items[i], &size);
            if (!text && !PyErr_ExceptionMatches(PyExc_UnicodeError)) throw nb::python_error();
            if (!text) PyErr_Clear();
            ids[i] = {text, static_cast<uint32_t>(size)};
        }
        return ids;
    }
};

inline nb::str text_of(const std::string& utf8) { return nb::str(utf8.data(), utf8.size()); }

// (arrays, count and examples of queries without judgments, tags, repeated (query, document)); the number of the Outcome
// if it is not clean.
inline nb::object answer(Shared& shared, RunScan& scan) {
    if (scan.outcome != Outcome::clean) return nb::int_(static_cast<int>(scan.outcome));
    nb::list examples;
    for (size_t i = 0; i < std::min(scan.run_only.count(), kExamples); ++i) examples.append(text_of(scan.run_only[i]));
    nb::list tags;
    for (size_t i = 0; i < scan.tags.count(); ++i) tags.append(text_of(scan.tags[i]));
    nb::object repeated = nb::none();
    if (scan.places.repeated_query >= 0)
        repeated = nb::make_tuple(scan.places.repeated_query, text_of(scan.places.repeated_doc));
    return nb::make_tuple(arrays_of(shared.tallies, scan.places), scan.run_only.count(), nb::tuple(examples), nb::tuple(tags),
                          repeated);
}

}  // namespace steelyard
