#pragma once
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "config/config.hpp"

namespace skein::persistence {

struct prefix_tree_options : config::prefix_cache_settings {
  std::uint32_t copies_max = 16;                 ///< copies for one prompt
  std::uint32_t wants_max = 4096;                ///< states that the device is still to send
  duration patience = std::chrono::minutes(10);  ///< wait for the device's state; then another prompt may want it
};

/// The positions in a prompt (in tokens, ascending) whose states are worth keeping: the ends of the system text and of
/// the last turn, the end of an earlier prompt (`again`, see seen_prefixes; 0: none), and multiples of `every_tokens`,
/// evenly thinned to what copies_max leaves. All are beyond `from`. With a chunk, each moves down to a multiple of it
/// that leaves a token to feed; without one, the prompt's end is kept too, for longer prompts.
[[nodiscard]] std::vector<std::uint32_t> prefix_positions(const prefix_tree_options& options, std::uint32_t size,
                                                          std::uint32_t system_tokens, std::uint32_t turn_tokens,
                                                          std::uint32_t from, std::uint32_t chunk = 0,
                                                          std::uint32_t again = 0);

/// The prompt prefixes that have a state: a radix tree over token ids for each tenant and initial state. It holds keys
/// only; tiered_cache holds the states.
class prefix_tree {
 public:
  explicit prefix_tree(const prefix_tree_options& options) : options_(options) {}

  struct found {
    std::uint32_t position = 0;
    state_key key;
  };
  /// All known prefixes of `tokens` that leave at least one token to feed, shortest first.
  [[nodiscard]] std::vector<found> find(const tenant_id& tenant, const std::string& initial_state,
                                        std::span<const token_id> tokens) const;
  /// The positions of this prompt whose states are neither known nor wanted yet. They count as wanted until kept() is
  /// called or their patience runs out.
  [[nodiscard]] std::vector<wanted_copy> want(const tenant_id& tenant, const std::string& initial_state,
                                              std::span<const token_id> tokens, std::uint32_t system_tokens,
                                              std::uint32_t turn_tokens, std::uint32_t from, steady_time now,
                                              std::uint32_t chunk = 0, std::uint32_t again = 0);
  /// A wanted state has arrived (`there`) or never will. False: it is not wanted any more.
  [[nodiscard]] bool kept(const state_key& key, bool there);
  /// Adds a state found on disk at start. False: its number or its prefix is already taken.
  [[nodiscard]] bool add(const state_key& key, const tenant_id& tenant, const std::string& initial_state,
                         std::span<const token_id> tokens);
  void erase(const state_key& key);
  /// Never assigns a number up to this one.
  void skip_numbers(std::uint64_t up_to) { last_number_ = std::max(last_number_, up_to); }
  /// Drops wanted states whose patience ran out.
  void expire(steady_time now);

  struct description {
    tenant_id tenant;
    std::string initial_state;
    std::vector<token_id> tokens;
  };
  [[nodiscard]] std::optional<description> describe(const state_key& key) const;

  /// Memory of the tree's nodes and tokens.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t ready() const { return static_cast<std::uint32_t>(entries_.size()) - wanted_; }
  [[nodiscard]] std::uint32_t wanted() const { return wanted_; }
  [[nodiscard]] std::optional<std::string> self_check() const;

 private:
  using root_key = std::pair<tenant_id, std::string>;
  struct node {
    node* parent = nullptr;
    const root_key* root = nullptr;  // of roots
    std::vector<token_id> edge;      // from the parent to here
    std::map<token_id, std::unique_ptr<node>> children;
    std::uint64_t number = 0;  // of the entry here; 0: none
  };
  struct entry {
    node* at = nullptr;
    bool ready = false;
    steady_time since{};
  };

  node& place(const tenant_id& tenant, const std::string& initial_state, std::span<const token_id> tokens);
  node& split(node& child, std::size_t length);
  void prune(node* at);
  void enter(node& at, std::uint64_t number, bool ready, steady_time now);

  prefix_tree_options options_;
  std::map<root_key, node> roots_;
  std::unordered_map<std::uint64_t, entry> entries_;  // by key number
  std::uint64_t last_number_ = 0;
  std::uint32_t wanted_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace skein::persistence
