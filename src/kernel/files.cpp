// The readers of files that Python calls: qrels, a run, a run that is fed piece by piece, and a run that is read ahead.
#include <nanobind/stl/unique_ptr.h>

#include <condition_variable>
#include <mutex>

#include "qrels.hpp"
#include "run_answer.hpp"

namespace steelyard {

namespace {

nb::list texts_of(const std::vector<Id>& ids) {
    nb::list texts;
    for (const Id& id : ids) texts.append(nb::str(id.text, id.size));
    return texts;
}

// (query ids, starts, document ids, grades), or None if the file is not a clean one.
nb::object qrels_of(nb::handle buffer) {
    const View view(buffer);
    JudgedTexts judged;
    std::vector<double> grades;
    if (!read_qrels(view.begin(), view.end(), judged, grades)) return nb::none();
    return nb::make_tuple(texts_of(judged.queries), bytes_of(judged.starts), texts_of(judged.docs), bytes_of(grades));
}

// Reads the first `size` bytes of an open file.
nb::object scan(int file, size_t size, const Judged& judged, int ties, bool collapse, bool single, unsigned threads,
                size_t piece) {
    const FileSource source(file, size);
    Shared shared(judged.texts(), ordering_of(ties, collapse, single));
    RunScan result;
    {
        nb::gil_scoped_release released;
        result = scan_pieces(shared, source, threads, piece);
    }
    return answer(shared, result);
}

// A run that comes in pieces, as from a decompressor. One piece and one query are in memory at a time.
class Stream {
   public:
    Stream(const Judged& judged, int ties, bool collapse, bool single)
        : shared_(judged.texts(), ordering_of(ties, collapse, single)), scan_(shared_) {
        result_.outcome = Outcome::clean;
    }
    Stream(const Stream&) = delete;

    // Reads the whole lines of a piece (all of it if it is the last) and returns how many bytes that was. The caller
    // puts the rest before the next piece. Nothing more is read once the run proved unusual or interleaved.
    size_t feed(nb::handle buffer, bool last) {
        const View view(buffer);
        const char *begin = view.begin(), *end = view.end();
        nb::gil_scoped_release released;
        while (!last && end > begin && end[-1] != '\n') --end;
        if (begin == end || result_.outcome != Outcome::clean) return 0;
        if (!started_) {
            started_ = true;
            if (!starts_cleanly(begin, end)) result_.outcome = Outcome::unusual;
        }
        if (result_.outcome == Outcome::clean) result_.outcome = scan_.lines(begin, end);
        return static_cast<size_t>(end - begin);
    }

    bool clean() const { return result_.outcome == Outcome::clean; }

    nb::object finish() {
        if (!started_) result_.outcome = Outcome::unusual;
        scan_.finish();
        result_.absorb(scan_);
        return answer(shared_, result_);
    }

   private:
    Shared shared_;
    Scan scan_;
    RunScan result_;
    bool started_ = false;
};

// A scan that is started with two files while Python is busy importing. The caller who asks for the result states the
// judged documents, and its thread helps to finish the scan.
class Ahead {
   public:
    Ahead(int qrels, size_t qrels_size, int run, size_t run_size, int ties, bool collapse, bool single, unsigned threads,
          size_t piece)
        : qrels_(qrels, qrels_size), run_(run, run_size) {
        const Ordering ordering = ordering_of(ties, collapse, single);
        first_ = std::thread([=] { begin(ordering, threads, piece); });
    }
    ~Ahead() {
        if (!first_.joinable()) return;
        nb::gil_scoped_release released;
        wait_until_started();
        if (pieces_) pieces_->stop();
        finish();
    }

    // The result of `scan`; None if the judged documents differ, or the run is not a clean one.
    nb::object answer(const Judged& judged) {
        if (!first_.joinable()) return nb::none();
        {
            nb::gil_scoped_release released;
            wait_until_started();
            if (pieces_) pieces_->work();
            finish();
        }
        if (!pieces_ || !same(judged.texts())) return nb::none();
        RunScan result = result_of(*pieces_);
        return result.outcome == Outcome::clean ? steelyard::answer(*shared_, result) : nb::none();
    }

   private:
    FileSource qrels_, run_;
    Buffer qrels_bytes_;  // the texts of judged_
    JudgedTexts judged_;
    std::unique_ptr<Shared> shared_;
    std::unique_ptr<Pieces> pieces_;  // null if the qrels are not clean
    std::vector<std::thread> others_;
    std::mutex mutex_;
    std::condition_variable changed_;
    bool started_ = false;
    std::thread first_;

    void begin(const Ordering& ordering, unsigned threads, size_t piece) {
        {
            const std::lock_guard<std::mutex> lock(mutex_);
            try {
                std::vector<double> grades;
                const char* const judged = qrels_.bytes(0, qrels_.size(), qrels_bytes_);
                if (read_qrels(judged, judged + qrels_.size(), judged_, grades)) {
                    judged_.index();
                    shared_ = std::make_unique<Shared>(judged_, ordering);
                    pieces_ = std::make_unique<Pieces>(run_, piece, [this] { return std::make_unique<Scan>(*shared_); });
                    others_ = start_workers(*pieces_, std::max(1u, threads) - 1);
                }
            } catch (const std::bad_alloc&) {
                if (others_.empty()) pieces_.reset();
            } catch (const Changed&) {
                // Left to the readers, which report it.
            }
            started_ = true;
        }
        changed_.notify_all();
        if (pieces_) pieces_->work();
    }
    void wait_until_started() {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return started_; });
    }
    void finish() {
        first_.join();
        for (std::thread& other : others_) other.join();
    }
    static bool same(const std::vector<Id>& a, const std::vector<Id>& b) {
        return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                          [](const Id& x, const Id& y) { return y.known() && x.is(y); });
    }
    bool same(const JudgedTexts& other) const {
        return judged_.starts == other.starts && same(judged_.queries, other.queries) && same(judged_.docs, other.docs);
    }
};

}  // namespace

void register_files(nb::module_& m) {
    nb::class_<Judged>(m, "Judged")
        .def(nb::init<nb::sequence, Column<int64_t>, nb::sequence>(), nb::arg(), nb::arg().noconvert(), nb::arg())
        .def_static("of_columns", &Judged::of_columns, nb::arg(), nb::arg().noconvert(), nb::arg());
    nb::class_<Stream>(m, "Stream")
        .def(nb::init<const Judged&, int, bool, bool>(), nb::keep_alive<1, 2>())
        .def("feed", &Stream::feed)
        .def("clean", &Stream::clean)
        .def("finish", &Stream::finish);
    nb::class_<Ahead>(m, "Ahead")
        .def(nb::init<int, size_t, int, size_t, int, bool, bool, unsigned, size_t>())
        .def("answer", &Ahead::answer);
    m.def("read_qrels", &qrels_of);
    m.def("scan", &scan);
}

}  // namespace steelyard
