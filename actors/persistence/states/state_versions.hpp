#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "storage/records/records.hpp"

namespace skein::persistence {

/// What a state on disk is worth to its session, ascending: the order in which states are dropped.
enum class worth : std::uint8_t { thinnable, old, newest };

/// The versions of each session that have a state in RAM or on disk, and which of them thinning spares.
class state_versions {
 public:
  /// `thins` false: the states have no versions. Then this stays empty, and every state is spared.
  explicit state_versions(bool thins) : thins_(thins) {}

  using predicate = std::function<bool(const storage::state_key&)>;

  void add(const storage::state_key& key);
  void remove(const storage::state_key& key);
  /// `broken`: a version ahead of the head that may be continued, and is spared too; 0: none. False: nothing has
  /// changed.
  bool set_head(storage::session_uid owner, storage::version_id head, storage::version_id broken);

  [[nodiscard]] std::optional<storage::state_key> find(storage::session_uid owner, storage::version_id version) const;
  [[nodiscard]] std::vector<storage::state_key> of(storage::session_uid owner) const;
  /// Whether its session will probably continue from this state: the head, or the newest one.
  [[nodiscard]] bool is_head(const storage::state_key& key) const;
  /// Calls `use` with each state of the session that is on disk, and its worth there.
  void for_each_worth(storage::session_uid owner, const predicate& is_on_disk,
                      const std::function<void(const storage::state_key&, worth)>& use) const;
  /// Whether a state that is not on disk yet would survive thinning there, next to its neighbours that are or will be.
  [[nodiscard]] bool survives(const storage::state_key& key, const predicate& will_be_there) const;

 private:
  struct session {
    storage::version_id head = 0;  // 0: not known, the newest one
    storage::version_id broken = 0;
    std::map<storage::version_id, storage::state_key> versions;
  };

  const bool thins_;
  std::map<storage::session_uid, session> sessions_;
};

}  // namespace skein::persistence
