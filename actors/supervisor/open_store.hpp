#pragma once
#include <memory>

#include "actors/supervisor/open_engine.hpp"
#include "base/result.hpp"
#include "config/config.hpp"
#include "storage/database.hpp"
#include "storage/state_store.hpp"

namespace skein::supervisor {

/// Where sessions and states of a model are kept.
struct opened_store {
  std::shared_ptr<storage::database> database;
  std::shared_ptr<storage::state_store> states;
};

/// Opens server.state_dir, or a store in memory. Errors: those of database::open.
[[nodiscard]] result<opened_store> open_store(const config::config& c, const opened_engine& opened);

/// The type in which states of this engine are stored.
[[nodiscard]] storage::state_type stored_state_type(const config::config& c);

}  // namespace skein::supervisor
