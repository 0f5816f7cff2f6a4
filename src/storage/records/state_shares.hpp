#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "storage/records/records.hpp"

namespace skein::storage {

/// Which sessions use states of another session: a fork continues versions of its origin and shares their states. Such
/// a state is not copied; it stays until no session has its version. Not thread safe; holds for each fork the few
/// states
/// that existed when it was created.
class state_shares {
 public:
  /// Replaces the borrower's previous list.
  void set(session_uid borrower, std::vector<state_key> states);
  void forget(session_uid borrower);

  [[nodiscard]] const std::vector<state_key>& of(session_uid borrower) const;
  [[nodiscard]] std::optional<state_key> find(session_uid borrower, version_id version) const;
  /// Whether a session other than its owner and `except` uses this state.
  [[nodiscard]] bool borrowed(const state_key& state, session_uid except = 0) const;

 private:
  std::map<session_uid, std::vector<state_key>> by_borrower_;
  std::unordered_map<state_key, std::uint32_t> borrowers_;
};

}  // namespace skein::storage
