#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json/json.hpp"

namespace skein::protocol {

/// Records which members of a body were read, to find the ignored ones.
class asked_fields {
 public:
  void note(std::string_view name) { names_.emplace(name); }
  /// The names of an object's members that were not read, in the order of the object.
  [[nodiscard]] std::vector<std::string> others_of(json_value object) const;

 private:
  std::set<std::string, std::less<>> names_;
};

/// The names as a header value, "a, b". Special characters are percent-encoded, names are cut to 64 bytes, and after 32
/// names "..." follows.
[[nodiscard]] std::string ignored_fields_header(std::span<const std::string> names);

}  // namespace skein::protocol
