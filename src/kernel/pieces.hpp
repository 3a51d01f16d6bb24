// A run file in pieces of whole queries, read by any number of threads.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "run_lines.hpp"
#include "source.hpp"

namespace steelyard {

// What is read of one piece.
class Part {
   public:
    virtual ~Part() = default;
    // Whole lines. Their bytes are freed afterwards.
    virtual Outcome lines(const char* begin, const char* end) = 0;
    // After the last line.
    virtual void finish() = 0;
};

// The bytes of a file that a thread has in memory: few enough for the second-level cache.
constexpr size_t kBlock = size_t{1} << 18;

// Pieces of about `piece` bytes, cut where a query ends. A thread may join late.
class Pieces {
   public:
    Pieces(const Source& source, size_t piece, std::function<std::unique_ptr<Part>()> make, size_t block = kBlock);
    void work();  // reads pieces that no other thread took, until none is left
    void stop() { stop_ = true; }
    size_t count() const { return parts.size(); }
    Outcome outcome() const;  // once no thread works any more

    std::vector<std::unique_ptr<Part>> parts;

   private:
    const Source& source_;
    const std::function<std::unique_ptr<Part>()> make_;
    const size_t block_;
    bool clean_start_ = false, changed_ = false;
    std::vector<size_t> borders_{0};
    std::vector<Outcome> outcomes_;
    std::atomic<size_t> next_{0};
    std::atomic<bool> stop_{false}, out_of_memory_{false};
};

// Threads that do the work; fewer if the system refuses to start as many.
std::vector<std::thread> start_workers(Pieces& pieces, size_t count);
// All of the work on several threads, of which this is one.
void read_pieces(Pieces& pieces, unsigned threads);

struct QueryText {
    const char* begin;
    size_t size;
};

// The first word of a line; empty if the line starts with a line end or a control byte.
inline QueryText query_of(const char* line, const char* end) {
    while (line < end && (*line == ' ' || *line == '\t')) ++line;
    const char* p = line;
    while (p < end && static_cast<unsigned char>(*p) > ' ') ++p;
    return {line, static_cast<size_t>(p - line)};
}

inline const char* next_line(const char* line, const char* end) {
    const void* found = std::memchr(line, '\n', static_cast<size_t>(end - line));
    return found ? static_cast<const char*>(found) + 1 : end;
}

}  // namespace steelyard
