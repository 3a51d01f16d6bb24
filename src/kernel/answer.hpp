// Buffers as Python passes them, and results as it receives them: arrays as bytes, which numpy views.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <string>
#include <vector>

#include "keyed.hpp"
#include "rank.hpp"

namespace steelyard {

namespace nb = nanobind;

constexpr size_t kExamples = 3;  // steelyard.alignment.hits.SHOWN_RUN_ONLY

// A buffer of bytes that is kept alive while it is read.
class View {
   public:
    explicit View(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
    }
    ~View() { PyBuffer_Release(&view_); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    const char* begin() const { return static_cast<const char*>(view_.buf); }
    const char* end() const { return begin() + view_.len; }

   private:
    Py_buffer view_;
};

// The tie rules have the numbers of steelyard.native.
inline Ordering ordering_of(int ties, bool collapse, bool single) {
    if (ties < 0 || ties > static_cast<int>(Ties::stable)) throw nb::value_error("there is no tie rule of this number");
    return {static_cast<Ties>(ties), collapse, single};
}

// An array as it is passed: of this type and without gaps.
template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// The borders of `groups` groups of `items` items.
inline std::vector<int64_t> checked_starts(const Column<int64_t>& starts, size_t groups, size_t items) {
    std::vector<int64_t> found(starts.data(), starts.data() + starts.size());
    if (found.size() != groups + 1 || found.front() != 0 || found.back() != static_cast<int64_t>(items) ||
        !std::is_sorted(found.begin(), found.end()))
        throw nb::value_error("starts must ascend from 0 to the number of items and have one more entry than there are groups");
    return found;
}

template <class T>
nb::bytes bytes_of(const std::vector<T>& values) {
    return nb::bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

// A bytes object that is filled from its start.
class Filled {
   public:
    explicit Filled(size_t size) : bytes_(nb::steal(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)))) {
        if (!bytes_.is_valid()) throw nb::python_error();
        to_ = PyBytes_AS_STRING(bytes_.ptr());
    }
    void add(const void* from, size_t size) {
        if (size) std::memcpy(to_, from, size);
        to_ += size;
    }
    const nb::object& bytes() const { return bytes_; }

   private:
    nb::object bytes_;
    char* to_;
};

template <class Row, class Cell>
nb::object column(const std::vector<Row>& rows, Cell Row::*member) {
    Filled cells(rows.size() * sizeof(Cell));
    for (const Row& row : rows) cells.add(&(row.*member), sizeof(Cell));
    return cells.bytes();
}

// The ten arrays of Hits, in their order. The blocks of the queries are sorted by the number of the query.
inline nb::tuple arrays_of(const std::vector<Tally>& tallies, Places& places) {
    sort_by_query(places.hits);
    sort_by_query(places.repeats);
    return nb::make_tuple(column(tallies, &Tally::retrieved), column(tallies, &Tally::answered), column(tallies, &Tally::top_score),
                          column(places.hits, &Hit::query), column(places.hits, &Hit::doc), column(places.hits, &Hit::rank),
                          column(places.hits, &Hit::tie_first), column(places.hits, &Hit::tie_size),
                          column(places.repeats, &RepeatPlace::query), column(places.repeats, &RepeatPlace::rank));
}

}  // namespace steelyard
