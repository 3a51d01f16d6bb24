// The extension module steelyard._kernel: one registration function per source file.
#include <nanobind/nanobind.h>

NB_MODULE(_kernel, m) {
    m.doc() = "Steelyard's native kernel: the fast paths of steelyard.alignment.";
}
