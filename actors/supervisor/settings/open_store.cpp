#include "actors/supervisor/settings/open_store.hpp"

#include <filesystem>

#include "app/state_reading.hpp"
#include "base/log/log.hpp"

namespace skein::supervisor {

std::optional<dtype> stored_state_type(const config::config& c) {
  if (c.sessions.state_dtype == "auto") return {};
  return c.sessions.state_dtype == "fp16" ? dtype::f16 : dtype::f32;
}

result<opened_store> open_store(const config::config& c) {
  storage::database_options options;
  if (!c.server.state_dir.empty()) options.directory = storage::database_directory(c.server.state_dir);
  options.cache_bytes = c.sessions.cache_bytes_max;
  options.write_buffer_bytes = c.sessions.write_buffer_bytes_max;
  options.open_files_max = c.sessions.open_files_max;
  std::error_code ignored;
  if (!c.server.state_dir.empty()) std::filesystem::remove_all(cli::looked_at(c.server.state_dir), ignored);
  auto database = storage::database::open(options);
  if (!database) return cli::with_repair_named(database.error(), c.server.state_dir);
  opened_store store;
  store.database = std::move(*database);
  store.models = std::make_shared<storage::model_table>();
  store.states = std::make_shared<storage::state_store>(store.database, store.models, stored_state_type(c));
  log::info("session store ready",
            {{"directory", c.server.state_dir.empty() ? std::string("none: in memory") : c.server.state_dir}});
  return store;
}

}  // namespace skein::supervisor
