#pragma once
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "protocol/json.hpp"

namespace skein::protocol {

/// Which members of a body its reader asked for; the others are what it ignored.
class asked_fields {
 public:
  void note(std::string_view name) { names_.emplace(name); }
  /// The names of an object's members that nobody asked for, in the order of the object.
  [[nodiscard]] std::vector<std::string> others_of(json_value object) const;

 private:
  std::set<std::string, std::less<>> names_;
};

/// "a, b" as the value of a header, whatever the names are: what is not plain in them is escaped as in a URL. Of long
/// names the first 64 bytes, of many the first 32 and then "...".
[[nodiscard]] std::string ignored_fields_header(std::span<const std::string> names);

}  // namespace skein::protocol
