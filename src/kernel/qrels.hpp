// TREC qrels from a file in memory.
#pragma once

#include <vector>

#include "judged.hpp"

namespace steelyard {

// Fills the judged documents, whose texts stay in the buffer, and their grades. False if the file is not a clean one: four
// words per line, the second always 0 or always Q0, the last a whole number; the lines of a query together, each document
// once; UTF-8 without a byte order mark or comments.
bool read_qrels(const char* begin, const char* end, JudgedTexts& judged, std::vector<double>& grades);

}  // namespace steelyard
