// Randomised Tukey HSD: the range of the runs' sums in every draw (steelyard.statistics.corrections.shuffled_ranges).
//
// The scores are whole numbers, so that sums are exact and equal those of the portable implementation.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace nb = nanobind;

namespace steelyard {

namespace {

template <class T>
using Matrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// scores: queries x runs. orders: orders of the runs. picked: draws x queries, the order of each query in each draw.
void shuffled_ranges(Matrix<const double> scores, Matrix<const uint8_t> orders, Matrix<const int64_t> picked,
                     nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> ranges) {
    const size_t queries = scores.shape(0), runs = scores.shape(1), draws = picked.shape(0);
    if (orders.shape(1) != runs || picked.shape(1) != queries || ranges.shape(0) != draws || runs == 0)
        throw nb::value_error("scores, orders, picked and ranges do not belong together");
    const uint8_t* const order = orders.data();
    if (std::any_of(order, order + orders.size(), [&](uint8_t run) { return run >= runs; }))
        throw nb::value_error("an order has a run that does not exist");
    const auto known = static_cast<int64_t>(orders.shape(0));
    const int64_t* const place = picked.data();
    if (std::any_of(place, place + picked.size(), [&](int64_t number) { return number < 0 || number >= known; }))
        throw nb::value_error("an order that does not exist was picked");
    nb::gil_scoped_release unlocked;
    // Query by query, so that its scores and the sums of a few draws stay in the first-level cache.
    const size_t together = std::max<size_t>(1, 2048 / runs);
    std::vector<double> sums(together * runs);
    for (size_t first = 0; first < draws; first += together) {
        const size_t last = std::min(draws, first + together);
        std::fill(sums.begin(), sums.end(), 0.0);
        for (size_t query = 0; query < queries; ++query) {
            const double* const row = scores.data() + query * runs;
            for (size_t draw = first; draw < last; ++draw) {
                const uint8_t* const dealt = order + static_cast<size_t>(place[draw * queries + query]) * runs;
                double* const sum = sums.data() + (draw - first) * runs;
#if defined(__GNUC__)
                // The orders do not fit in the cache; the one of a later draw is fetched while this one is used.
                if (draw + 4 < last) {
                    const uint8_t* const later = order + static_cast<size_t>(place[(draw + 4) * queries + query]) * runs;
                    __builtin_prefetch(later);
                    __builtin_prefetch(later + runs - 1);
                }
#endif
                for (size_t run = 0; run < runs; ++run) sum[run] += row[dealt[run]];
            }
        }
        for (size_t draw = first; draw < last; ++draw) {
            const double* const sum = sums.data() + (draw - first) * runs;
            const auto [least, most] = std::minmax_element(sum, sum + runs);
            ranges.data()[draw] = *most - *least;
        }
    }
}

}  // namespace

void register_ranges(nb::module_& m) {
    m.def("shuffled_ranges", &shuffled_ranges, nb::arg("scores"), nb::arg("orders"), nb::arg("picked"),
          nb::arg("ranges").noconvert());
}

}  // namespace steelyard
