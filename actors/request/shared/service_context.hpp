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
#include "actors/request/shared/grammar_store.hpp"
#include "actors/request/shared/key_ring.hpp"
#include "actors/request/shared/loaded_models.hpp"
#include "actors/request/shared/login_guard.hpp"
#include "actors/request/shared/request_metrics.hpp"
#include "actors/request/shared/request_register.hpp"
#include "actors/request/shared/response_table.hpp"
#include "actors/shared_flag.hpp"
#include "base/clock.hpp"
#include "config/config.hpp"
#include "protocol/requests/generation_request.hpp"

namespace skein::request {

/// The settings that requests use, and constants beside them.
struct service_settings {
  config::server_settings server;
  protocol::request_limits limits;
  config::queue_settings queue;
  config::model_settings model;
  config::log_settings log;
  bool guarded = false;                             ///< clients need a secret, even while no valid one exists
  std::uint32_t inline_json_bytes_max = 1u << 20;   ///< longer bodies are parsed by the worker pool
  std::uint32_t inline_text_bytes_max = 64u << 10;  ///< longer prompts are tokenised by the worker pool
  std::chrono::milliseconds keep_alive{15'000};     ///< idle time after which a stream gets a comment

  [[nodiscard]] std::chrono::milliseconds queue_timeout() const {
    return std::chrono::milliseconds(queue.queue_timeout_ms);
  }
  [[nodiscard]] std::chrono::milliseconds total_timeout() const {
    return std::chrono::milliseconds(queue.total_timeout_ms);
  }
  /// The share of queue.bytes_max of one key.
  [[nodiscard]] std::size_t key_memory() const {
    return std::min(queue.bytes_max, queue.key_bytes_max ? queue.key_bytes_max : queue.bytes_max / 2);
  }
  /// The same of one address without a secret.
  [[nodiscard]] std::size_t address_memory() const {
    return std::min(queue.bytes_max, queue.address_bytes_max ? queue.address_bytes_max : queue.bytes_max / 16);
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
  /// Compiled grammars of constrained answers.
  std::shared_ptr<grammar_store> grammars = std::make_shared<grammar_store>();
  /// Memory that waiting and running requests hold; see memory.hpp.
  std::shared_ptr<byte_budget> memory = std::make_shared<byte_budget>();
  /// Runs work of a holder of memory (byte_share::holder) on the worker pool; false when its queue is full.
  std::function<bool(const std::shared_ptr<const void>& whose, std::function<void()>)> run_long;
  shared_flag draining, ready;
  bool loading = false;  ///< during the start: only routes that answer while the first model loads

  /// Whether clients must authenticate.
  [[nodiscard]] bool guarded() const { return settings.guarded || !settings.server.password.empty() || !keys->empty(); }
};

}  // namespace skein::request
