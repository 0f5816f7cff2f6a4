#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// All settings of the server as plain values, grouped as in the file: the member `server.port` is the key `port` of
/// the section `[server]`. A type and an initial value here are those of the setting; everything else about it (meaning
/// and unit, legal values, flags, whether it may change while the server runs) is in its row of config/keys.cpp.
/// config/load.hpp fills in values from files, environment and flags. Actors hold these structs.
namespace skein::config {

struct server_settings {
  std::string host = "127.0.0.1";
  std::uint32_t port = 8000;
  std::string tls_certificate, tls_key;
  std::uint32_t tls_port = 8443;
  std::string unix_socket, admin_socket;
  std::uint32_t io_threads = 0;
  std::string password;
  std::string password_file;      ///< the loader reads it and sets `password`
  std::string keys_file;          ///< see access/api_key.hpp
  bool json_password = true;      ///< older servers accept it there
  bool open_translation = false;  ///< the browser extension that uses the translation route sends no password
  bool noise = false;             ///< the newest of the older servers ignore it
  bool open_metrics = false;
  bool strict_model_names = false;  ///< older servers are not strict
  bool tell_ignored_fields = false;
  bool web_page = true;
  bool allow_unauthenticated = false;
  std::string state_dir;
  std::uint32_t stall_ms = 30'000;
  std::vector<std::string> cors_origins;
  std::vector<std::string> host_names;  ///< see browser_guard
  std::vector<std::string> trusted_proxies;
};

struct limit_settings {
  // connections
  std::uint32_t header_bytes_max = 8192;
  std::uint32_t header_fields_max = 100;
  std::uint64_t body_bytes_max = 8ull << 20;
  std::uint64_t request_wire_bytes_max = 16ull << 20;
  std::uint32_t body_bytes_per_second_min = 1024;
  std::uint32_t outbound_bytes_max = 256 * 1024;
  std::uint32_t unsent_bytes_max = 128 * 1024;
  std::uint32_t connections_max = 12000;
  std::uint32_t connections_per_address_max = 64;
  std::uint32_t requests_per_connection_max = 10000;
  std::uint64_t unauthenticated_body_bytes_max = 256 * 1024;
  std::uint32_t login_failures_max = 20;
  std::uint64_t login_window_ms = 60'000;
  std::uint32_t login_addresses_max = 4096;
  std::uint64_t header_timeout_ms = 10'000;
  std::uint64_t body_timeout_ms = 30'000;
  std::uint64_t idle_timeout_ms = 60'000;
  std::uint64_t write_timeout_ms = 60'000;
  std::uint32_t socket_message_bytes_max = 1u << 20;
  std::uint64_t socket_idle_timeout_ms = 300'000;
  std::uint32_t socket_requests_max = 16;
  // requests
  std::uint32_t n_max = 128;
  std::uint32_t max_tokens_max = 1u << 20;
  std::uint32_t prompt_tokens_max = 4u << 20;
  std::uint32_t prompts_max = 4096;
  std::uint32_t stops_max = 16;
  std::uint32_t stop_bytes_max = 256;
  std::uint32_t logit_bias_max = 1024;
  std::uint32_t mixture_max = 8;
  std::uint32_t tools_max = 128;
  std::uint32_t json_depth_max = 64;
  std::uint64_t grammar_bytes_max = 256ull << 10;
  std::uint64_t grammar_steps_max = 60'000'000;
  std::uint32_t grammars_max = 32;
  std::uint64_t response_bytes_max = 32ull << 20;
  std::uint32_t response_followers_max = 256;
};

/// The queue of requests and the scheduler.
struct queue_settings {
  std::uint32_t waiting_max = 1024;
  std::uint32_t waiting_per_client_max = 256;
  std::uint64_t bytes_max = 256ull << 20;
  std::uint64_t key_bytes_max = 0;
  std::uint64_t address_bytes_max = 0;
  std::uint32_t prompts_waiting_max = 64;
  std::uint32_t turn_tokens = 256;
  std::uint32_t parked_max = 4096;
  std::uint64_t parked_bytes_max = 1ull << 30;
  std::uint32_t copies_max = 16;
  std::uint64_t undo_bytes_max = 1ull << 30;
  std::uint64_t queue_timeout_ms = 120'000;
  std::uint64_t total_timeout_ms = 3'600'000;
  std::uint64_t full_unready_ms = 10'000;
};

struct session_settings {
  std::uint64_t ram_bytes_max = 0;
  std::uint32_t ram_states_max = 0;
  std::uint64_t disk_bytes_max = 32ull << 30;
  std::uint32_t disk_states_max = 0;
  std::uint64_t disk_state_age_max_s = 0;
  std::uint64_t session_age_max_s = 0;
  std::uint64_t write_behind_ms = 1000;
  std::uint64_t dirty_bytes_max = 64ull << 20;
  std::uint64_t tree_bytes_max = 64ull << 20;
  std::uint64_t unsaved_bytes_max = 64ull << 20;
  std::uint64_t file_bytes_max = 256ull << 20;
  std::uint64_t tenant_sessions_max = 100'000;
  std::uint64_t tenant_versions_max = 10'000'000;
  std::uint64_t tenant_bytes_max = 64ull << 30;
  std::uint32_t writers_max = 8;
  std::uint32_t waiters_max = 16;
  std::string busy = "wait";
  std::string state_dtype = "auto";
  std::string signature_key = {};
  // of the database
  std::uint64_t cache_bytes_max = 32ull << 20;
  std::uint64_t write_buffer_bytes_max = 64ull << 20;
  std::uint32_t open_files_max = 512;
};

struct prefix_cache_settings {
  bool enabled = true;
  std::uint64_t ram_bytes_max = 0;
  std::uint64_t disk_bytes_max = 8ull << 30;
  std::uint32_t min_tokens = 32;
  std::uint32_t every_tokens = 512;
  std::uint32_t wait_tokens_min = 0;
};

struct engine_settings {
  std::string device = "auto";
  std::string dtype = "auto";
  std::string weight_format;
  std::string state_dtype = "fp32";
  std::string invariance = "default";
  std::uint32_t slots = 0;
  std::uint32_t vram_states_max = 65536;
  std::uint32_t max_tick_tokens = 0;
  /// 64 tokens, the default on the CPU, delay other answers of a 0.4B model on two cores by about 0.15 s.
  std::uint32_t prefill_chunk_tokens = 0;
  std::uint64_t moving_bytes_max = 256ull << 20;
  std::uint32_t threads = 0;
  // Of the fake engine; they have keys only in builds with SKEIN_FAKE_ENGINE.
  std::uint32_t fake_tick_us = 0;        ///< lets tests act in the middle of a stream
  std::uint32_t fake_throw_tick = 0;     ///< lets tests show that the server survives it
  std::uint32_t fake_lost_tick = 0;      ///< likewise
  std::uint32_t fake_faulty_device = 0;  ///< the one of several that has these faults
};

struct model_settings {
  std::string path;
  std::string name;
  std::vector<std::string> aliases{"rwkv7", "rwkv"};  ///< the names that clients of older servers send
  std::vector<std::string> adapters;
  std::string vocab;
  bool allow_nonfinite = false;
  std::string root;
  std::string on_switch = "beside";
  std::uint32_t resident_max = 1;
  std::uint32_t resting_max = 16;
  std::uint64_t idle_unload_s = 0;
  std::uint64_t memory_bytes_max = 0;
  std::string states_dir;
  std::uint32_t tuned_states_max = 64;
  std::vector<std::string> tuned_states;
};

struct log_settings {
  std::string level = "info";
  std::string format = "automatic";
  bool prompts = false;
};

struct drain_settings {
  std::uint64_t grace_ms = 5000;
  std::uint64_t timeout_ms = 30'000;
  std::uint64_t flush_ms = 10'000;
};

/// Chat answers that were interrupted by /v1/server/pause.
struct pause_settings {
  std::uint32_t requests_max = 64;
  std::uint32_t tokens_max = 65'536;
  std::uint64_t age_max_s = 3600;
};

/// Values of the sampler that a request does not set.
struct sampler_defaults {
  double temperature = 1.0;
  double top_p = 0.6;
  std::int32_t top_k = 20;
  double alpha_presence = 1.0;
  double alpha_frequency = 0.1;
  double alpha_decay = 0.996;
};

/// Defaults of one model for fields that a request does not set. Section `[models."name"]`.
struct model_defaults : sampler_defaults {
  sampler_defaults thinking{0.96, 0.76, 32, 1.0, 0.1, 0.988};  ///< of answers that begin with thoughts
  sampler_defaults tools{0.96, 0.76, 0, 0.0, 0.0, 0.996};      ///< of answers that may call tools
  std::uint32_t max_tokens = 4096;
  std::uint32_t completion_max_tokens = 256;
  std::vector<std::string> stop{"\nUser:"};
  std::string no_think_opening = "Assistant: <think>\n</think";
  bool default_think = false;
  std::uint32_t default_think_tokens_max = 0;
  std::string tool_template = "auto";
  std::string unset_sampling = "preset";
  std::string chat_template = "auto";
  std::string template_system = "System:", template_user = "User:", template_assistant = "Assistant:";
  std::string template_gap = " ", template_end = "\n\n";
};

/// The demo model is small and its distributions are sharp: penalties would suppress the only correct answer.
[[nodiscard]] inline model_defaults demo_defaults() {
  model_defaults d;
  d.temperature = 0.5;
  d.top_p = 0.5;
  d.alpha_presence = 0;
  d.alpha_frequency = 0;
  const sampler_defaults& plain = d;
  d.thinking = d.tools = plain;
  d.max_tokens = 512;
  return d;
}

struct config {
  server_settings server;
  limit_settings limits;
  queue_settings queue;
  session_settings sessions;
  prefix_cache_settings prefix_cache;
  engine_settings engine;
  model_settings model;
  log_settings log;
  drain_settings drain;
  pause_settings pause;
  /// By model name; absent: model_defaults{}.
  std::map<std::string, model_defaults, std::less<>> models{{"skein-demo", demo_defaults()}};
};

}  // namespace skein::config
