#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/files/found_model.hpp"

/// Gives tensors their original names and orientation after a table of rules.
namespace skein::model {

/// What is done to a tensor besides its name.
enum class change : std::uint8_t {
  none,
  vector,     ///< gets the shape (1, 1, n), which vectors of the mixes have in the original
  transpose,  ///< its last two axes are swapped
  rows        ///< its rows are tensors of their own with the shape (1, 1, n)
};

/// `theirs` is a name, or ends in "*", which matches the rest of a name; the rest is appended to `original`.
struct rename_rule {
  std::string_view theirs;
  std::string_view original;  ///< for change::rows the names of all rows, separated by spaces
  change how = change::none;
};

/// Names of one module of a layer, such as its attention, below a prefix.
struct module_rules {
  std::string_view theirs, original;  ///< the prefixes
  std::span<const rename_rule> rules;
};

struct naming {
  std::string_view form;                       ///< for people
  std::string_view layers;                     ///< what stands before the number of a layer
  std::span<const rename_rule> outer;          ///< whole names, tried first
  std::span<const rename_rule> layer;          ///< names below a layer
  std::span<const module_rules> modules = {};  ///< more of them
};

/// Collects what happened to tensors, as lines for people.
class change_notes {
 public:
  /// `name`: of the tensor below its layer.
  void add(std::string_view what, std::string_view name);
  void write(found_model& found) const;

 private:
  struct tensors {
    std::set<std::string, std::less<>> names;
    std::size_t count = 0;
  };
  std::map<std::string, tensors, std::less<>> by_change_;
};

/// Renames all tensors. Errors: unsupported for a tensor without a rule, bad_file for one whose shape does not fit.
[[nodiscard]] result<void> rename(found_model& found, const naming& names);

/// Changes one tensor in place, not its name. Errors: bad_file. Not for change::rows.
[[nodiscard]] result<void> apply(const found_model& found, found_tensor& tensor, change how);

/// nullptr if there is no tensor of that name.
[[nodiscard]] const found_tensor* find_tensor(const found_model& found, std::string_view name);

/// The part of a name behind "<before><number>."; empty if the name has another form. `number` then has the number.
[[nodiscard]] std::string_view below_layer(std::string_view name, std::string_view before, std::string_view& number);

}  // namespace skein::model
