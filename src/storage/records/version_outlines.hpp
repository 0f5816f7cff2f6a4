#pragma once
#include <map>
#include <optional>
#include <vector>

#include "storage/records/record_codec.hpp"
#include "storage/records/session_check.hpp"
#include "storage/records/version_shares.hpp"

namespace skein::storage {

/// The versions that forks share with other sessions, for code that reads a whole database: where each fork begins, and
/// the outlines of all versions that sessions with forks wrote.
class version_outlines {
 public:
  void add_origin(session_uid fork, fork_origin origin);
  /// `written`: all versions that `owner`, a session with forks, wrote; ordered by number.
  void add(session_uid owner, std::vector<version_outline> written) { written_[owner] = std::move(written); }

  [[nodiscard]] bool has_forks(session_uid owner) const { return shares_.has_forks(owner); }
  /// Null: the session is not a fork.
  [[nodiscard]] const fork_origin* origin_of(session_uid fork) const;
  /// The versions that a fork shares, ordered by number; empty for other sessions. nullopt: one of them is missing.
  [[nodiscard]] std::optional<std::vector<version_outline>> inherited(session_uid fork) const;

 private:
  std::map<session_uid, fork_origin> origins_;
  version_shares shares_;
  std::map<session_uid, std::vector<version_outline>> written_;
};

}  // namespace skein::storage
