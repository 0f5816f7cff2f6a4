#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/requests/object_reader.hpp"

/// Fields as clients of the older servers send them: numbers and booleans may be strings.
namespace skein::protocol {

/// A non-empty string; anything else is reported.
[[nodiscard]] std::string required_text(const object_reader& body, std::string_view name);
[[nodiscard]] std::optional<float> lenient_number(const object_reader& body, std::string_view name, double min,
                                                  double max);
[[nodiscard]] std::optional<bool> lenient_flag(const object_reader& body, std::string_view name);

/// Weights of a mixture: at most `count_max`, none negative, with a sum above zero. nullopt for an empty list.
[[nodiscard]] std::optional<std::vector<float>> read_weights(const object_reader& body, std::string_view name,
                                                             std::size_t count_max);

/// The body, or an empty object if it is only white space.
[[nodiscard]] std::string_view or_empty_object(std::string_view body);

}  // namespace skein::protocol
