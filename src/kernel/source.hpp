// The bytes of a run or of qrels: in memory, or in an open file, which is read and not mapped. A mapped file that another
// process makes shorter ends this one with a signal.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#ifdef _WIN32
#include <io.h>
#include <windows.h>
#else
#include <unistd.h>
#endif

namespace steelyard {

// A file has become shorter, or can no longer be read.
struct Changed : std::exception {};

// Memory that is used again and again, and never filled with zeros.
class Buffer {
   public:
    char* reserve(size_t size) {
        if (size > size_) {
            bytes_.reset();
            bytes_.reset(new char[size]);
            size_ = size;
        }
        return bytes_.get();
    }

   private:
    std::unique_ptr<char[]> bytes_;
    size_t size_ = 0;
};

class Source {
   public:
    explicit Source(size_t size) : size_(size) {}
    virtual ~Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    size_t size() const { return size_; }
    // The bytes from `begin` to `end`, in place or copied to the buffer. Any number of threads may call it at once.
    virtual const char* bytes(size_t begin, size_t end, Buffer& buffer) const = 0;

   private:
    const size_t size_;
};

// A file of which the first `size` bytes are read. The descriptor may be closed after the constructor.
class FileSource : public Source {
   public:
#ifdef _WIN32
    FileSource(int descriptor, size_t size) : Source(size), file_(_dup(descriptor)) {
#else
    FileSource(int descriptor, size_t size) : Source(size), file_(dup(descriptor)) {
#endif
        if (file_ < 0) throw std::invalid_argument("not the descriptor of an open file");
    }
    ~FileSource() override {
#ifdef _WIN32
        _close(file_);
#else
        close(file_);
#endif
    }
    const char* bytes(size_t begin, size_t end, Buffer& buffer) const override {
        char* const bytes = buffer.reserve(end - begin);
        for (size_t at = begin; at < end;) at += read(bytes + (at - begin), end - at, at);
        return bytes;
    }

   private:
    const int file_;

    // At least one byte.
    size_t read(char* to, size_t size, size_t at) const {
        constexpr size_t kMost = size_t{1} << 30;
        const size_t asked = size < kMost ? size : kMost;
#ifdef _WIN32
        OVERLAPPED place = {};
        place.Offset = static_cast<DWORD>(at);
        place.OffsetHigh = static_cast<DWORD>(static_cast<uint64_t>(at) >> 32);
        DWORD count = 0;
        const auto handle = reinterpret_cast<HANDLE>(_get_osfhandle(file_));
        if (!ReadFile(handle, to, static_cast<DWORD>(asked), &count, &place) || count == 0) throw Changed();
        return count;
#else
        for (;;) {
            const ssize_t count = pread(file_, to, asked, static_cast<off_t>(at));
            if (count > 0) return static_cast<size_t>(count);
            if (count == 0 || errno != EINTR) throw Changed();
        }
#endif
    }
};

}  // namespace steelyard
