#pragma once
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace skein::request {

struct response_run;

/// Which responses run, by id, for all io threads.
class response_table {
 public:
  /// Looks at a run on its own io thread; null when it is over meanwhile.
  using visit = std::function<void(response_run*)>;
  using visitor = std::function<void(visit)>;

  void enter(const std::string& id, visitor how);
  void leave(const std::string& id);
  /// Empty: no response of that name runs.
  [[nodiscard]] visitor find(const std::string& id) const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, visitor> running_;
};

}  // namespace skein::request
