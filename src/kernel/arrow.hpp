// Columns of text and numbers of a frame, read without a copy through Arrow's C stream interface.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "judged.hpp"

namespace steelyard {

namespace nb = nanobind;

// The structures of https://arrow.apache.org/docs/format/CDataInterface.html.
struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    ArrowSchema **children, *dictionary;
    void (*release)(ArrowSchema*);
    void* private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void** buffers;
    ArrowArray **children, *dictionary;
    void (*release)(ArrowArray*);
    void* private_data;
};

struct ArrowArrayStream {
    int (*get_schema)(ArrowArrayStream*, ArrowSchema*);
    int (*get_next)(ArrowArrayStream*, ArrowArray*);
    const char* (*get_last_error)(ArrowArrayStream*);
    void (*release)(ArrowArrayStream*);
    void* private_data;
};

// A column of text: the chunks of the stream that an object's __arrow_c_stream__ returns.
class TextColumn {
   public:
    explicit TextColumn(nb::handle column) {
        if (!nb::hasattr(column, "__arrow_c_stream__")) throw nb::type_error("expected a column with __arrow_c_stream__");
        capsule_ = column.attr("__arrow_c_stream__")();
        auto* stream = static_cast<ArrowArrayStream*>(PyCapsule_GetPointer(capsule_.ptr(), "arrow_array_stream"));
        if (!stream) throw nb::python_error();
        ArrowSchema schema{};
        if (stream->get_schema(stream, &schema) != 0) return;
        const std::string format = schema.format;
        if (schema.release) schema.release(&schema);
        kind_ = format == "vu" ? Kind::views : format == "U" ? Kind::large : format == "u" ? Kind::small : Kind::other;
        if (kind_ == Kind::other) return;
        for (;;) {
            ArrowArray array{};
            if (stream->get_next(stream, &array) != 0) return;
            if (!array.release) break;
            arrays_.push_back(array);
            if (array.null_count != 0) return;
            starts_.push_back(starts_.back() + static_cast<size_t>(array.length));
        }
        usable_ = true;
    }
    TextColumn(const TextColumn&) = delete;
    TextColumn& operator=(const TextColumn&) = delete;
    ~TextColumn() {
        for (ArrowArray& array : arrays_)
            if (array.release) array.release(&array);
    }

    // False for a column that is not of text, or has nulls.
    bool usable() const { return usable_; }
    size_t size() const { return starts_.back(); }

    // The rows of a column one after another, from any row on. A text points into the column.
    class Cursor {
       public:
        explicit Cursor(const TextColumn& column, size_t row = 0) : column_(column) { seek(row); }

        void seek(size_t row) {
            const auto& starts = column_.starts_;
            chunk_ = static_cast<size_t>(std::upper_bound(starts.begin(), starts.end(), row) - starts.begin()) - 1;
            at_ = row - starts[chunk_];
            open();
        }
        STEELYARD_INLINE Id next() {
            while (at_ == length_) {
                ++chunk_;
                at_ = 0;
                open();
            }
            const size_t i = at_++;
            if (column_.kind_ == Kind::views) {
                const char* const view = views_ + 16 * i;
                uint32_t size;
                std::memcpy(&size, view, 4);
                if (size <= 12) return {view + 4, size};
                int32_t place[2];
                std::memcpy(place, view + 8, 8);
                return {static_cast<const char*>(buffers_[2 + place[0]]) + place[1], size};
            }
            if (column_.kind_ == Kind::large) return text(large_[i], large_[i + 1]);
            return text(small_[i], small_[i + 1]);
        }

       private:
        const TextColumn& column_;
        size_t chunk_ = 0, at_ = 0, length_ = 0;
        const void** buffers_ = nullptr;
        const char* views_ = nullptr;
        const char* data_ = nullptr;
        const int64_t* large_ = nullptr;
        const int32_t* small_ = nullptr;

        Id text(int64_t begin, int64_t end) const { return {data_ + begin, static_cast<uint32_t>(end - begin)}; }
        void open() {
            if (chunk_ >= column_.arrays_.size()) {
                length_ = at_ = 0;
                return;
            }
            const ArrowArray& array = column_.arrays_[chunk_];
            length_ = static_cast<size_t>(array.length);
            buffers_ = array.buffers;
            if (column_.kind_ == Kind::views) views_ = static_cast<const char*>(buffers_[1]) + 16 * array.offset;
            if (column_.kind_ == Kind::large) large_ = static_cast<const int64_t*>(buffers_[1]) + array.offset;
            if (column_.kind_ == Kind::small) small_ = static_cast<const int32_t*>(buffers_[1]) + array.offset;
            if (column_.kind_ != Kind::views) data_ = static_cast<const char*>(buffers_[2]);
        }
    };

   private:
    enum class Kind { other, views, large, small };

    nb::object capsule_;
    std::vector<ArrowArray> arrays_;
    std::vector<size_t> starts_{0};  // of the chunks, and the number of rows
    Kind kind_ = Kind::other;
    bool usable_ = false;
};

}  // namespace steelyard
