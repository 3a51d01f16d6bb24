// The best k documents of queries, from postings with weights.
//
// A document's score is the sum of its weights over the query's terms, in float64 and in the order of the terms, so that it
// equals that of the portable implementation (steelyard.retrievers.postings) to the last bit. Documents that cannot be
// among the best k are skipped: bounds decide which documents are scored, never what their scores are. The kernel is
// compiled without contraction: a product and a sum that are rounded once together give other scores.
//
// Documents are searched in windows. The terms of a query are split by the k-th best score so far: documents that have only
// terms of the first part cannot reach it (MaxScore, Turtle and Flood 1995). So the postings of the second part are read
// one by one, and those of the first part are looked up for the documents that may still be among the best. Queries with few
// postings are read document by document instead.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#endif

#include "inlining.hpp"

namespace steelyard {

struct Scored {
    double score;
    int32_t doc;
};

// Best first: by score, then in document order.
struct Before {
    bool operator()(const Scored& a, const Scored& b) const { return a.score != b.score ? a.score > b.score : a.doc < b.doc; }
};

// Sorts and selects by buckets of equal width first, which is faster than comparing: a better score is never in a later
// bucket.
class Buckets {
   public:
    // Best first.
    void sort(std::vector<Scored>& found) {
        if (!divide(found, found.size())) return std::sort(found.begin(), found.end(), Before());
        starts_.assign(found.size() + 2, 0);
        for (const Scored& one : found) ++starts_[bucket(one.score) + 1];
        for (size_t b = 1; b < starts_.size(); ++b) starts_[b] += starts_[b - 1];
        sorted_.resize(found.size());
        for (const Scored& one : found) sorted_[starts_[bucket(one.score)]++] = one;
        found.swap(sorted_);
        // The starts have become ends.
        size_t begin = 0;
        for (const uint32_t end : starts_) {
            if (end - begin > 1) std::sort(at(found, begin), at(found, end), Before());
            begin = end;
        }
    }
    // The best k, in any order; the score of the k-th.
    double select(std::vector<Scored>& found, size_t k) {
        constexpr size_t kBuckets = 256;
        if (!divide(found, kBuckets)) {
            std::nth_element(found.begin(), at(found, k - 1), found.end(), Before());
            found.resize(k);
            return found[k - 1].score;
        }
        starts_.assign(kBuckets + 1, 0);
        for (const Scored& one : found) ++starts_[bucket(one.score)];
        // The k-th best is in bucket `last`, of which `rest` are kept.
        size_t last = 0, rest = k;
        while (starts_[last] < rest) rest -= starts_[last++];
        sorted_.clear();
        size_t kept = 0;
        for (const Scored& one : found) {
            const size_t b = bucket(one.score);
            if (b == last) sorted_.push_back(one);
            found[kept] = one;
            kept += b < last;
        }
        std::nth_element(sorted_.begin(), at(sorted_, rest - 1), sorted_.end(), Before());
        std::copy(sorted_.begin(), at(sorted_, rest), at(found, kept));
        found.resize(k);
        return sorted_[rest - 1].score;
    }

   private:
    static constexpr size_t kFew = 100;

    std::vector<Scored> sorted_;
    std::vector<uint32_t> starts_;
    double most_ = 0, scale_ = 0;

    static std::vector<Scored>::iterator at(std::vector<Scored>& found, size_t place) {
        return found.begin() + static_cast<ptrdiff_t>(place);
    }
    size_t bucket(double score) const { return static_cast<size_t>((most_ - score) * scale_); }
    // Divides the scores into buckets, and one more; false for few documents, or scores that are equal or not finite.
    bool divide(const std::vector<Scored>& found, size_t buckets) {
        if (found.size() < kFew || found.size() > std::numeric_limits<uint32_t>::max()) return false;
        double least = most_ = found[0].score;
        for (const Scored& one : found) {
            most_ = std::max(most_, one.score);
            least = std::min(least, one.score);
        }
        scale_ = static_cast<double>(buckets) / (most_ - least);
        // Not more than the last bucket, however it is rounded.
        scale_ -= scale_ * 1e-15;
        return std::isfinite(scale_) && scale_ > 0 && std::isfinite(most_ - least);
    }
};

// The best k of documents that are offered in ascending order.
class Best {
   public:
    explicit Best(size_t k) : k_(k), limit_(k) {}

    // Whether k documents were offered: then `worst` is at most the k-th best score.
    bool full() const { return full_; }
    double worst() const { return worst_; }
    bool takes(double score) const { return full_ ? score > worst_ : score == score; }
    STEELYARD_INLINE void offer(const Scored& one, Buckets& buckets) {
        if (!takes(one.score)) return;
        found_.push_back(one);
        if (found_.size() >= limit_) cut(buckets);
    }
    // Only the best k, in any order.
    void cut(Buckets& buckets) {
        if (found_.size() < k_) return;
        worst_ = buckets.select(found_, k_);
        full_ = true;
        limit_ = 2 * k_;
    }
    std::vector<Scored>& found() { return found_; }

   private:
    size_t k_, limit_;
    bool full_ = false;
    double worst_ = 0;
    std::vector<Scored> found_;
};

// The weight of a posting, by its code: IDF x a factor.
struct ShortWeight {
    static constexpr size_t kFactors = 1;
    STEELYARD_INLINE static double of(double idf, const double* factor) { return idf * factor[0]; }
};
// The same with three more factors, the last of which divides.
struct LongWeight {
    static constexpr size_t kFactors = 4;
    STEELYARD_INLINE static double of(double idf, const double* factor) {
        return idf * factor[0] * factor[1] * factor[2] / factor[3];
    }
};
// The factors of every code; codes of 16 bits have 65,536 of them, and other codes from `codes` on are read as code 0.
struct Factors {
    const double* values;
    size_t codes;
    bool is_long;
};

// The first of n ascending documents that is not before `doc`. Without branches, which would be mispredicted half of the time.
inline const int32_t* first_from(const int32_t* at, size_t n, int32_t doc) {
    while (n > 1) {
        const size_t half = n / 2;
        at += static_cast<size_t>(at[half - 1] < doc) * half;
        n -= half;
    }
    return at + (n == 1 && *at < doc);
}

// The same up to an end that may be far away.
inline const int32_t* seek(const int32_t* at, const int32_t* end, int32_t doc) {
    ptrdiff_t step = 1;
    while (step < end - at && at[step] < doc) step *= 2;
    return first_from(at + step / 2, static_cast<size_t>(std::min(step + 1, end - at) - step / 2), doc);
}

// The codes of postings, of 32 or of 16 bits.
struct Codes {
    const void* values;
    bool is_wide;
    template <class Code>
    const Code* from(ptrdiff_t i) const { return static_cast<const Code*>(values) + i; }
    size_t operator[](ptrdiff_t i) const { return is_wide ? *from<uint32_t>(i) : *from<uint16_t>(i); }
};

// One term of a query. `base` is what a document without the term is given, `most` at least the weight of any document.
struct Term {
    const int32_t* doc;  // the first posting that was not read
    const int32_t* end;
    double idf, base, most;
    const int32_t* seek = nullptr;  // where the next document is looked up
    double gain() const { return std::max(most - base, 0.0); }
    // Whether a document has the term; documents are looked up in ascending order.
    bool finds(int32_t wanted) {
        seek = steelyard::seek(seek, end, wanted);
        return seek != end && *seek == wanted;
    }
};

// Adding any weight to -0.0 gives the weight, and no sum of weights is -0.0: it marks a document without any term.
constexpr double kUntouched = -0.0;
inline bool never_met(double sum) { return sum == 0 && std::signbit(sum); }

struct Query {
    std::vector<Term> terms;
    Best best;
    double untouched = kUntouched;  // the sum of a document that has none of the terms
    bool based = false;             // whether some term gives anything to a document without it
    int32_t next = 0;               // no document before it has to be read

    // The terms by gain, lowest first. Documents that have only the first `skipped` of them cannot be among the best;
    // all of them together give less than `skipped_gain`.
    std::vector<uint32_t> by_gain;
    std::vector<uint8_t> is_skipped;
    size_t skipped = 0;
    double skipped_gain = 0, bases = 0, rounding = 0;
    int wait = 0, patience = 1;  // the windows that are read without skipping terms, and how many these are the next time

    Query(std::vector<Term> of, size_t k) : terms(std::move(of)), best(k), by_gain(terms.size()), is_skipped(terms.size(), 0) {
        for (Term& term : terms) {
            based |= term.base != 0;
            bases += term.base;
            rounding += std::abs(term.most) + std::abs(term.base) + std::abs(term.idf);
            term.seek = term.doc;
        }
        if (based)
            for (const Term& term : terms) untouched += term.base;
        // Far more than the rounding errors of sums of so many numbers.
        rounding *= 1e-12 * static_cast<double>(terms.size() + 100);
        std::iota(by_gain.begin(), by_gain.end(), 0u);
        std::stable_sort(by_gain.begin(), by_gain.end(), [this](uint32_t a, uint32_t b) { return terms[a].gain() < terms[b].gain(); });
    }
    // Whether a score of at most bases + gain is too low.
    bool too_low(double gain) const { return best.full() && bases + gain + rounding < best.worst(); }

    void split() {
        while (skipped < terms.size() && too_low(skipped_gain + terms[by_gain[skipped]].gain())) {
            skipped_gain += terms[by_gain[skipped]].gain();
            is_skipped[by_gain[skipped++]] = 1;
        }
    }
};

// Which of eight sums are above a bound: the lowest bit stands for the first.
inline unsigned which_of_eight(const double* sums, double bound) {
#if defined(__SSE2__) || defined(_M_X64)
    const __m128d limit = _mm_set1_pd(bound);
    const auto pair = [&](int i) { return _mm_castpd_si128(_mm_cmpgt_pd(_mm_loadu_pd(sums + i), limit)); };
    const __m128i low = _mm_packs_epi32(pair(0), pair(2)), high = _mm_packs_epi32(pair(4), pair(6));
    const auto bits = static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(_mm_packs_epi32(low, high), _mm_setzero_si128())));
    return bits;
#else
    double most = sums[0];
    STEELYARD_UNROLL for (int i = 1; i < 8; ++i) most = sums[i] > most ? sums[i] : most;
    unsigned bits = 0;
    if (most > bound || most != most)
        STEELYARD_UNROLL for (int i = 0; i < 8; ++i) bits |= static_cast<unsigned>(sums[i] > bound) << i;
    return bits;
#endif
}

// Searches one window of documents after another, all queries in each: the sums of a window stay in the first-level cache,
// and the postings of words that many queries share in the second.
//
// The kinds of weights and of codes are branches, which are predicted, and no parameters of a template: all of this would be
// compiled four times.
class Search {
   public:
    // `docs` and `codes` are those of all postings.
    Search(const int32_t* docs, const Codes& codes, int32_t documents, size_t k, bool matching, const Factors& factors)
        : docs_(docs), codes_(codes), documents_(documents), k_(std::min(k, static_cast<size_t>(documents))), matching_(matching),
          factors_(factors), sums_(kWindow, kUntouched), fresh_(kWindow), met_(kWindow, 0) {}

    // Finds the best k documents of each query, best first.
    void run(std::vector<Query>& queries) {
        if (k_ == 0) return;
        std::vector<std::vector<Term>> unread;
        if (!matching_)
            for (const Query& query : queries) unread.push_back(query.terms);
        for (Query& query : queries)
            if (is_short(query)) read_by_document(query);
        for (int32_t first = 0; first < documents_; first += kWindow) {
            const int32_t size = std::min(kWindow, documents_ - first);
            for (Query& query : queries)
                if (query.next < first + size) window(query, first, size);
        }
        for (size_t i = 0; i < queries.size(); ++i) {
            Best& best = queries[i].best;
            best.cut(buckets_);
            buckets_.sort(best.found());
            if (!matching_ && (!best.full() || best.worst() <= queries[i].untouched)) fill(queries[i], unread[i]);
        }
    }

   private:
    static constexpr int32_t kWindow = 4096;

    const int32_t* const docs_;
    const Codes codes_;
    const int32_t documents_;
    const size_t k_;
    const bool matching_;
    const Factors factors_;
    std::vector<double> sums_, fresh_;
    std::vector<uint8_t> met_;  // of the places of a window, with bases: whether the document has a term
    std::vector<int32_t> places_;
    std::vector<Scored> candidates_;  // with what the terms that are not skipped give them
    Buckets buckets_;

    double weight(const Term& term, const int32_t* posting) const {
        const size_t code = codes_[posting - docs_], known = code < factors_.codes ? code : 0;
        return factors_.is_long ? LongWeight::of(term.idf, factors_.values + LongWeight::kFactors * known)
                                : ShortWeight::of(term.idf, factors_.values + ShortWeight::kFactors * known);
    }
    // Passes the place and the weight of each of the first n unread postings of a term.
    template <class Use>
    STEELYARD_INLINE void each_weight(const Term& term, size_t n, Use use) const {
        if (codes_.is_wide)
            factors_.is_long ? each_weight_of<uint32_t, LongWeight>(term, n, use) : each_weight_of<uint32_t, ShortWeight>(term, n, use);
        else
            factors_.is_long ? each_weight_of<uint16_t, LongWeight>(term, n, use) : each_weight_of<uint16_t, ShortWeight>(term, n, use);
    }
    template <class Code, class Weight, class Use>
    STEELYARD_INLINE void each_weight_of(const Term& term, size_t n, Use use) const {
        // Copies in registers: the compiler cannot know that a sum is none of them.
        const int32_t* const doc = term.doc;
        const Code* const code = codes_.from<Code>(doc - docs_);
        const double* const factors = factors_.values;
        const size_t codes = factors_.codes;
        const double idf = term.idf;
        for (size_t i = 0; i < n; ++i)
            use(i, place(doc[i]), Weight::of(idf, factors + Weight::kFactors * (sizeof(Code) > 2 && code[i] >= codes ? 0 : code[i])));
    }
    // The place of a document in its window; within it also where the documents of a term do not ascend, which is not checked.
    static STEELYARD_INLINE size_t place(int32_t doc) { return static_cast<uint32_t>(doc) % static_cast<uint32_t>(kWindow); }
    // How many unread postings a term has in a window.
    static size_t count(const Term& term, int32_t limit) {
        const auto most = std::min<size_t>(static_cast<size_t>(term.end - term.doc), kWindow);
        return static_cast<size_t>(first_from(term.doc, most, limit) - term.doc);
    }

    // Whether a query has so few postings that visiting every window takes longer than reading them in one go.
    bool is_short(const Query& query) const {
        constexpr int32_t kPerWindow = 8;
        ptrdiff_t postings = 0;
        for (const Term& term : query.terms) postings += term.end - term.doc;
        return postings <= (documents_ + kWindow - 1) / kWindow * kPerWindow;
    }
    // Scores all documents that have a term, one after another.
    void read_by_document(Query& query) {
        constexpr int32_t kNone = std::numeric_limits<int32_t>::max();
        query.next = documents_;
        heads_.clear();
        for (const Term& term : query.terms) heads_.push_back(term.doc != term.end ? *term.doc : kNone);
        while (!heads_.empty()) {
            const int32_t doc = *std::min_element(heads_.begin(), heads_.end());
            if (doc == kNone) return;
            double sum = kUntouched;
            for (size_t i = 0; i < heads_.size(); ++i) {
                Term& term = query.terms[i];
                if (heads_[i] == doc) {
                    sum += weight(term, term.doc);
                    heads_[i] = ++term.doc != term.end ? *term.doc : kNone;
                } else if (query.based) {
                    sum += term.base;
                }
            }
            if (doc >= 0 && doc < documents_) query.best.offer({sum, doc}, buckets_);
        }
    }
    std::vector<int32_t> heads_;  // the next document of each term

    std::vector<size_t> counts_;  // of the postings of each term in the window

    void window(Query& query, int32_t first, int32_t size) {
        query.split();
        const int32_t limit = first + size;
        size_t postings = 0;
        double gain = query.skipped_gain, skipped_postings = 0;
        query.next = documents_;
        counts_.resize(query.terms.size());
        for (size_t i = 0; i < query.terms.size(); ++i) {
            Term& term = query.terms[i];
            counts_[i] = 0;
            if (query.is_skipped[i]) {
                skipped_postings += static_cast<double>(term.end - term.doc);
                continue;
            }
            const size_t n = counts_[i] = count(term, limit);
            if (n > 0) gain += term.gain();
            postings += n;
            if (n < static_cast<size_t>(term.end - term.doc)) query.next = std::min(query.next, std::max(term.doc[n], limit));
        }
        if (postings == 0) return;
        if (query.too_low(gain)) return pass(query);
        const bool split = query.skipped > 0 || (query.based && is_sparse(postings, size));
        if (!split) return all(query, first, size, postings);
        // About how many postings of the skipped terms are in the window.
        const double in_window = skipped_postings * size / std::max(1, documents_ - first);
        if (query.wait > 0 || (query.skipped > 0 && in_window < static_cast<double>(postings))) {
            query.wait = std::max(0, query.wait - 1);
            return all(query, first, size, postings + read_skipped(query, first, limit));
        }

        add_gains(query);
        // What the terms that were read must give at least.
        double least = -std::numeric_limits<double>::infinity();
        if (query.best.full()) least = query.best.worst() - query.bases - query.skipped_gain - query.rounding;
        find_candidates(query, first, size, postings, least);
        // A candidate takes as long as reading so many postings. If there were too many, the next windows are read at once.
        constexpr double kCandidate = 60;
        if (kCandidate * static_cast<double>(candidates_.size()) > static_cast<double>(postings) + in_window) {
            query.wait = query.patience;
            query.patience = std::min(2 * query.patience, 64);
            return all(query, first, size, postings + read_skipped(query, first, limit));
        }
        query.patience = 1;
        for (const Scored& one : candidates_)
            if (may_be_best(query, one)) query.best.offer({score(query, one.doc), one.doc}, buckets_);
        pass(query);
    }

    // The postings of the skipped terms in the window are read as well; how many there are.
    size_t read_skipped(Query& query, int32_t first, int32_t limit) {
        size_t postings = 0;
        for (size_t i = 0; i < query.terms.size(); ++i) {
            if (!query.is_skipped[i]) continue;
            Term& term = query.terms[i];
            term.doc = term.seek = steelyard::seek(term.doc, term.end, first);
            postings += counts_[i] = count(term, limit);
        }
        return postings;
    }

    // The postings of the window are done.
    void pass(Query& query) const {
        for (size_t i = 0; i < query.terms.size(); ++i) {
            if (counts_[i] == 0) continue;
            query.terms[i].doc += counts_[i];
            query.terms[i].seek = query.terms[i].doc;
        }
    }

    // Scores all documents of the window.
    void all(Query& query, int32_t first, int32_t size, size_t postings) {
        double* const sums = sums_.data();
        for (size_t i = 0; i < query.terms.size(); ++i) {
            const Term& term = query.terms[i];
            const size_t n = counts_[i];
            if (!query.based) {
                each_weight(term, n, [sums](size_t, size_t at, double weight) { sums[at] += weight; });
                continue;
            }
            double* const fresh = fresh_.data();
            const double base = term.base;
            each_weight(term, n, [this, sums, fresh](size_t j, size_t at, double weight) {
                fresh[j] = sums[at] + weight;
                met_[at] = 1;
            });
            for (int32_t j = 0; j < size; ++j) sums[j] += base;
            for (size_t j = 0; j < n; ++j) sums[place(term.doc[j])] = fresh[j];
        }
        if (is_sparse(postings, size) && !query.based) {
            places_.clear();
            each_posting(query, [&](size_t at) { places_.push_back(static_cast<int32_t>(at)); });
            std::sort(places_.begin(), places_.end());
            for (const int32_t at : places_) {
                // A document that has several of the terms is offered once.
                if (at < size && !never_met(sums[at])) query.best.offer({sums[at], first + at}, buckets_);
                sums[at] = kUntouched;
            }
        } else {
            each_above(size, query.best.full() ? query.best.worst() : -std::numeric_limits<double>::infinity(), [&](int32_t at) {
                if (query.based ? met_[static_cast<size_t>(at)] != 0 : !never_met(sums[at])) query.best.offer({sums[at], first + at}, buckets_);
            });
            std::fill(sums_.begin(), sums_.end(), kUntouched);
            if (query.based) std::fill(met_.begin(), met_.end(), uint8_t{0});
        }
        pass(query);
    }
    static bool is_sparse(size_t postings, int32_t size) { return postings * 16 < static_cast<size_t>(size); }

    template <class Use>
    void each_posting(const Query& query, Use use) const {
        for (size_t i = 0; i < query.terms.size(); ++i)
            for (size_t j = 0; j < counts_[i]; ++j) use(place(query.terms[i].doc[j]));
    }
    // Passes the places with a sum above a bound, ascending.
    template <class Use>
    void each_above(int32_t size, double bound, Use use) const {
        const double* const sums = sums_.data();
        for (int32_t i = 0; i < size; i += 8)
            for (unsigned bits = which_of_eight(sums + i, bound); bits != 0; bits &= bits - 1)
                if (const int32_t at = i + static_cast<int32_t>(lowest_bit(bits)); at < size) use(at);
    }

    // Adds what the terms that are not skipped give above their bases, in any order.
    void add_gains(const Query& query) {
        double* const sums = sums_.data();
        for (size_t i = 0; i < query.terms.size(); ++i) {
            const double base = query.terms[i].base;
            each_weight(query.terms[i], counts_[i], [sums, base](size_t, size_t at, double weight) { sums[at] += weight - base; });
        }
    }
    // The documents of the window whose sum is above `least`, ascending; the sums are reset.
    void find_candidates(const Query& query, int32_t first, int32_t size, size_t postings, double least) {
        candidates_.clear();
        double* const sums = sums_.data();
        if (is_sparse(postings, size)) {
            each_posting(query, [&](size_t at) {
                if (sums[at] > least && at < static_cast<size_t>(size)) candidates_.push_back({sums[at], first + static_cast<int32_t>(at)});
                sums[at] = -std::numeric_limits<double>::infinity();
            });
            each_posting(query, [&](size_t at) { sums[at] = kUntouched; });
            std::sort(candidates_.begin(), candidates_.end(), [](const Scored& a, const Scored& b) { return a.doc < b.doc; });
        } else {
            each_above(size, least, [&](int32_t at) { candidates_.push_back({sums[at], first + at}); });
            std::fill(sums_.begin(), sums_.end(), kUntouched);
        }
    }
    // Looks a candidate up in the skipped terms, largest gain first, until it is too low.
    bool may_be_best(Query& query, const Scored& candidate) const {
        double gain = candidate.score, rest = query.skipped_gain;
        for (size_t i = query.skipped; i-- > 0;) {
            if (query.too_low(gain + rest)) return false;
            Term& term = query.terms[query.by_gain[i]];
            rest -= term.gain();
            if (term.finds(candidate.doc)) gain += weight(term, term.seek) - term.base;
        }
        return !query.too_low(gain);
    }
    // The score of a document; documents are looked up in ascending order.
    double score(Query& query, int32_t doc) const {
        double sum = kUntouched;
        for (Term& term : query.terms) {
            if (term.finds(doc))
                sum += weight(term, term.seek);
            else if (query.based)
                sum += term.base;
        }
        return sum;
    }

    // Adds the first documents that have none of the terms, if they beat the worst of those that have some. Both are sorted.
    void fill(Query& query, std::vector<Term>& terms) const {
        std::vector<Scored>& best = query.best.found();
        const auto sorted = static_cast<ptrdiff_t>(best.size());
        size_t found = 0;
        for (int32_t doc = 0; doc < documents_ && found < k_; ++doc) {
            bool met = false;
            for (Term& term : terms) {
                while (term.doc != term.end && *term.doc < doc) ++term.doc;
                met |= term.doc != term.end && *term.doc == doc;
            }
            if (met) continue;
            ++found;
            best.push_back({query.untouched + 0.0, doc});
        }
        const auto middle = best.begin() + sorted;
        std::vector<Scored> merged(best.size());
        std::merge(best.begin(), middle, middle, best.end(), merged.begin(), Before());
        merged.resize(std::min(merged.size(), k_));
        best.swap(merged);
    }
};

}  // namespace steelyard
