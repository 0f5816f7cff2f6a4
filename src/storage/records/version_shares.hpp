#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "storage/records/records.hpp"

namespace skein::storage {

/// Which sessions share versions that another session wrote. A fork's own versions have higher numbers than all that it
/// shares, so the number of a version tells which session wrote it. Plain data; a few bytes for each fork.
class version_shares {
 public:
  /// A version and the session that wrote it.
  struct place {
    session_uid owner = 0;
    version_id version = beginning;
    bool operator==(const place&) const = default;
  };

  /// Replaces the previous entry of `fork`.
  void set(session_uid fork, const place& last);
  void forget(session_uid fork);

  /// The last version that a fork shares; nullopt: the session is not a fork.
  [[nodiscard]] std::optional<place> of(session_uid fork) const;
  /// The highest number of the versions that another session wrote; the beginning if there are none.
  [[nodiscard]] version_id inherited(session_uid uid) const;
  /// The session that wrote a version of `uid`.
  [[nodiscard]] place written_by(session_uid uid, version_id version) const;
  /// Whether forks begin at versions of this session.
  [[nodiscard]] bool has_forks(session_uid owner) const { return ends_.contains(owner); }
  /// Whether a fork may share this version: one begins at it or at a later one.
  [[nodiscard]] bool may_have(session_uid owner, version_id version) const;
  /// The versions at which forks begin, ascending.
  [[nodiscard]] std::vector<version_id> ends(session_uid owner) const;
  /// The number of forks that begin at a version.
  [[nodiscard]] std::uint32_t forks_at(const place& where) const;

 private:
  std::unordered_map<session_uid, place> by_fork_;
  std::map<session_uid, std::map<version_id, std::uint32_t>> ends_;  ///< number of forks, by owner and version
};

}  // namespace skein::storage
