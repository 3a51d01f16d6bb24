// Lists whose rows come in any order, as the workers of a cluster have them: packed for another worker, and ranked.
#include "run_answer.hpp"

namespace steelyard {

namespace {

constexpr size_t kMostBuckets = size_t{1} << 16;

// One row of a judged query.
struct ListRow {
    uint32_t query;  // its number among the judged queries
    Id doc;
    double score;
};

// The rows of judged queries in a frame, and its other queries. The documents point into the frame.
class FrameRows {
   public:
    FrameRows(nb::handle queries, nb::handle docs, const Column<double>& scores, const JudgedTexts& judged)
        : queries_(queries), docs_(docs) {
        if (!usable()) return;
        const size_t size = queries_.size();
        if (docs_.size() != size || scores.size() != size) throw nb::value_error("columns must have the same number of rows");
        if (size >= kMostRows) throw nb::value_error("too many rows");
        nb::gil_scoped_release released;
        TextColumn::Cursor query(queries_), doc(docs_);
        Id last{nullptr, 0};
        int64_t number = -1;
        rows.reserve(size);
        for (size_t i = 0; i < size; ++i) {
            const Id id = query.next(), document = doc.next();
            if (!last.text || !id.is(last)) {
                number = judged.query(id.text, id.size);
                if (number < 0) others.add(std::string(id.text, id.size));
            }
            last = id;
            if (number >= 0) rows.push_back({static_cast<uint32_t>(number), document, scores.data()[i]});
        }
    }
    // False if a column has nulls.
    bool usable() const { return queries_.usable() && docs_.usable(); }

    std::vector<ListRow> rows;
    Distinct others;

   private:
    const TextColumn queries_, docs_;
};

// (the other queries, [(bucket, numbers of queries, sizes of ids, ids, scores), ...]), the rows of each
// bucket in their order. None if a column has nulls.
nb::object pack_rows(nb::handle queries, nb::handle docs, Column<double> scores, const Judged& judged, size_t buckets) {
    struct Bucket {
        size_t rows = 0, text = 0;
        std::vector<Filled> columns;
    };
    if (buckets < 1 || buckets > kMostBuckets) throw nb::value_error("expected from 1 to 65,536 buckets");
    const FrameRows read(queries, docs, scores, judged.texts());
    if (!read.usable()) return nb::none();
    const size_t count = judged.texts().queries.size();
    const auto bucket_of = [&](const ListRow& row) { return row.query * buckets / count; };
    std::vector<Bucket> packed(buckets);
    for (const ListRow& row : read.rows) {
        Bucket& bucket = packed[bucket_of(row)];
        ++bucket.rows;
        bucket.text += row.doc.size;
    }
    for (Bucket& bucket : packed)
        if (bucket.rows)
            for (const size_t size : {4 * bucket.rows, 4 * bucket.rows, bucket.text, 8 * bucket.rows}) bucket.columns.emplace_back(size);
    for (const ListRow& row : read.rows) {
        std::vector<Filled>& columns = packed[bucket_of(row)].columns;
        columns[0].add(&row.query, 4);
        columns[1].add(&row.doc.size, 4);
        columns[2].add(row.doc.text, row.doc.size);
        columns[3].add(&row.score, 8);
    }
    nb::list found;
    for (size_t i = 0; i < buckets; ++i) {
        const std::vector<Filled>& columns = packed[i].columns;
        if (!columns.empty())
            found.append(nb::make_tuple(i, columns[0].bytes(), columns[1].bytes(), columns[2].bytes(), columns[3].bytes()));
    }
    return nb::make_tuple(texts_of(read.others), found);
}

// Brings the rows of each query together, in their order, and the texts of their ids too: rows of many queries are read from
// one end to the other, and never at random. `texts` holds the ids afterwards.
void gather_queries(std::vector<ListRow>& rows, std::vector<char>& texts) {
    const auto by_query = [](const ListRow& a, const ListRow& b) { return a.query < b.query; };
    if (std::is_sorted(rows.begin(), rows.end(), by_query)) return;
    const auto [least, most] = std::minmax_element(rows.begin(), rows.end(), by_query);
    const uint32_t first = least->query;
    const size_t span = most->query - first + size_t{1};
    if (span > rows.size()) return sort_by_query(rows);
    struct Place {
        size_t row = 0, text = 0;
    };
    std::vector<Place> places(span + 1);
    for (const ListRow& row : rows) {
        Place& next = places[row.query - first + 1];
        ++next.row;
        next.text += row.doc.size;
    }
    for (size_t i = 1; i < places.size(); ++i) {
        places[i].row += places[i - 1].row;
        places[i].text += places[i - 1].text;
    }
    std::vector<ListRow> sorted(rows.size());
    texts.resize(places.back().text);
    for (const ListRow& row : rows) {
        Place& place = places[row.query - first];
        char* const text = texts.data() + place.text;
        if (row.doc.size) std::memcpy(text, row.doc.text, row.doc.size);
        sorted[place.row++] = {row.query, {text, row.doc.size}, row.score};
        place.text += row.doc.size;
    }
    rows.swap(sorted);
}

// (the numbers of the queries, ascending; the arrays of Hits, in which queries are numbered by their place among those, and
// documents among all judged ones). The lists are complete.
nb::tuple ranked(std::vector<ListRow>& rows, const JudgedTexts& judged, const Ordering& ordering) {
    std::vector<int64_t> numbers;
    std::vector<Tally> tallies;
    Places places;
    {
        nb::gil_scoped_release released;
        std::vector<char> texts;
        gather_queries(rows, texts);
        OpenQuery<Id> open;
        for (size_t i = 0; i < rows.size();) {
            const uint32_t query = rows[i].query;
            const auto begin = static_cast<size_t>(judged.starts[query]), end = static_cast<size_t>(judged.starts[query + 1]);
            open.open(static_cast<int64_t>(numbers.size()), judged.docs.data(), judged.hashes.data(), begin, end);
            for (; i < rows.size() && rows[i].query == query; ++i)
                open.add(rows[i].doc, hash_id(rows[i].doc.text, rows[i].doc.size), rows[i].score);
            numbers.push_back(query);
            tallies.emplace_back();
            open.close(ordering, tallies.back(), places);
        }
    }
    return nb::make_tuple(bytes_of(numbers), arrays_of(tallies, places));
}

// Of rows of a frame: (the other queries, numbers, arrays); None if a column has nulls.
nb::object rank_rows(nb::handle queries, nb::handle docs, Column<double> scores, const Judged& judged, int ties, bool collapse,
                     bool single) {
    FrameRows read(queries, docs, scores, judged.texts());
    if (!read.usable()) return nb::none();
    const nb::tuple found = ranked(read.rows, judged.texts(), ordering_of(ties, collapse, single));
    return nb::make_tuple(texts_of(read.others), found[0], found[1]);
}

// A buffer of cells, which may start anywhere.
template <class Cell>
class Cells {
   public:
    explicit Cells(nb::handle object) : view_(object) {}
    size_t size() const { return static_cast<size_t>(view_.end() - view_.begin()) / sizeof(Cell); }
    Cell operator[](size_t i) const {
        Cell cell;
        std::memcpy(&cell, view_.begin() + i * sizeof(Cell), sizeof(Cell));
        return cell;
    }
    const char* begin() const { return view_.begin(); }

   private:
    View view_;
};

// Of parts that were packed, [(numbers of queries, sizes of ids, ids, scores), ...]: (numbers, arrays).
nb::tuple rank_packed(nb::list parts, const Judged& judged, int ties, bool collapse, bool single) {
    std::vector<ListRow> rows;
    std::vector<std::unique_ptr<Cells<char>>> texts;
    const size_t count = judged.texts().queries.size();
    for (const nb::handle part : parts) {
        if (!PyTuple_Check(part.ptr()) || PyTuple_GET_SIZE(part.ptr()) != 4)
            throw nb::type_error("expected the numbers of queries, the sizes of ids, ids and scores");
        const Cells<uint32_t> queries(part[0]), sizes(part[1]);
        const Cells<double> scores(part[3]);
        texts.push_back(std::make_unique<Cells<char>>(part[2]));
        const char* text = texts.back()->begin();
        size_t left = texts.back()->size();
        if (queries.size() != sizes.size() || queries.size() != scores.size() || rows.size() + queries.size() >= kMostRows)
            throw nb::value_error("columns must have the same number of rows");
        for (size_t i = 0; i < queries.size(); ++i) {
            if (queries[i] >= count || sizes[i] > left) throw nb::value_error("not rows that were packed for these queries");
            rows.push_back({queries[i], {text, sizes[i]}, scores[i]});
            text += sizes[i];
            left -= sizes[i];
        }
    }
    return ranked(rows, judged.texts(), ordering_of(ties, collapse, single));
}

}  // namespace

void register_lists(nb::module_& m) {
    m.def("pack_rows", &pack_rows, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg());
    m.def("rank_rows", &rank_rows, nb::arg(), nb::arg(), nb::arg().noconvert(), nb::arg(), nb::arg(), nb::arg(), nb::arg());
    m.def("rank_packed", &rank_packed);
}

}  // namespace steelyard
