#pragma once
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "actors/byte_budget.hpp"
#include "actors/connection/connection_counts.hpp"
#include "actors/persistence/persistence_counters.hpp"
#include "actors/persistence/persistence_mailbox.hpp"
#include "actors/request/key_ring.hpp"
#include "actors/request/loaded_models.hpp"
#include "actors/request/login_guard.hpp"
#include "actors/request/request_metrics.hpp"
#include "actors/request/request_register.hpp"
#include "actors/request/response_table.hpp"
#include "actors/shared_flag.hpp"
#include "base/clock.hpp"
#include "protocol/generation_request.hpp"

namespace skein::request {

struct service_settings {
  protocol::request_limits limits;
  bool guarded = false;             ///< clients need a secret, also while there is none that would let them in
  std::string password;             ///< empty: none
  bool json_password = true;        ///< also as the field `password` of a JSON body
  bool open_translation = false;    ///< translation needs no password
  bool open_metrics = false;        ///< neither does /metrics
  bool strict_model_names = false;  ///< a model that nobody knows is a 404, on the routes of OpenAI
  bool log_prompts = false;         ///< what is fed of requests
  bool web_page = true;             ///< the chat page is served
  std::vector<std::string> cors_origins;
  std::vector<std::string> host_names;  ///< accepted in Host without a password; see browser_guard
  std::uint64_t unauthenticated_body_bytes_max = 256 * 1024;  ///< of a body that may hold the password
  std::uint32_t outbound_bytes_max = 256 * 1024;
  std::size_t held_bytes_max = std::size_t{256} << 20;  ///< of all bodies, prompts, and answers that wait for readers
  std::size_t key_bytes_max = 0;                        ///< of these, of one key; 0: half of them
  std::size_t address_bytes_max = 0;                    ///< of one address without a secret; 0: a sixteenth
  std::uint32_t inline_json_bytes_max = 1u << 20;       ///< longer bodies are parsed by the worker pool
  std::uint32_t inline_text_bytes_max = 64u << 10;      ///< longer prompts are tokenised by the worker pool
  std::uint32_t socket_requests_max = 16;               ///< that run on one WebSocket at a time
  std::uint32_t prompts_waiting_max = 64;               ///< of one request that wait for slots at a time
  std::chrono::milliseconds queue_timeout{120'000};
  std::chrono::milliseconds total_timeout{3'600'000};
  std::chrono::milliseconds keep_alive{15'000};   ///< silence after which a stream gets a comment
  std::chrono::milliseconds stall_limit{30'000};  ///< work without a finished tick for this long: not alive
  std::chrono::milliseconds full_limit{10'000};   ///< a full queue for this long: not ready
  std::string states_dir;                         ///< where state-tuning files lie; empty: none is loaded
  std::uint32_t tuned_states_max = 64;            ///< that are loaded at once

  [[nodiscard]] std::size_t key_memory() const {
    return std::min(held_bytes_max, key_bytes_max ? key_bytes_max : held_bytes_max / 2);
  }
  [[nodiscard]] std::size_t address_memory() const {
    return std::min(held_bytes_max, address_bytes_max ? address_bytes_max : held_bytes_max / 16);
  }
};

/// What all io threads share: settings and the way to others. Constant: other settings are another context, which those
/// requests get that come from then on. All else is the same in both, the two flags too.
struct service_context {
  service_settings settings;
  std::shared_ptr<loaded_models> models = std::make_shared<loaded_models>();
  /// Has the supervisor load or unload models; may be empty in tests.
  std::function<void(model_change, model_changed)> change_model;
  persistence::mailbox* persistence = nullptr;                              ///< null only in tests; hubs have it too
  const persistence::persistence_counters* persistence_counters = nullptr;  ///< likewise
  connection::connection_counts* connections = nullptr;
  login_guard* logins = nullptr;  ///< where there is a password or a key
  std::shared_ptr<key_ring> keys = std::make_shared<key_ring>();
  const clock* time = nullptr;
  /// All generation calls, for the routes that look after them.
  std::shared_ptr<request_register> requests = std::make_shared<request_register>();
  /// What the io threads count of their requests.
  std::shared_ptr<request_metrics> metrics = std::make_shared<request_metrics>();
  /// The responses of the Responses API that run, by id.
  std::shared_ptr<response_table> responses = std::make_shared<response_table>();
  /// What the requests that wait and run hold together; see memory.hpp.
  std::shared_ptr<byte_budget> memory = std::make_shared<byte_budget>();
  /// Runs work on the worker pool; false when its queue is full.
  std::function<bool(std::function<void()>)> run_long;
  shared_flag draining, ready;
  bool loading = false;  ///< of the start: only routes that answer while the first model loads

  /// Whether clients must say who they are.
  [[nodiscard]] bool guarded() const { return settings.guarded || !settings.password.empty() || !keys->empty(); }
};

}  // namespace skein::request
