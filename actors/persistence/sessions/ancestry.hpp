#pragma once
#include <cstdint>
#include <unordered_map>

#include "storage/records/records.hpp"

namespace skein::persistence {

/// The paths from the beginning to the versions of a session. Queries about the length and the versions of a path take
/// a number of steps logarithmic in its length, because each version knows one far ancestor in addition to its parent
/// (E. W. Myers, "An applicative random-access stack", 1983).
class ancestry {
 public:
  using version_id = storage::version_id;

  /// `parent` is the beginning or a version that was added.
  void add(version_id v, version_id parent, std::uint64_t bytes, bool unfinished);
  /// `v` is not the parent of another version.
  void remove(version_id v) { steps_.erase(v); }

  /// The number of versions on the path to `v`, including `v`; 0 for the beginning.
  [[nodiscard]] std::uint32_t depth(version_id v) const;
  /// The bytes of all versions on the path to `v`, including `v`.
  [[nodiscard]] std::uint64_t bytes(version_id v) const;
  /// The first version on the path to `v`.
  [[nodiscard]] version_id first(version_id v) const;
  /// The last version on the path to `v` that is not unfinished, perhaps `v` itself; the beginning if there is none.
  /// It is looked up, not searched for along the path.
  [[nodiscard]] version_id finished(version_id v) const;
  /// Whether `ancestor` is `v` or on the path to `v`.
  [[nodiscard]] bool leads_to(version_id ancestor, version_id v) const;

 private:
  struct step {
    version_id parent = storage::beginning, far = storage::beginning;
    std::uint32_t depth = 0;
    version_id finished = storage::beginning;
    std::uint64_t bytes = 0;
  };
  [[nodiscard]] const step& at(version_id v) const;

  std::unordered_map<version_id, step> steps_;
};

}  // namespace skein::persistence
