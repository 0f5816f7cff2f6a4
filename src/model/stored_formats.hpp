#pragma once
#include <string>
#include <vector>

#include "kernels/weights/weight_plan.hpp"
#include "model/checkpoint.hpp"

namespace skein::model {

/// In which of our formats matrices run that the file has in quantised types of ggml, unless a format is named: the one
/// of about the same size. Q8_0 and Q4_0 keep their codes and scales (int8 and int4 with groups of 32); types of five
/// and six bits become int8, those of two to four int4 with groups of 32.
struct stored_formats {
  std::string name;                               ///< "int4-32 (Q4_K, Q6_K)", the most frequent first; empty: none
  std::vector<kernels::weight_plan::rule> rules;  ///< of all matrices, also those that are not quantised
};
[[nodiscard]] stored_formats formats_in_file(const checkpoint& file);

/// The formats of all matrices as the file has them: blocks of Q8_0 and Q4_0 in the format with the same codes, other
/// types of ggml as they are decoded. The name is the most frequent quantised one; empty: none.
[[nodiscard]] stored_formats formats_kept(const checkpoint& file);

}  // namespace skein::model
