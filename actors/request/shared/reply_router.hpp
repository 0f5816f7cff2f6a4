#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "actors/persistence/shared/persistence_mailbox.hpp"

namespace skein::request {

/// Carries replies of the persistence actor to io threads. Each io thread has one box and is woken if its box was
/// empty. A box is bounded by the number of questions that its thread's calls have asked.
class reply_router final : public persistence::reply_sink {
 public:
  /// `wake(i)` makes io thread i call take(i) soon; called on the persistence thread, which holds the lock of take(i).
  reply_router(std::uint32_t io_threads, std::function<void(std::uint32_t)> wake);

  /// If it throws, `r` is unchanged.
  void deliver(persistence::reply&& r) override;

  /// All replies for io thread `index` since the last call; called on that thread.
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
