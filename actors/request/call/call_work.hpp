#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>

#include "actors/request/call/attempt.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/call/memory.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "actors/request/shared/service_context.hpp"

namespace skein::request {

/// The long work of one call, and the memory that the call holds for it. The result of work on the worker pool comes
/// back by the call's serial number, so it is dropped if the call has left. Lives on the call's io thread.
class call_work {
 public:
  using poster = std::function<void(std::function<void()>)>;
  using guard = std::function<void(const std::function<void()>&)>;

  /// `post` runs work on this io thread; thread safe. `guarded` runs what a result causes, and must not throw.
  call_work(std::shared_ptr<const service_context> context, request_hub& hub, device_client& call, poster post,
            std::string request_name, guard guarded)
      : context_(std::move(context)),
        hub_(hub),
        post_(std::move(post)),
        request_name_(std::move(request_name)),
        guarded_(std::move(guarded)),
        serial_(hub.enter(call)) {}
  ~call_work() { hub_.leave(serial_); }
  call_work(const call_work&) = delete;  // a serial number finds one call
  call_work& operator=(const call_work&) = delete;

  [[nodiscard]] std::uint64_t serial() const { return serial_; }
  [[nodiscard]] const poster& post() const { return post_; }

  /// Passes the result of `work`, which may throw, to `next`: at once, or later if it is long. After end(), long work
  /// does not begin and `next` is not called. False: the worker pool is full.
  template <typename Result>
  [[nodiscard]] bool run(bool is_long, std::function<Result()> work, std::function<void(Result)> next) {
    if (!is_long) {
      next(attempt(request_name_, work));
      return true;
    }
    auto back = [this, &hub = hub_, serial = serial_, next = std::move(next)](Result outcome) {
      if (!hub.find(serial) || over_.stop_requested()) return;  // without a call, `this` is gone too
      guarded_([&] { next(std::move(outcome)); });
    };
    return run_long(
        *context_, {post_, request_name_, over(), share_},
        [work = std::move(work), memory = std::make_shared<byte_budget::lease>(memory_)] {
          auto outcome = work();
          memory->reset();  // before the next stage reserves its own
          return outcome;
        },
        std::move(back));
  }

  /// Replaces the memory of the last stage by that of the next: of the body, then of the texts to tokenise, then of the
  /// data that the device holds. Errors: as hold_memory.
  [[nodiscard]] result<void> hold(const byte_share& share, std::size_t bytes) {
    share_ = share;
    memory_.reset();
    auto memory = hold_memory(share, bytes);
    if (!memory) return memory.error();
    memory_ = std::move(*memory);
    return {};
  }
  [[nodiscard]] const byte_budget::lease& memory() const { return memory_; }

  [[nodiscard]] std::stop_token over() const { return over_.get_token(); }
  void end() {
    over_.request_stop();
    memory_.reset();
  }

 private:
  const std::shared_ptr<const service_context> context_;
  request_hub& hub_;
  const poster post_;
  const std::string request_name_;
  const guard guarded_;
  const std::uint64_t serial_;
  std::stop_source over_;
  byte_share share_;  ///< of the client, as last given
  byte_budget::lease memory_;
};

}  // namespace skein::request
