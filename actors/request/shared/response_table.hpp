#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace skein::request {

struct response_run;

/// The running responses of all io threads, by id.
class response_table {
 public:
  /// Called on the run's io thread; null if the run is over by then.
  using visit = std::function<void(response_run*)>;
  using visitor = std::function<void(visit)>;

  /// Replaces the run of that id, if there is one: it is over, and its response continues in the new one. Returns the
  /// number of the entry.
  [[nodiscard]] std::uint64_t enter(const std::string& id, visitor how);
  /// Removes that entry; no effect if a newer run has entered since.
  void leave(const std::string& id, std::uint64_t entry);
  /// Empty: no response with that id runs.
  [[nodiscard]] visitor find(const std::string& id) const;

 private:
  struct running {
    std::uint64_t entry;
    visitor how;
  };

  mutable std::mutex mutex_;
  std::uint64_t last_ = 0;
  std::map<std::string, running> running_;
};

}  // namespace skein::request
