#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "storage/records.hpp"

namespace skein::storage {

/// Which sessions live on states that another one made: a fork goes on from versions of its origin, and their states
/// serve it too. There is no copy of such a state; it stays until nobody has its version any more. Plain; of each fork
/// it holds the few states that there were when it began.
class state_shares {
 public:
  /// In place of what it shared before.
  void set(session_uid borrower, std::vector<state_key> states);
  void forget(session_uid borrower);

  [[nodiscard]] const std::vector<state_key>& of(session_uid borrower) const;
  [[nodiscard]] std::optional<state_key> find(session_uid borrower, version_id version) const;
  /// Whether somebody but its maker, and but `except`, has this state.
  [[nodiscard]] bool borrowed(const state_key& state, session_uid except = 0) const;

 private:
  std::map<session_uid, std::vector<state_key>> by_borrower_;
  std::unordered_map<state_key, std::uint32_t> borrowers_;
};

}  // namespace skein::storage
