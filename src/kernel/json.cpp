// A JSON document as Python objects, equal to those of json.loads.
#include "json.hpp"

#include <nanobind/nanobind.h>

#include <vector>

#include "judged.hpp"

namespace steelyard {

namespace nb = nanobind;

namespace {

class JsonValues : private JsonCursor {
   public:
    using JsonCursor::JsonCursor;

    // An invalid object if the document is left to Python: an error, a name that occurs twice in one object, or something
    // unusual, such as a number of more than 18 digits.
    nb::object read() {
        nb::object found = value(0, false);
        space();
        return at_ == end_ ? found : nb::object();
    }

   private:
    static constexpr int kDeepest = 64;
    static constexpr size_t kNames = 256, kLongestName = 32, kMostDigits = 18, kReadable = 32;

    JsonText text_;
    std::vector<nb::object> names_{kNames};  // of the objects in lists, which often have the same names

    static nb::object owned(PyObject* made) {
        if (!made) throw nb::python_error();
        return nb::steal(made);
    }

    nb::object value(int depth, bool listed) {
        space();
        if (at_ >= end_ || depth > kDeepest) return {};
        switch (*at_) {
            case '"': return string(text_) ? text() : nb::object();
            case '{': return object(depth, listed);
            case '[': return list(depth);
            case 'n': return word("null", Py_None);
            case 't': return word("true", Py_True);
            case 'f': return word("false", Py_False);
            default: return number();
        }
    }

    nb::object word(std::string_view expected, PyObject* meant) {
        if (static_cast<size_t>(end_ - at_) < expected.size() || std::string_view(at_, expected.size()) != expected) return {};
        at_ += expected.size();
        return nb::borrow(meant);
    }

    nb::object text() const {
        const std::string_view found = text_.text;
        const auto size = static_cast<Py_ssize_t>(found.size());
        if (text_.ascii) {
            nb::object made = owned(PyUnicode_New(size, 127));
            if (size) std::memcpy(PyUnicode_1BYTE_DATA(made.ptr()), found.data(), found.size());
            return made;
        }
        nb::object made = nb::steal(PyUnicode_DecodeUTF8(found.data(), size, "strict"));
        if (!made.is_valid()) {
            if (!PyErr_ExceptionMatches(PyExc_UnicodeDecodeError)) throw nb::python_error();
            PyErr_Clear();
        }
        return made;
    }

    // The text of a name, which is made once for many objects.
    nb::object name() {
        const std::string_view found = text_.text;
        if (found.size() > kLongestName || !text_.ascii) return text();
        nb::object& known = names_[hash_id(found.data(), found.size()) % kNames];
        if (!known.is_valid() || static_cast<size_t>(PyUnicode_GET_LENGTH(known.ptr())) != found.size() ||
            std::memcmp(PyUnicode_1BYTE_DATA(known.ptr()), found.data(), found.size()) != 0)
            known = text();
        return known;
    }

    nb::object object(int depth, bool listed) {
        nb::object made = owned(PyDict_New());
        ++at_;
        if (take('}')) return made;
        for (Py_ssize_t count = 1;; ++count) {
            space();
            if (!string(text_)) return {};
            const nb::object key = listed ? name() : text();
            if (!key.is_valid() || !take(':')) return {};
            const nb::object held = value(depth + 1, false);
            if (!held.is_valid()) return {};
            if (PyDict_SetItem(made.ptr(), key.ptr(), held.ptr()) != 0) throw nb::python_error();
            if (PyDict_GET_SIZE(made.ptr()) != count) return {};
            if (take('}')) return made;
            if (!take(',')) return {};
        }
    }

    nb::object list(int depth) {
        nb::object made = owned(PyList_New(0));
        ++at_;
        if (take(']')) return made;
        for (;;) {
            const nb::object held = value(depth + 1, true);
            if (!held.is_valid()) return {};
            if (PyList_Append(made.ptr(), held.ptr()) != 0) throw nb::python_error();
            if (take(']')) return made;
            if (!take(',')) return {};
        }
    }

    nb::object number() {
        const char* const begin = at_;
        if (!JsonCursor::number()) return {};
        const auto size = static_cast<size_t>(at_ - begin);
        const char* p = begin + (*begin == '-');
        int64_t whole = 0;
        for (; size <= kMostDigits && p < at_ && *p >= '0' && *p <= '9'; ++p) whole = whole * 10 + (*p - '0');
        if (p == at_) return owned(PyLong_FromLongLong(*begin == '-' ? -whole : whole));
        double decimal;
        const bool readable = static_cast<size_t>(end_ - at_) >= kReadable;
        if (std::string_view(begin, size).find_first_of(".eE") == std::string_view::npos ||
            !(readable ? parse_decimal(begin, at_, decimal) : parse_any_decimal(begin, at_, decimal)))
            return {};
        return owned(PyFloat_FromDouble(decimal));
    }
};

// None if the document is left to Python; a document that is null is, too.
nb::object parse_json(nb::bytes document) {
    const nb::object found = JsonValues(document.c_str(), document.c_str() + document.size()).read();
    return found.is_valid() ? found : nb::none();
}

}  // namespace

void register_json(nb::module_& m) { m.def("parse_json", &parse_json); }

}  // namespace steelyard
