#pragma once
#include <cstdint>
#include <optional>

#include "actors/persistence/prefixes/prefix_tree.hpp"
#include "actors/persistence/states/tiered_cache.hpp"
#include "config/config.hpp"
#include "storage/states/state_store.hpp"

namespace skein::persistence {

struct persistence_options {
  std::optional<dtype> file_type;  ///< of states in exported sessions; none: the states' own
  std::uint32_t mailbox_max = 2048;
  config::session_settings sessions;
  tier_limits session_states;
  std::uint32_t prefix_wait_tokens = 1;  ///< a prompt waits for a state on disk only if it saves this number of tokens
  prefix_tree_options prefixes;
  tier_limits prefix_states;
};

}  // namespace skein::persistence
