#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/persistence/persistence_mailbox.hpp"

namespace skein::request {

/// Carries answers of the persistence actor to io threads: one box an io thread, which wakes its thread when it was
/// empty. Bounded by the questions that the calls of that thread have asked.
class reply_router final : public persistence::reply_sink {
 public:
  /// `wake(i)` makes io thread i call take(i) soon; called on the persistence thread, while take(i) has to wait.
  reply_router(std::uint32_t io_threads, std::function<void(std::uint32_t)> wake);

  /// What throws leaves `r` as it is.
  void deliver(persistence::reply&& r) override;

  /// Everything that came for io thread `index` since the last call; called on that thread.
  [[nodiscard]] std::vector<persistence::reply> take(std::uint32_t index);

 private:
  struct box {
    std::mutex mutex;
    std::vector<persistence::reply> items;
  };
  std::vector<std::unique_ptr<box>> boxes_;
  std::function<void(std::uint32_t)> wake_;
};

}  // namespace skein::request
