#pragma once
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

  void enter(const std::string& id, visitor how);
  void leave(const std::string& id);
  /// Empty: no response with that id runs.
  [[nodiscard]] visitor find(const std::string& id) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, visitor> running_;
};

}  // namespace skein::request
