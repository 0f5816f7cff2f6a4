#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "protocol/object_reader.hpp"

/// Members as clients of the older servers send them.
namespace skein::protocol {

/// A string that is not empty; else it is reported.
[[nodiscard]] std::string required_text(const object_reader& body, std::string_view name);
/// A number, or digits in a string.
[[nodiscard]] std::optional<float> lenient_number(const object_reader& body, std::string_view name, double min,
                                                  double max);
/// true and false, or "True" and "false" in a string; absent: false.
[[nodiscard]] bool lenient_flag(const object_reader& body, std::string_view name);

}  // namespace skein::protocol
