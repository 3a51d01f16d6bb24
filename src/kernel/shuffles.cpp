// Randomised Tukey HSD: the sums of the runs in every draw (steelyard.statistics.corrections.add_shuffled).
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

// Add the scores of each query, in the order picked for each draw, to the runs' sums.
//
// scores: queries x runs. orders: each row has an order of the runs twice, so that its shifts are read from it.
// picked: queries x draws, the number of an order times the runs, plus a shift. sums: draws x runs.
void add_shuffled(Matrix<const double> scores, Matrix<const uint32_t> orders, Matrix<const int64_t> picked,
                  Matrix<double> sums) {
    const size_t queries = scores.shape(0), runs = scores.shape(1), draws = sums.shape(0);
    if (runs == 0 || orders.shape(1) != 2 * runs || picked.shape(0) != queries || picked.shape(1) != draws ||
        sums.shape(1) != runs)
        throw nb::value_error("scores, orders, picked and sums do not belong together");
    const uint32_t* const order = orders.data();
    if (std::any_of(order, order + orders.size(), [&](uint32_t run) { return run >= runs; }))
        throw nb::value_error("an order has a run that does not exist");
    const auto known = static_cast<int64_t>(orders.shape(0) * runs);
    const int64_t* const place = picked.data();
    if (std::any_of(place, place + picked.size(), [&](int64_t number) { return number < 0 || number >= known; }))
        throw nb::value_error("an order that does not exist was picked");
    nb::gil_scoped_release unlocked;
    std::vector<double> dealt(orders.size());
    for (size_t query = 0; query < queries; ++query) {
        const double* const row = scores.data() + query * runs;
        for (size_t at = 0; at < dealt.size(); ++at) dealt[at] = row[order[at]];
        for (size_t draw = 0; draw < draws; ++draw) {
            const auto number = static_cast<size_t>(place[query * draws + draw]);
            const double* const scores_dealt = dealt.data() + number + number / runs * runs;
            double* const sum = sums.data() + draw * runs;
            for (size_t run = 0; run < runs; ++run) sum[run] += scores_dealt[run];
        }
    }
}

}  // namespace

void register_shuffles(nb::module_& m) {
    m.def("add_shuffled", &add_shuffled, nb::arg("scores"), nb::arg("orders"), nb::arg("picked"), nb::arg("sums").noconvert());
}

}  // namespace steelyard
