#pragma once
#include <cstdint>
#include <string>

#include "actors/persistence/prefixes/prefix_tree.hpp"
#include "actors/persistence/sessions/session_book.hpp"
#include "actors/persistence/sessions/tenant_quota.hpp"
#include "actors/persistence/states/tiered_cache.hpp"
#include "storage/states/state_store.hpp"

namespace skein::persistence {

struct persistence_options {
  storage::state_type file_type = storage::state_type::fp32;  ///< of states in exported sessions
  std::string signature_key;  ///< signs exported sessions and verifies imported ones; empty: no signatures
  std::uint32_t mailbox_max = 2048;
  session_book_options sessions;
  tenant_limits tenants;
  tier_limits session_states;
  bool cache_prefixes = true;
  std::uint32_t prefix_wait_tokens = 1;  ///< a prompt waits for a state on disk only if it saves this number of tokens
  prefix_tree_options prefixes;
  tier_limits prefix_states;
  std::size_t unsaved_bytes_max = std::size_t{64} << 20;  ///< of turns that are only in memory
  std::int64_t session_age_max_ms = 0;                    ///< sessions unused for longer are removed; 0: never
  std::size_t file_bytes_max = std::size_t{1} << 30;      ///< of a session as one file
};

}  // namespace skein::persistence
