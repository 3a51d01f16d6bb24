// Files for Python: the judged documents, a scan of a buffer, and a scan that is fed piece by piece.
#include "answer.hpp"
#include "scan.hpp"

namespace steelyard {

namespace {

// A buffer of bytes, held while it is read.
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

// JudgedDocs for the scan: the ids are Python's own bytes, which the lists keep alive.
class Judged {
   public:
    Judged(nb::sequence query_ids, nb::handle starts, nb::sequence doc_ids)
        : query_ids_(fast(query_ids)), doc_ids_(fast(doc_ids)) {
        texts_.queries = ids_of(query_ids_);
        texts_.docs = ids_of(doc_ids_);
        const View view(starts);
        texts_.starts.resize(static_cast<size_t>(view.end() - view.begin()) / sizeof(int64_t));
        std::memcpy(texts_.starts.data(), view.begin(), texts_.starts.size() * sizeof(int64_t));
        if (texts_.starts.size() != texts_.queries.size() + 1 || texts_.starts.front() != 0 ||
            texts_.starts.back() != static_cast<int64_t>(texts_.docs.size()) ||
            !std::is_sorted(texts_.starts.begin(), texts_.starts.end()))
            throw nb::value_error("starts must rise from 0 to the number of documents, one more than there are queries");
        texts_.index();
    }
    const JudgedTexts& texts() const { return texts_; }

   private:
    nb::object query_ids_, doc_ids_;
    JudgedTexts texts_;

    static nb::object fast(nb::handle ids) {
        PyObject* items = PySequence_Fast(ids.ptr(), "ids must be a sequence");
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

nb::str text_of(const std::string& utf8) { return nb::str(utf8.data(), utf8.size()); }

// (arrays, run-only count, run-only examples, tag, repeated (query, document)); an Outcome's number where not clean.
nb::object answer(Shared& shared, RunScan& scan) {
    if (scan.outcome != Outcome::clean) return nb::int_(static_cast<int>(scan.outcome));
    nb::list examples;
    for (size_t i = 0; i < std::min(scan.run_only.count(), kExamples); ++i) examples.append(text_of(scan.run_only[i]));
    nb::object tag = nb::none(), repeated = nb::none();
    if (!scan.tag.empty()) tag = text_of(scan.tag);
    if (scan.places.repeated_query >= 0)
        repeated = nb::make_tuple(scan.places.repeated_query, text_of(scan.places.repeated_doc));
    return nb::make_tuple(arrays_of(shared.tallies, scan.places), scan.run_only.count(), nb::tuple(examples), tag, repeated);
}

nb::object scan(nb::handle buffer, const Judged& judged, int ties, bool collapse, bool single, unsigned threads, size_t piece) {
    const View view(buffer);
    Shared shared(judged.texts(), ordering_of(ties, collapse, single));
    RunScan result;
    {
        nb::gil_scoped_release released;
        result = scan_pieces(shared, view.begin(), view.end(), threads, piece);
    }
    return answer(shared, result);
}

nb::object scan_any_order(nb::handle buffer, const Judged& judged, int ties, bool collapse, bool single) {
    const View view(buffer);
    Shared shared(judged.texts(), ordering_of(ties, collapse, single));
    RunScan result;
    {
        nb::gil_scoped_release released;
        result = scan_interleaved(shared, view.begin(), view.end());
    }
    return answer(shared, result);
}

// A run that comes in pieces, as from a decompressor: memory holds one piece and one query.
class Stream {
   public:
    Stream(nb::object judged, int ties, bool collapse, bool single)
        : judged_(judged),
          shared_(nb::cast<const Judged&>(judged).texts(), ordering_of(ties, collapse, single)),
          scan_(shared_) {
        result_.outcome = Outcome::clean;
    }

    // Reads the whole lines of a piece, all of it if it is the last; gives how many bytes that was. The rest
    // is to come again before the next piece. Reads nothing more once the run proved odd or interleaved.
    size_t feed(nb::handle buffer, bool last) {
        const View view(buffer);
        const char *begin = view.begin(), *end = view.end();
        nb::gil_scoped_release released;
        while (!last && end > begin && end[-1] != '\n') --end;
        if (begin == end || result_.outcome != Outcome::clean) return 0;
        if (!started_) {
            started_ = true;
            result_.tag = tag_of(begin, end);
            if (!starts_cleanly(begin, end)) result_.outcome = Outcome::odd;
        }
        if (result_.outcome == Outcome::clean) result_.outcome = scan_.lines(begin, end);
        scan_.keep_ids();
        return static_cast<size_t>(end - begin);
    }

    bool clean() const { return result_.outcome == Outcome::clean; }

    nb::object finish() {
        if (!started_) result_.outcome = Outcome::odd;
        scan_.finish();
        result_.absorb(scan_);
        return answer(shared_, result_);
    }

   private:
    nb::object judged_;
    Shared shared_;
    Scan scan_;
    RunScan result_;
    bool started_ = false;
};

}  // namespace

void register_files(nb::module_& m) {
    nb::class_<Judged>(m, "Judged").def(nb::init<nb::sequence, nb::handle, nb::sequence>());
    nb::class_<Stream>(m, "Stream")
        .def(nb::init<nb::object, int, bool, bool>())
        .def("feed", &Stream::feed)
        .def("clean", &Stream::clean)
        .def("finish", &Stream::finish);
    m.def("scan", &scan);
    m.def("scan_any_order", &scan_any_order);
}

}  // namespace steelyard
