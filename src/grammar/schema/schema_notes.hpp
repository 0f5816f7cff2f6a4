#pragma once
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "grammar/schema/json_tree.hpp"

namespace skein::grammar {

/// What a schema says and is not enforced as written, one sentence each, beginning with the JSON pointer of its
/// keyword.
class schema_notes {
 public:
  explicit schema_notes(const json_tree& of) : tree_(of) {}

  void add(std::uint32_t value, const std::string& what) {
    auto text = tree_.pointer(value) + ": " + what;
    if (list_.size() < notes_max && std::ranges::find(list_, text) == list_.end()) list_.push_back(std::move(text));
  }
  [[nodiscard]] const std::vector<std::string>& list() const { return list_; }

 private:
  static constexpr std::size_t notes_max = 64;
  const json_tree& tree_;
  std::vector<std::string> list_;
};

}  // namespace skein::grammar
