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

#include "actors/persistence/persistence_mailbox.hpp"

namespace skein::persistence {

struct prefix_tree_options {
  std::uint32_t min_tokens = 32;     ///< shorter prefixes are not worth a state
  std::uint32_t every_tokens = 512;  ///< a state after every so many tokens from the start; 0: none of these
  std::uint32_t copies_max = 16;     ///< that one prompt may want
  std::uint32_t wants_max = 4096;    ///< states on their way
  duration patience = std::chrono::minutes(10);  ///< for a state on its way; then somebody else may want it
};

/// After how many tokens of a prompt states are worth keeping, ascending: where the system text and the last turn end,
/// where an earlier prompt ended (`again`, see seen_prefixes; 0: none did), and at every `every_tokens`; of these as
/// many as copies_max leaves, evenly spread. All beyond `from`. With a chunk each at the last multiple of it that
/// leaves a token to feed; without, one at the end too, which serves longer prompts.
[[nodiscard]] std::vector<std::uint32_t> prefix_positions(const prefix_tree_options& options, std::uint32_t size,
                                                          std::uint32_t system_tokens, std::uint32_t turn_tokens,
                                                          std::uint32_t from, std::uint32_t chunk = 0,
                                                          std::uint32_t again = 0);

/// Which prefixes of prompts have a state: a radix tree over token ids for each tenant and initial state. It knows
/// keys, not states; where these are says tiered_cache.
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
  /// Where states of this prompt are wanted that nobody has or wants already. They are wanted from now on, until kept()
  /// or patience runs out.
  [[nodiscard]] std::vector<wanted_copy> want(const tenant_id& tenant, const std::string& initial_state,
                                              std::span<const token_id> tokens, std::uint32_t system_tokens,
                                              std::uint32_t turn_tokens, std::uint32_t from, steady_time now,
                                              std::uint32_t chunk = 0, std::uint32_t again = 0);
  /// A state that was wanted came (`there`) or will not. False: nobody wants it any more.
  [[nodiscard]] bool kept(const state_key& key, bool there);
  /// Found on disk at start. False: another has its place.
  [[nodiscard]] bool add(const state_key& key, const tenant_id& tenant, const std::string& initial_state,
                         std::span<const token_id> tokens);
  void erase(const state_key& key);
  /// Gives out no number up to this one.
  void skip_numbers(std::uint64_t up_to) { last_number_ = std::max(last_number_, up_to); }
  /// Forgets wants whose patience ran out.
  void expire(steady_time now);

  struct description {
    tenant_id tenant;
    std::string initial_state;
    std::vector<token_id> tokens;
  };
  [[nodiscard]] std::optional<description> describe(const state_key& key) const;

  /// What the tokens in the tree take.
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
