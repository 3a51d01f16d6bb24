// The judged documents as a scan takes them from Python, and the result of a scan as Python receives it.
#pragma once

#include <limits>

#include "answer.hpp"
#include "arrow.hpp"
#include "scan.hpp"

namespace steelyard {

// JudgedDocs for the scan. The ids point to the UTF-8 bytes of Python's strings, which tuples keep alive, or into columns of
// a frame.
class Judged {
   public:
    static std::unique_ptr<Judged> of_columns(nb::handle query_ids, Column<int64_t> starts, nb::handle doc_ids) {
        std::unique_ptr<Judged> made(new Judged());
        made->texts_.queries = made->ids_of_column(query_ids);
        made->texts_.docs = made->ids_of_column(doc_ids);
        made->texts_.starts = checked_starts(starts, made->texts_.queries.size(), made->texts_.docs.size());
        made->texts_.index();
        return made;
    }
    Judged(nb::sequence query_ids, Column<int64_t> starts, nb::sequence doc_ids)
        : query_ids_(kept(query_ids)), doc_ids_(kept(doc_ids)) {
        texts_.queries = ids_of(query_ids_);
        texts_.docs = ids_of(doc_ids_);
        texts_.starts = checked_starts(starts, texts_.queries.size(), texts_.docs.size());
        texts_.index();
    }
    Judged(const Judged&) = delete;
    Judged& operator=(const Judged&) = delete;
    const JudgedTexts& texts() const { return texts_; }

   private:
    nb::object query_ids_, doc_ids_;
    std::vector<std::unique_ptr<TextColumn>> columns_;
    JudgedTexts texts_;

    Judged() = default;
    std::vector<Id> ids_of_column(nb::handle ids) {
        columns_.push_back(std::make_unique<TextColumn>(ids));
        const TextColumn& column = *columns_.back();
        if (!column.usable()) throw nb::value_error("ids must be text without nulls");
        std::vector<Id> found(column.size());
        TextColumn::Cursor cursor(column);
        for (Id& id : found) id = cursor.next();
        return found;
    }
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

// The first `most` of some texts.
inline nb::list texts_of(const Distinct& texts, size_t most = std::numeric_limits<size_t>::max()) {
    nb::list found;
    for (size_t i = 0; i < std::min(texts.count(), most); ++i) found.append(text_of(texts[i]));
    return found;
}

// (arrays, count and examples of queries without judgments, tags, repeated (query, document)); the number of the Outcome
// if it is not clean.
inline nb::object answer(Shared& shared, RunScan& scan) {
    if (scan.outcome != Outcome::clean) return nb::int_(static_cast<int>(scan.outcome));
    nb::object repeated = nb::none();
    if (scan.places.repeated_query >= 0)
        repeated = nb::make_tuple(scan.places.repeated_query, text_of(scan.places.repeated_doc));
    return nb::make_tuple(arrays_of(shared.tallies, scan.places), scan.run_only.count(),
                          nb::tuple(texts_of(scan.run_only, kExamples)), nb::tuple(texts_of(scan.tags)), repeated);
}

}  // namespace steelyard
