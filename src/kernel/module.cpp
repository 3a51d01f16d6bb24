// The extension module steelyard._kernel: one registration function per source file.
#include <nanobind/nanobind.h>

namespace steelyard {
void register_bm25(nanobind::module_& m);
void register_columns(nanobind::module_& m);
void register_files(nanobind::module_& m);
void register_frames(nanobind::module_& m);
void register_lists(nanobind::module_& m);
void register_mappings(nanobind::module_& m);
void register_shuffles(nanobind::module_& m);
void register_trec_lines(nanobind::module_& m);
}  // namespace steelyard

NB_MODULE(_kernel, m) {
    // What Python still holds when it ends is no error of a user, who would see the warning.
    nanobind::set_leak_warnings(false);
    m.doc() = "Steelyard's native kernel: the fast paths of steelyard.alignment, steelyard.fusion, steelyard.io, steelyard.retrievers, steelyard.spark and steelyard.statistics.";
    steelyard::register_bm25(m);
    steelyard::register_columns(m);
    steelyard::register_files(m);
    steelyard::register_frames(m);
    steelyard::register_lists(m);
    steelyard::register_mappings(m);
    steelyard::register_shuffles(m);
    steelyard::register_trec_lines(m);
}
