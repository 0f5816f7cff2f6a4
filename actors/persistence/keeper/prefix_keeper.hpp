#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "actors/persistence/keeper/persistence_options.hpp"
#include "actors/persistence/open/keeper_ports.hpp"
#include "actors/persistence/prefixes/prefix_tree.hpp"
#include "actors/persistence/prefixes/seen_prefixes.hpp"
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/persistence/states/tier_mover.hpp"

namespace skein::persistence {

/// The prefix cache of the persistence actor, without a thread of its own: the tree of prefixes and their states in RAM
/// and on disk. States are written to disk when RAM is short and at shutdown.
class prefix_keeper {
 public:
  prefix_keeper(const persistence_options& options, keeper_ports ports, persistence_counters& counters);
  /// Takes over the states, of any model, that earlier processes left on disk.
  void begin();

  void handle(find_prefix&& q);
  void handle(state_kept&& q);

  void tick(bool disk_works);
  /// Writes all dirty states; true if none are left or none can be written.
  [[nodiscard]] bool flush(bool disk_works);
  void publish() const;
  [[nodiscard]] std::optional<std::string> self_check() const;

 private:
  [[nodiscard]] tier_mover::write writer_of(const state_key& key, state_buffer state) const;
  void look_up(find_prefix&& q);
  /// The end, beyond `from`, of the longest earlier prompt that is a prefix of `tokens`; 0: none. Records this prompt's
  /// end.
  [[nodiscard]] std::uint32_t seen_before(const find_prefix& q, std::span<const token_id> tokens, std::uint32_t from);
  /// Whether waiting for the last of these prefixes, which is not in RAM, saves a prompt enough tokens.
  [[nodiscard]] bool pays_to_wait(std::span<const prefix_tree::found> known) const;
  /// Reads a state into RAM for later prompts, one at a time.
  void read_ahead(const state_key& key);
  void arrived(const state_key& key);
  void trim();

  const persistence_options options_;
  keeper_ports ports_;
  persistence_counters& counters_;
  prefix_tree tree_;
  seen_prefixes seen_;
  tier_mover tiers_;
  std::map<state_key, std::vector<find_prefix>> waiting_;  // for a state that is being read
  std::optional<state_key> read_ahead_;                    // being read for later prompts
  steady_time next_expiry_{};
};

}  // namespace skein::persistence
