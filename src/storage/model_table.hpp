#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "model/state_layout.hpp"

namespace skein::storage {

/// What must be known of a model to read and write its sessions and states.
struct known_model {
  model::state_layout layout;
  std::uint32_t vocab = 0;  ///< every token is below it
};

/// The models that were loaded since the process began, by identity. States of others stay where they are. Thread safe;
/// nothing is ever taken out: states of a model that was unloaded are still written.
class model_table {
 public:
  model_table() = default;
  model_table(std::string identity, const known_model& model) { add(std::move(identity), model); }

  void add(std::string identity, const known_model& model);
  [[nodiscard]] std::optional<known_model> find(std::string_view identity) const;
  /// What a request for `identity` gets where that is not in here; names those that are.
  [[nodiscard]] error unknown(std::string_view what, std::string_view identity) const;
  /// Of the largest state of all models.
  [[nodiscard]] std::size_t state_bytes_max() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, known_model, std::less<>> models_;
};

}  // namespace skein::storage
