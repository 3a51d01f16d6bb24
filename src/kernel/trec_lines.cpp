// The lines of a TREC run, from the columns of a frame.
#include <charconv>
#include <cmath>

#include "answer.hpp"
#include "arrow.hpp"

namespace steelyard {

namespace {

// A field ends at white space, and a zero byte makes a file binary.
bool fits(const Id& id) {
    for (uint32_t i = 0; i < id.size; ++i) {
        const char c = id.text[i];
        if (c == ' ' || (c >= '\t' && c <= '\r') || c == '\0') return false;
    }
    return id.size > 0;
}

// '#' starts a comment, and a file that starts with the byte order mark loses it.
bool fits_first(const Id& id) {
    return fits(id) && id.text[0] != '#' && std::memcmp(id.text, "\xef\xbb\xbf", std::min(id.size, 3u)) != 0;
}

char* put(char* to, std::string_view text) {
    std::memcpy(to, text.data(), text.size());
    return to + text.size();
}

// The shortest decimal that is read as this number. Null for numbers that are usually written with an exponent.
char* put_score(char* to, char* end, double score) {
#ifdef __cpp_lib_to_chars
    if (score != 0 && !(std::abs(score) >= 1e-4 && std::abs(score) < 1e15)) return nullptr;
    char* const begin = to;
    to = std::to_chars(to, end, score, std::chars_format::fixed).ptr;
    return std::find(begin, to, '.') == to ? put(to, ".0") : to;
#else
    return nullptr;
#endif
}

// The lines of a run, "query Q0 document rank score tag"; None if they are left to polars.
nb::object trec_lines(nb::handle queries, nb::handle docs, Column<int64_t> ranks, Column<double> scores, nb::bytes tag) {
    constexpr size_t kNumber = 24;  // the most characters of a rank or a score
    const TextColumn query_column(queries), doc_column(docs);
    if (!query_column.usable() || !doc_column.usable()) return nb::none();
    const size_t rows = query_column.size();
    if (doc_column.size() != rows || ranks.size() != rows || scores.size() != rows)
        throw nb::value_error("columns must have the same number of rows");
    const std::string_view ending(tag.c_str(), tag.size());
    size_t most = 0;
    TextColumn::Cursor query(query_column), doc(doc_column);
    for (size_t i = 0; i < rows; ++i) most += query.next().size + doc.next().size;
    most += rows * (2 * kNumber + ending.size() + 8);
    PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(most));
    if (!made) throw nb::python_error();
    char* const begin = PyBytes_AS_STRING(made);
    char* to = begin;
    {
        nb::gil_scoped_release released;
        query.seek(0);
        doc.seek(0);
        Id last{nullptr, 0};
        for (size_t i = 0; to && i < rows; ++i) {
            const Id id = query.next(), document = doc.next();
            const bool same_query = last.text && id.is(last);
            last = id;
            if (!(same_query || fits_first(id)) || !fits(document)) {
                to = nullptr;
                break;
            }
            to = put(put(put(put(to, {id.text, id.size}), " Q0 "), {document.text, document.size}), " ");
            to = put(std::to_chars(to, to + kNumber, ranks.data()[i]).ptr, " ");
            to = put_score(to, to + kNumber, scores.data()[i]);
            if (to) to = put(put(put(to, " "), ending), "\n");
        }
    }
    if (!to) {
        Py_DECREF(made);
        return nb::none();
    }
    if (_PyBytes_Resize(&made, to - begin) != 0) throw nb::python_error();
    return nb::steal(made);
}

}  // namespace

void register_trec_lines(nb::module_& m) {
    m.def("trec_lines", &trec_lines, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg().noconvert(), nb::arg());
}

}  // namespace steelyard
