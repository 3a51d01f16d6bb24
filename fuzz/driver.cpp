// Runs LLVMFuzzerTestOneInput without libFuzzer: mutates a corpus, by a seed, and keeps inputs that reach new code.
//
// driver CORPUS SAVED INPUTS SECONDS SEED: files of CORPUS are the first inputs. An input that fails is written to SAVED,
// and with KEEP=1 in the environment all that reach new code. The last line of the output has the figures.
#include <dirent.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" void __sanitizer_set_death_callback(void (*callback)());

namespace {

constexpr size_t kLargest = 400, kEdges = size_t{1} << 13;
constexpr unsigned kLongest = 10;  // seconds of the processor for one input: on a busy machine the clock goes on alone
constexpr unsigned kIdle = 120;    // seconds by the clock without using the processor: threads that wait for each other
std::string current, saved;
uint8_t edges[kEdges];
thread_local uintptr_t previous = 0;

uint64_t state;
uint64_t draw() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1du >> 11;
}
size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(draw() % n); }

const char* const kWords[] = {"Q0", "q1", "q2", "q3", "d1", "d10", "d2", "\xc3\xa9", " ", "\t", "\n", "\r\n", "\r", "#", "\xff",
                              "\xef\xbb\xbf", "0", "1", "-1", "+", ".5", "1e308", "1e999", "-0.0", "NaN", "inf", "1e", "0x1p3",
                              "12345678901234567890", "0.30000000000000004", "9007199254740993", "00000000", "99999999", " t\n",
                              "q1 Q0 d1 1 1 t\n", "q2 Q0 d2 1 .5 t\n", "q1 0 d1 1\n", "q9 Q0 d10 2 0.5\n", "document-of-some-length",
                              "\xf0\x9d\x84\x9e", "\xed\xa0\x80", "\xc0\x80",
                              "{\"_id\":\"d1\",\"text\":\"", "\"title\":\"", "\"}\n", "\\u00e9", "\\ud800", "\\n", "\\", "[1,{}]", "null", "the ", "ing",
                              "ational", "\xe4\xb8\x80\xe4\xb8\x81", "\xc3\x89"};

void mutate(std::string& text, const std::vector<std::string>& corpus) {
    for (size_t count = 1 + below(4) * below(3); count > 0; --count) {
        const size_t at = below(text.size() + 1), length = 1 + below(1 + below(40));
        switch (below(8)) {
            case 0: if (at < text.size()) text[at] = static_cast<char>(text[at] ^ (1 << below(8))); break;
            case 1: if (at < text.size()) text[at] = static_cast<char>(below(256)); break;
            case 2: text.erase(at, length); break;
            case 3: text.insert(at, text.substr(below(text.size() + 1), length)); break;
            case 4: text.insert(at, kWords[below(std::size(kWords))]); break;
            case 5: {
                const char* word = kWords[below(std::size(kWords))];
                text.replace(at, std::strlen(word), word);
                break;
            }
            case 6: {
                const std::string& other = corpus[below(corpus.size())];
                text = text.substr(0, at) + other.substr(below(other.size() + 1));
                break;
            }
            default: {
                // A line again, at another place.
                const size_t from = text.rfind('\n', at == 0 ? 0 : at - 1), to = text.find('\n', at);
                if (from != std::string::npos && to != std::string::npos && from < to)
                    text.insert(below(2) ? to + 1 : text.size(), text.substr(from + 1, to - from));
            }
        }
    }
    if (text.size() > kLargest) text.resize(kLargest);
}

void write_input(const char* kind) {
    uint64_t hash = 1469598103934665603u;
    for (const char c : current) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
    char name[64];
    std::snprintf(name, sizeof name, "/%s-%016llx", kind, static_cast<unsigned long long>(hash));
    std::ofstream(saved + name, std::ios::binary) << current;
}

void failed() {
    write_input("failed");
    std::fprintf(stderr, "the input is in %s\n", saved.c_str());
}

// Abort is one of the harness; the other signals are those of an input that takes too long.
void stopped(int signal) {
    if (signal == SIGPROF) std::fprintf(stderr, "an input takes more than %u seconds of the processor\n", kLongest);
    if (signal == SIGALRM) std::fprintf(stderr, "an input waits for more than %u seconds\n", kIdle);
    failed();
    _exit(signal == SIGABRT ? 1 : 3);
}

clock_t used;

// The time by the clock is over. That is a hang only if the processor was not used meanwhile.
void idle(int signal) {
    const clock_t now = std::clock();
    if (now - used < CLOCKS_PER_SEC / 10) stopped(signal);
    used = now;
    alarm(kIdle);
}

void start_timers() {
    const itimerval limit{{0, 0}, {kLongest, 0}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    used = std::clock();
    alarm(kIdle);
}

std::vector<std::string> files_in(const char* folder) {
    std::vector<std::string> names, texts;
    if (DIR* const open = opendir(folder)) {
        while (const dirent* const entry = readdir(open))
            if (entry->d_name[0] != '.') names.push_back(std::string(folder) + "/" + entry->d_name);
        closedir(open);
    }
    std::sort(names.begin(), names.end());
    for (const std::string& name : names) {
        std::ifstream file(name, std::ios::binary);
        texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    return texts;
}

// Runs the current input; true if it reached an edge that no input reached before.
bool run(std::vector<uint8_t>& seen) {
    std::memset(edges, 0, sizeof edges);
    previous = 0;
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(current.data()), current.size());
    bool fresh = false;
    for (size_t i = 0; i < kEdges; i += 8) {
        uint64_t eight;
        std::memcpy(&eight, edges + i, 8);
        if (eight == 0) continue;
        for (size_t j = i; j < i + 8; ++j)
            if (edges[j] && !seen[j]) fresh = seen[j] = 1;
    }
    return fresh;
}

}  // namespace

// Called by the code under test at every branch.
extern "C" void __sanitizer_cov_trace_pc() {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
    edges[(here ^ here >> 13 ^ previous) % kEdges] = 1;
    previous = here >> 1;
}

// Inputs are small: short histories of allocations are enough, and faster. A leak shows in the peak memory.
extern "C" const char* __asan_default_options() { return "quarantine_size_mb=8:malloc_context_size=1:detect_leaks=0"; }

int main(int count, char** arguments) {
    if (count != 6) return 2;
    saved = arguments[2];
    const uint64_t inputs = std::strtoull(arguments[3], nullptr, 10);
    const double seconds = std::strtod(arguments[4], nullptr);
    state = std::strtoull(arguments[5], nullptr, 10) * 0x9e3779b97f4a7c15u + 1;
    __sanitizer_set_death_callback(failed);
    std::signal(SIGABRT, stopped);
    std::signal(SIGPROF, stopped);
    std::signal(SIGALRM, idle);

    std::vector<std::string> corpus = files_in(arguments[1]);
    const size_t first = corpus.size();
    if (first == 0) return 2;
    std::vector<uint8_t> seen(kEdges, 0);
    const auto start = std::chrono::steady_clock::now();
    uint64_t done = 0;
    for (; done < inputs; ++done) {
        if (done % 1024 == 0) {
            start_timers();
            if (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() > seconds) break;
        }
        current = done < first ? corpus[done] : corpus[below(corpus.size())];
        if (done >= first) mutate(current, corpus);
        if (run(seen) && done >= first) {
            corpus.push_back(current);
            if (std::getenv("KEEP")) write_input("kept");
        }
    }
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const std::string program = arguments[0];
    std::printf("%s: %llu inputs, 0 crashes, 0 hangs, %ld MB peak memory, %zu inputs that reach new code\n",
                program.substr(program.rfind('/') + 1).c_str(), static_cast<unsigned long long>(done), usage.ru_maxrss / 1024, corpus.size());
}
