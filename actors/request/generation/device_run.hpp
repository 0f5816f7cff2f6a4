#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/request/answer/answer_state.hpp"
#include "actors/request/generation/session_part.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "actors/request/shared/service_context.hpp"

namespace skein::request {

/// What all prompts of a call have in common on the device.
struct run_order {
  model_ref model;
  std::string request_name;
  tenant_id tenant = default_tenant;
  std::string client;  ///< device::submit::client
  std::optional<tuned_state> beginning;
  std::shared_ptr<running_request> entry;  ///< counts the tokens that are fed
  steady_time total_deadline{};
  std::chrono::milliseconds queue_timeout{};  ///< of the first prompt; later ones wait for prompts of their own request
  std::uint32_t prompts_waiting_max = 1;
  const clock* time = nullptr;
};

/// The prompts of one call on the devices of its model, and their answer. Each prompt gets a device of its own, all
/// rows of a prompt are on one device. Only some of many prompts wait for slots at a time; others follow as these get
/// their slots. The destructor cancels what the device still has. Lives on the call's io thread.
class device_run {
 public:
  /// Events go to `call`; the references must outlive this.
  device_run(request_hub& hub, device_client& call, session_part& session, run_order order, answer_state answer)
      : hub_(hub), call_(call), session_(session), order_(std::move(order)), answer_(std::move(answer)) {}
  ~device_run() { cancel(); }
  device_run(const device_run&) = delete;  // one owner of what the device has
  device_run& operator=(const device_run&) = delete;

  [[nodiscard]] answer_state& answer() { return answer_; }
  [[nodiscard]] const answer_state& answer() const { return answer_; }

  /// All prompts are to be submitted; once.
  void begin();
  /// Submits prompts that wait for it, with that memory. False: the device takes no more now. A later event or tick may
  /// try again; a prompt that the device sent back waits for a tick.
  [[nodiscard]] bool submit_more(const byte_budget::lease& memory);
  void on_tick() { sent_back_ = 0; }

  void on(std::uint32_t prompt, device::admitted& e);
  void on(std::uint32_t prompt, device::rejected& e);
  void on(std::uint32_t prompt, device::prompt_scored& e);
  void on(std::uint32_t prompt, device::token& e);
  void on(std::uint32_t prompt, device::row_finished& e);
  /// Submits a rejected prompt again, not before the next tick.
  void put_back(std::uint32_t prompt);

  /// A failure of the device or the model, which ends the call.
  [[nodiscard]] const std::optional<error>& failure() const { return failure_; }
  /// Whether a prompt has had a slot.
  [[nodiscard]] bool begun() const { return admitted_ > 0; }
  /// Prompts that the device has.
  [[nodiscard]] std::uint32_t running() const { return running_; }

  /// The reader is slow, or has caught up. No effect if that is known.
  void pause();
  void resume();
  [[nodiscard]] bool is_paused() const { return paused_; }

  /// Makes the state of a session's turn match its text (device::settle), so that no cancel undoes that.
  void settle(std::uint32_t sampled, std::vector<token_id> more);
  /// Ends everything on the device.
  void cancel();

 private:
  /// A prompt on its way through the device.
  struct prompt_run {
    request_id id = 0;  // 0: not submitted, or over
    std::uint32_t rows = 0;
    device_place place;  // on the device that has it
  };

  [[nodiscard]] bool submit(std::uint32_t prompt, const byte_budget::lease& memory);
  [[nodiscard]] device::submit message(std::uint32_t prompt);
  void over(std::uint32_t prompt);
  void tell(device_id device, device::message message) { hub_.tell(door_of(order_.model, device), std::move(message)); }

  request_hub& hub_;
  device_client& call_;
  session_part& session_;
  const run_order order_;
  answer_state answer_;
  std::vector<prompt_run> runs_;      // by prompt
  std::deque<std::uint32_t> to_run_;  // prompts that the device does not have yet
  std::uint32_t waiting_ = 0;         // prompts that wait for a slot
  std::uint32_t running_ = 0;
  std::uint32_t admitted_ = 0;   // prompts, ever
  std::uint32_t sent_back_ = 0;  // prompts, since the last tick
  bool paused_ = false;          // the reader is slow
  std::optional<error> failure_;
};

}  // namespace skein::request
