// A TREC run as columns of Arrow, which a frame takes without a copy.
#include "columns.hpp"

#include "run_answer.hpp"

namespace steelyard {

namespace {

using Parts = std::vector<std::shared_ptr<const Columns>>;

constexpr const char* kNames[] = {"query_id", "doc_id", "score"};
constexpr const char* kFormats[] = {"vu", "vu", "g"};
constexpr size_t kColumns = 3;

// Releases what was not moved out of a schema or an array, and what it owns.
template <class Node, class Own>
void release_node(Node* node) {
    if (node->children)
        for (int64_t i = 0; i < node->n_children; ++i)
            if (node->children[i]->release) node->children[i]->release(node->children[i]);
    delete static_cast<Own*>(node->private_data);
    node->release = nullptr;
}

struct SchemaNodes {
    ArrowSchema nodes[kColumns];
    ArrowSchema* children[kColumns];
};

int schema_of(ArrowArrayStream*, ArrowSchema* to) {
    auto* own = new SchemaNodes{};
    for (size_t i = 0; i < kColumns; ++i) {
        own->nodes[i] = {kFormats[i], kNames[i], nullptr, 0, 0, nullptr, nullptr, release_node<ArrowSchema, char>, nullptr};
        own->children[i] = &own->nodes[i];
    }
    *to = {"+s", "", nullptr, 0, kColumns, own->children, nullptr, release_node<ArrowSchema, SchemaNodes>, own};
    return 0;
}

// The buffers of one column, which keep its part alive: frames may keep some columns and drop others.
struct Buffers {
    std::shared_ptr<const Columns> part;
    int64_t text_size;
    const void* buffers[4];
};

struct ArrayNodes {
    ArrowArray nodes[kColumns];
    ArrowArray* children[kColumns];
    const void* no_nulls;
};

void column_of(const std::shared_ptr<const Columns>& part, size_t which, ArrowArray* to) {
    const auto rows = static_cast<int64_t>(part->scores.size());
    auto* own = new Buffers{part, static_cast<int64_t>(part->texts.size()), {}};
    int64_t count = 2;
    if (which == kColumns - 1) {
        own->buffers[1] = part->scores.data();
    } else {
        own->buffers[1] = (which == 0 ? part->queries : part->docs).data();
        own->buffers[2] = part->texts.data();
        own->buffers[3] = &own->text_size;
        count = 4;
        if (part->texts.empty()) {  // no buffer of text, only the list of none
            own->buffers[2] = &own->text_size;
            count = 3;
        }
    }
    *to = {rows, 0, 0, count, 0, own->buffers, nullptr, nullptr, release_node<ArrowArray, Buffers>, own};
}

struct Position {
    Parts parts;
    size_t next = 0;
};

int next_array(ArrowArrayStream* stream, ArrowArray* to) {
    auto* position = static_cast<Position*>(stream->private_data);
    if (position->next == position->parts.size()) {
        *to = ArrowArray{};
        return 0;
    }
    const auto& part = position->parts[position->next++];
    auto* own = new ArrayNodes{};
    for (size_t i = 0; i < kColumns; ++i) {
        column_of(part, i, &own->nodes[i]);
        own->children[i] = &own->nodes[i];
    }
    *to = {static_cast<int64_t>(part->scores.size()), 0, 0, 1, kColumns, &own->no_nulls, own->children, nullptr,
           release_node<ArrowArray, ArrayNodes>, own};
    return 0;
}

const char* no_error(ArrowArrayStream*) { return nullptr; }

void release_stream(ArrowArrayStream* stream) {
    delete static_cast<Position*>(stream->private_data);
    stream->release = nullptr;
}

void free_capsule(PyObject* capsule) {
    auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule, "arrow_array_stream"));
    if (stream->release) stream->release(stream);
    delete stream;
}

// The columns of a whole run, in the order of its lines.
class RunColumns {
   public:
    explicit RunColumns(Pieces& pieces) {
        for (auto& part : pieces.parts) {
            std::shared_ptr<Columns> columns(static_cast<Columns*>(part.release()));
            tags_.add(columns->tags);
            parts_.push_back(std::move(columns));
        }
    }

    nb::object stream(nb::object) const {
        auto* made = new ArrowArrayStream{schema_of, next_array, no_error, release_stream, new Position{parts_}};
        return nb::steal(PyCapsule_New(made, "arrow_array_stream", free_capsule));
    }
    nb::list tags() const { return texts_of(tags_); }

   private:
    Parts parts_;
    Distinct tags_;
};

// The columns of the first `size` bytes of an open file; the number of the Outcome if it is not clean.
nb::object read_columns(int file, size_t size, unsigned threads, size_t piece) {
    const FileSource source(file, size);
    std::unique_ptr<Pieces> pieces;
    Outcome outcome;
    {
        nb::gil_scoped_release released;
        pieces = std::make_unique<Pieces>(source, piece, [] { return std::make_unique<Columns>(); });
        read_pieces(*pieces, threads);
        outcome = pieces->outcome();
    }
    if (outcome != Outcome::clean) return nb::int_(static_cast<int>(outcome));
    return nb::cast(RunColumns(*pieces));
}

}  // namespace

void register_columns(nb::module_& m) {
    nb::class_<RunColumns>(m, "RunColumns")
        .def("__arrow_c_stream__", &RunColumns::stream, nb::arg("requested_schema") = nb::none())
        .def("tags", &RunColumns::tags);
    m.def("read_columns", &read_columns);
}

}  // namespace steelyard
