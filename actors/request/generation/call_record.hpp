#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "actors/request/answer/answer_state.hpp"
#include "actors/request/generation/call_origin.hpp"
#include "actors/request/generation/prefix_use.hpp"
#include "actors/request/shared/key_ring.hpp"
#include "actors/request/shared/request_metrics.hpp"
#include "actors/request/shared/service_context.hpp"

namespace skein::request {

/// What operators see of one call: its entry in the register of running requests, its metrics, the usage of its key and
/// its line in the log. Lives on the call's io thread.
class call_record {
 public:
  call_record(std::shared_ptr<const service_context> context, std::uint32_t io_thread)
      : context_(std::move(context)), io_thread_(io_thread) {}
  ~call_record() { delist(); }
  call_record(const call_record&) = delete;  // one entry in the register
  call_record& operator=(const call_record&) = delete;

  /// The caller and the model are known: takes a place among the requests of the key. Returns the refusal of a key that
  /// has reached its limits.
  [[nodiscard]] std::optional<key_usage::refusal> enter(const caller_ref& who, const std::string& model);
  /// The request is known: enters it in the register. `tell` carries orders to the call.
  void enlist(const call_origin& origin, const protocol::generation_request& request, running_request::messenger tell);
  /// Null: the request is not known yet.
  [[nodiscard]] const std::shared_ptr<running_request>& entry() const { return entry_; }

  /// What will be fed, and how much of it is cached. `prefix`: the known prefix, if one was looked for.
  void prompt(const protocol::token_usage& usage, const prefix_use* prefix);
  /// A prompt has its slots.
  void admitted(std::chrono::microseconds queued);
  /// One token of an answer with that number of rows.
  void token(steady_time received, std::size_t rows);
  /// Tokens that the key pays for.
  void spend(std::uint64_t tokens);

  void count_rejection(const call_origin& origin, error_kind why);
  /// Leaves the register, and gives the key's place back.
  void leave();
  /// The call has ended with that status. `how`: the reason, for the log. `answer`: null if there is none; `begun`: a
  /// prompt had a slot.
  void ended(const call_origin& origin, unsigned status, std::string_view how, const answer_state* answer, bool begun);

 private:
  void delist();
  void count_ending(steady_time received, bool whole, const answer_state& answer);
  [[nodiscard]] metrics_shard& counts() { return context_->metrics->of(io_thread_); }

  const std::shared_ptr<const service_context> context_;
  const std::uint32_t io_thread_;
  std::shared_ptr<running_request> entry_;
  std::string session_;                  // its name, for the log
  generation_series* series_ = nullptr;  // of this model and key, on this thread; once the key is known
  std::shared_ptr<key_usage> usage_;     // null: not counted
  key_lease place_;                      // among the requests of its key
  std::optional<steady_time> first_token_, last_token_;
  std::chrono::microseconds queued_{};
};

}  // namespace skein::request
