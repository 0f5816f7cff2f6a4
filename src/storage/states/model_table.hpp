#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "model/state_value.hpp"

namespace skein::storage {

/// The facts about a model that are needed to read and write its sessions and states.
struct known_model {
  model::state_format state;  ///< of the newest engine of this model; stored states are converted to it when loaded
  std::uint32_t vocab = 0;    ///< vocabulary size; every token id is below it
  std::string newer = {};     ///< of a former identity: the present one of the same model
};

/// The models loaded since the process started, by identity. States of other models are not touched. Entries are never
/// removed, because states of an unloaded model are still written. Thread safe.
class model_table {
 public:
  model_table() = default;
  model_table(std::string identity, const known_model& model) { add(std::move(identity), model); }

  void add(std::string identity, const known_model& model);
  /// Adds a model that was known by another identity to earlier versions, whose sessions and states have that one.
  void add(const std::string& identity, const std::string& former, known_model model);
  [[nodiscard]] std::optional<known_model> find(std::string_view identity) const;
  /// Whether both are identities of one model, as far as the process has seen.
  [[nodiscard]] bool same(std::string_view one, std::string_view other) const;
  /// The error for a model that is not in the table; lists the known ones.
  [[nodiscard]] error unknown(std::string_view what, std::string_view identity) const;
  /// Bytes of the largest state of all models.
  [[nodiscard]] std::size_t state_bytes_max() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, known_model, std::less<>> models_;
};

}  // namespace skein::storage
