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
#include "actors/persistence/shared/persistence_counters.hpp"
#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/request/shared/key_ring.hpp"
#include "actors/request/shared/loaded_models.hpp"
#include "actors/request/shared/login_guard.hpp"
#include "actors/request/shared/request_metrics.hpp"
#include "actors/request/shared/request_register.hpp"
#include "actors/request/shared/response_table.hpp"
#include "actors/shared_flag.hpp"
#include "base/clock.hpp"
#include "protocol/requests/generation_request.hpp"

namespace skein::request {

struct service_settings {
  protocol::request_limits limits;
  bool guarded = false;             ///< clients need a secret, even while no valid one exists
  std::string password;             ///< empty: none
  bool json_password = true;        ///< also as the field `password` of a JSON body
  bool open_translation = false;    ///< translation needs no password
  bool open_metrics = false;        ///< /metrics needs no password
  bool strict_model_names = false;  ///< an unknown model is a 404, on the routes of OpenAI
  bool log_prompts = false;         ///< log the text that is fed
  bool web_page = true;             ///< serve the chat page
  std::vector<std::string> cors_origins;
  std::vector<std::string> host_names;  ///< accepted in Host without a password; see browser_guard
  std::uint64_t unauthenticated_body_bytes_max = 256 * 1024;  ///< of a body that may contain the password
  std::uint32_t outbound_bytes_max = 256 * 1024;
  std::size_t held_bytes_max = std::size_t{256} << 20;  ///< of all bodies, prompts and unsent answers
  std::size_t key_bytes_max = 0;                        ///< share of one key; 0: half
  std::size_t address_bytes_max = 0;                    ///< share of one address without a secret; 0: a sixteenth
  std::uint32_t inline_json_bytes_max = 1u << 20;       ///< longer bodies are parsed by the worker pool
  std::uint32_t inline_text_bytes_max = 64u << 10;      ///< longer prompts are tokenised by the worker pool
  std::uint32_t socket_requests_max = 16;               ///< running at once on one WebSocket
  std::uint32_t prompts_waiting_max = 64;               ///< of one request, waiting for slots at once
  std::chrono::milliseconds queue_timeout{120'000};
  std::chrono::milliseconds total_timeout{3'600'000};
  std::chrono::milliseconds keep_alive{15'000};   ///< idle time after which a stream gets a comment
  std::chrono::milliseconds stall_limit{30'000};  ///< work without a finished tick for this long: not alive
  std::chrono::milliseconds full_limit{10'000};   ///< a full queue for this long: not ready
  std::string states_dir;                         ///< folder of state-tuning files; empty: none can be loaded
  std::uint32_t tuned_states_max = 64;            ///< loaded at once

  [[nodiscard]] std::size_t key_memory() const {
    return std::min(held_bytes_max, key_bytes_max ? key_bytes_max : held_bytes_max / 2);
  }
  [[nodiscard]] std::size_t address_memory() const {
    return std::min(held_bytes_max, address_bytes_max ? address_bytes_max : held_bytes_max / 16);
  }
};

/// What all io threads share: settings and references to the other actors. Constant: changed settings make a new
/// context, which later requests get. Everything else, the two flags included, is shared by both.
struct service_context {
  service_settings settings;
  std::shared_ptr<loaded_models> models = std::make_shared<loaded_models>();
  /// Asks the supervisor to load or unload models; may be empty in tests.
  std::function<void(model_change, model_changed)> change_model;
  persistence::mailbox* persistence = nullptr;                              ///< null only in tests; hubs have it too
  const persistence::persistence_counters* persistence_counters = nullptr;  ///< likewise
  connection::connection_counts* connections = nullptr;
  login_guard* logins = nullptr;  ///< used if there is a password or a key
  std::shared_ptr<key_ring> keys = std::make_shared<key_ring>();
  const clock* time = nullptr;
  /// All generation calls, for the operator's routes.
  std::shared_ptr<request_register> requests = std::make_shared<request_register>();
  /// Request metrics of the io threads.
  std::shared_ptr<request_metrics> metrics = std::make_shared<request_metrics>();
  /// Running responses of the Responses API, by id.
  std::shared_ptr<response_table> responses = std::make_shared<response_table>();
  /// Memory that waiting and running requests hold; see memory.hpp.
  std::shared_ptr<byte_budget> memory = std::make_shared<byte_budget>();
  /// Runs work on the worker pool; false when its queue is full.
  std::function<bool(std::function<void()>)> run_long;
  shared_flag draining, ready;
  bool loading = false;  ///< during the start: only routes that answer while the first model loads

  /// Whether clients must authenticate.
  [[nodiscard]] bool guarded() const { return settings.guarded || !settings.password.empty() || !keys->empty(); }
};

}  // namespace skein::request
