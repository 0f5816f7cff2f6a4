#pragma once
#include <memory>
#include <optional>

#include "base/result.hpp"
#include "config/config.hpp"
#include "storage/database/database.hpp"
#include "storage/states/model_table.hpp"
#include "storage/states/state_store.hpp"

namespace skein::supervisor {

/// The stores of sessions and states of all models.
struct opened_store {
  std::shared_ptr<storage::database> database;
  std::shared_ptr<storage::model_table> models;  ///< initially empty; loading a model adds it
  std::shared_ptr<storage::state_store> states;
};

/// Opens server.state_dir, or a store in memory. Errors: those of database::open.
[[nodiscard]] result<opened_store> open_store(const config::config& c);

/// The element type of stored states; none: that of the engine that computed them.
[[nodiscard]] std::optional<dtype> stored_state_type(const config::config& c);

}  // namespace skein::supervisor
