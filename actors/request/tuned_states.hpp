#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/records.hpp"

namespace skein::request {

/// A state that was trained in place of a prompt; a request may begin with it.
struct tuned_state {
  std::string name;
  std::string identity;  ///< of its numbers (model::state_identity): a session remembers with which it began
  storage::state_buffer values;
  std::optional<float> temperature, top_p;  ///< for requests that name none
};

/// The tuned states of the model. All io threads share it: whoever reads gets a list that never changes, and a change
/// puts another in its place.
class tuned_states {
 public:
  using list = std::vector<tuned_state>;

  [[nodiscard]] std::shared_ptr<const list> all() const;
  /// Adds it; one of the same name is replaced. Errors: overloaded above `states_max`.
  [[nodiscard]] result<void> put(tuned_state state, std::size_t states_max);
  /// False when there is none of that name.
  [[nodiscard]] bool remove(std::string_view name);
  void clear();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const list> states_ = std::make_shared<const list>();
};

/// What a request begins with.
struct chosen_model {
  bool known = false;                ///< `model` names the model, or the model and a state, or is empty
  std::optional<tuned_state> state;  ///< none: the zero state
};

/// The state that a request means by `model` ("<model> <state>", or a state's bare name) or by `state_name`, which
/// counts more. `names` are the model's own. Errors: not_found naming state_name.
[[nodiscard]] result<chosen_model> choose_model(const std::vector<std::string>& names, const tuned_states::list& states,
                                                std::string_view model, std::string_view state_name);

/// The path of a state file that a client names, below `root`: no link and no ".." leads out of it.
/// Errors: forbidden without a root and for what is not below it; missing_file.
[[nodiscard]] result<std::string> path_below(const std::string& root, const std::string& name);

}  // namespace skein::request
