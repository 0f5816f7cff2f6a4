#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// All settings of the server as plain values, grouped as in the file: the member `server.port` is the key `port` of
/// the section `[server]`. The initial values here are the defaults. config/keys.cpp adds meanings, ranges and flags;
/// config/load.hpp fills in values from files, environment and flags. "Live" settings may change while the server runs;
/// all others need a restart.
namespace skein::config {

struct server_settings {
  /// Address to listen on. Any address but loopback requires a password, API keys or allow_unauthenticated.
  /// Default 127.0.0.1.
  std::string host = "127.0.0.1";
  /// TCP port; 0 lets the system choose. 0 .. 65535, default 8000.
  std::uint32_t port = 8000;
  /// PEM files of a certificate (with its chain) and its key; they enable TLS on tls_port. Read again on reload. Live,
  /// default: none.
  std::string tls_certificate, tls_key;
  /// TCP port for TLS, in addition to `port`; 0 lets the system choose. 0 .. 65535, default 8443.
  std::uint32_t tls_port = 8443;
  /// Path of a unix socket to listen on as well. Default: none.
  std::string unix_socket;
  /// Path of the unix socket for `skein state`; empty: admin.socket in state_dir if that is set.
  std::string admin_socket;
  /// HTTP threads; 0 chooses from the number of cores. 0 .. 64, default 0.
  std::uint32_t io_threads = 0;
  /// Bearer token that clients must send; empty: no password. Secret; excludes password_file. Live.
  std::string password;
  /// File whose first line is the password. The loader reads it and sets `password`. Live.
  std::string password_file;
  /// File of API keys, see access/api_key.hpp; the systemd credential api-keys overrides it. Default: none. Live.
  std::string keys_file;
  /// Also accept the password in the JSON field `password` of the body, as older servers do. Live, default true.
  bool json_password = true;
  /// Allow translation requests (/translate/v1/batch-translate) without a password or key: the browser extension that
  /// uses this route sends none. Live, default false.
  bool open_translation = false;
  /// Apply the field `noise` of /big_batch/completions to sampling; otherwise it is ignored, as in the newest of the
  /// older servers with that field. Live, default false.
  bool noise = false;
  /// Allow reading /metrics without a password or key. Live, default false.
  bool open_metrics = false;
  /// Return 404 for an unknown model name on OpenAI routes; otherwise the current model answers, as in the older
  /// servers. Live, default false.
  bool strict_model_names = false;
  /// List the ignored fields of a generation request in a response header. Live, default false.
  bool tell_ignored_fields = false;
  /// Serve the chat page at /. Live, default true.
  bool web_page = true;
  /// Allow addresses other than loopback without a password or API keys. Default false.
  bool allow_unauthenticated = false;
  /// Folder for sessions and states, which outlive the process. Default: none, everything is in memory.
  std::string state_dir;
  /// Milliseconds for which the device may have work but make no progress; after that /livez fails. Default 30 s.
  std::uint32_t stall_ms = 30'000;
  /// Origins whose pages may call the server; "*" allows every origin. Live, default: same origin only.
  std::vector<std::string> cors_origins;
  /// Host names that requests to a server without a password may use, in addition to localhost and IP addresses; any
  /// other `Host` returns 403. Live. Default: none.
  std::vector<std::string> host_names;
  /// Addresses of proxies whose X-Forwarded-For is trusted. Default: none.
  std::vector<std::string> trusted_proxies;
};

struct limit_settings {
  // connections
  std::uint32_t header_bytes_max = 8192;               ///< bytes of request line and header fields
  std::uint32_t header_fields_max = 100;               ///< header fields of a request
  std::uint64_t body_bytes_max = 8ull << 20;           ///< bytes of a body
  std::uint64_t request_wire_bytes_max = 16ull << 20;  ///< bytes of a body with framing and trailers
  std::uint32_t body_bytes_per_second_min = 1024;      ///< slower bodies are cut off
  std::uint32_t outbound_bytes_max = 256 * 1024;       ///< bytes queued for one client before its generation pauses
  std::uint32_t unsent_bytes_max = 128 * 1024;         ///< unsent bytes of one connection in the kernel, in addition
  std::uint32_t connections_max = 12000;               ///< open connections of the whole server
  std::uint32_t connections_per_address_max = 64;      ///< loopback and trusted proxies are exempt
  std::uint32_t requests_per_connection_max = 10000;   ///< then the connection closes
  std::uint64_t unauthenticated_body_bytes_max = 256 * 1024;  ///< of a body that may contain the password
  std::uint32_t login_failures_max = 20;                      ///< of one address within login_window_ms; 0: no limit
  std::uint64_t login_window_ms = 60'000;                     ///< from an address's first wrong password
  std::uint32_t login_addresses_max = 4096;                   ///< whose wrong passwords are counted
  std::uint64_t header_timeout_ms = 10'000;                   ///< for complete headers
  std::uint64_t body_timeout_ms = 30'000;                     ///< for a complete body
  std::uint64_t idle_timeout_ms = 60'000;                     ///< between requests of one connection
  std::uint64_t write_timeout_ms = 60'000;                    ///< without progress of a slow client
  std::uint32_t socket_message_bytes_max = 1u << 20;          ///< of one message on a WebSocket
  std::uint64_t socket_idle_timeout_ms = 300'000;             ///< without a frame from the client of a WebSocket
  std::uint32_t socket_requests_max = 16;                     ///< concurrent responses on one WebSocket
  // requests
  std::uint32_t n_max = 128;                       ///< answers to one prompt
  std::uint32_t max_tokens_max = 1u << 20;         ///< tokens of one answer; larger requests are reduced to this
  std::uint32_t prompt_tokens_max = 4u << 20;      ///< tokens of one prompt
  std::uint32_t prompts_max = 4096;                ///< prompts times n of one request
  std::uint32_t stops_max = 16;                    ///< stop strings of a request
  std::uint32_t stop_bytes_max = 256;              ///< bytes of one stop string
  std::uint32_t logit_bias_max = 1024;             ///< entries of logit_bias
  std::uint32_t mixture_max = 8;                   ///< states in one mixture
  std::uint32_t json_depth_max = 64;               ///< nesting depth of a body
  std::uint64_t response_bytes_max = 32ull << 20;  ///< bytes of a response that is not streamed
};

struct queue_settings {
  std::uint32_t waiting_max = 1024;             ///< requests that wait for a slot; further ones get 429
  std::uint32_t waiting_per_client_max = 256;   ///< of one client (its key or address)
  std::uint64_t bytes_max = 256ull << 20;       ///< bytes of bodies, of prompts, and of answers not read by clients yet
  std::uint64_t key_bytes_max = 0;              ///< of these, for one key; 0: half
  std::uint64_t address_bytes_max = 0;          ///< of these, for one unauthenticated address; 0: a sixteenth
  std::uint32_t prompts_waiting_max = 64;       ///< prompts of one request that wait for slots at a time
  std::uint32_t turn_tokens = 256;              ///< tokens after which a row may be parked for a waiting one
  std::uint32_t parked_max = 4096;              ///< parked rows: they wait, with their states copied out
  std::uint64_t parked_bytes_max = 1ull << 30;  ///< bytes of these states
  std::uint32_t copies_max = 16;                ///< copies of states inside prompts in transfer at a time
  std::uint64_t undo_bytes_max = 1ull << 30;    ///< bytes of states after prompts, kept for answers that may be cut
  std::uint64_t queue_timeout_ms = 120'000;     ///< longest wait for a slot
  std::uint64_t total_timeout_ms = 3'600'000;   ///< longest duration of a request, waiting included
  std::uint64_t full_unready_ms = 10'000;       ///< time for which the queue may be full before /readyz fails
};

struct session_settings {
  std::uint64_t ram_bytes_max = 0;                 ///< bytes of states in RAM; 0: an eighth of free memory at start
  std::uint32_t ram_states_max = 0;                ///< states in RAM; 0: as many as ram_bytes_max allows
  std::uint64_t disk_bytes_max = 32ull << 30;      ///< bytes of states on disk
  std::uint32_t disk_states_max = 0;               ///< states on disk; 0: as many as disk_bytes_max allows
  std::uint64_t disk_state_age_max_s = 0;          ///< seconds until an unused state is removed from disk; 0: never
  std::uint64_t session_age_max_s = 0;             ///< seconds after which an unused session is removed; 0: never
  std::uint64_t write_behind_ms = 1000;            ///< time for which a new state may wait to be written
  std::uint64_t dirty_bytes_max = 64ull << 20;     ///< bytes of states that wait; above it they are written at once
  std::uint64_t tree_bytes_max = 64ull << 20;      ///< bytes of texts of unused sessions that stay in memory
  std::uint64_t unsaved_bytes_max = 64ull << 20;   ///< bytes of turns that are in memory only
  std::uint64_t file_bytes_max = 256ull << 20;     ///< bytes of an imported session
  std::uint64_t tenant_sessions_max = 100'000;     ///< sessions that one tenant may store; 0: no limit
  std::uint64_t tenant_versions_max = 10'000'000;  ///< versions of all of them; 0: no limit
  std::uint64_t tenant_bytes_max = 64ull << 30;    ///< bytes of all of them; 0: no limit
  std::uint32_t writers_max = 8;                   ///< concurrent turns of one session
  std::uint32_t waiters_max = 16;                  ///< turns that wait for one session
  std::string busy = "wait";                       ///< whether a turn that cannot run yet waits: wait, refuse
  std::string state_dtype = "auto";                ///< type of stored states: auto (as in the engine), fp32, fp16
  std::string signature_key;                       ///< key that signs exported sessions
  // of the database
  std::uint64_t cache_bytes_max = 32ull << 20;         ///< bytes of the block cache
  std::uint64_t write_buffer_bytes_max = 64ull << 20;  ///< bytes of the write buffer
  std::uint32_t open_files_max = 512;                  ///< files that it keeps open
};

struct prefix_cache_settings {
  bool enabled = true;                        ///< keep states of prompt prefixes
  std::uint64_t ram_bytes_max = 0;            ///< bytes of these states in RAM; 0: a sixteenth of free memory at start
  std::uint64_t disk_bytes_max = 8ull << 30;  ///< bytes of them on disk; 0: none
  std::uint32_t min_tokens = 32;              ///< tokens of the shortest prefix whose state is kept
  std::uint32_t every_tokens = 512;           ///< interval of states inside a prompt; 0: none
  std::uint32_t wait_tokens_min = 0;          ///< tokens saved that make a prompt wait for the disk; 0: by the device
};

struct engine_settings {
  /// auto (a GPU if there is one, else the CPU), cpu, cuda, fake, or devices as cuda:0, cuda:0,cuda:1 (replicas),
  /// cuda:0+1 (shards), hip:0. Default auto.
  std::string device = "auto";
  /// Data type of the weight matrices: auto (as in the file), fp32, bf16, fp16, int8, nf4. Default auto.
  std::string dtype = "auto";
  std::string weight_format;
  /// Data type of the states: fp32, fp16. Default fp32.
  std::string state_dtype = "fp32";
  /// Reproducibility on a GPU (see config/keys.cpp): default, strict, fast. Default default.
  std::string invariance = "default";
  /// Sequences resident at once; 0 chooses. 0 .. 65536, default 0.
  std::uint32_t slots = 0;
  /// Session states that stay in free slots until other requests need the slots; more than `slots`: in all of them.
  /// 0 .. 65536, default 65536.
  std::uint32_t vram_states_max = 65536;
  /// Tokens of one tick, decode and prefill together; 0: 256 on the CPU, 2048 on a GPU. Default 0.
  std::uint32_t max_tick_tokens = 0;
  /// Prompt tokens of one tick while other requests decode, at most max_tick_tokens; 0: 64 on the CPU, which delays
  /// other answers of a 0.4B model on two cores by about 0.15 s, and 512 on a GPU. Default 0.
  std::uint32_t prefill_chunk_tokens = 0;
  /// Bytes of states in transfer between a GPU and the host, on the GPU and in pinned host memory; four states are
  /// always allowed. Default 256 MiB.
  std::uint64_t moving_bytes_max = 256ull << 20;
  /// Threads of the CPU engine; 0: as many as the process may use. Default 0.
  std::uint32_t threads = 0;
  /// Microseconds that a tick of the fake engine takes; lets tests act in the middle of a stream. Default 0.
  std::uint32_t fake_tick_us = 0;
  /// Tick in which the fake engine throws, so that tests can show that the server survives it. Default 0: none.
  std::uint32_t fake_throw_tick = 0;
  /// Tick in which the fake engine's device is lost, likewise. Default 0: none.
  std::uint32_t fake_lost_tick = 0;
};

struct model_settings {
  std::string path;  ///< checkpoint, .pth or .safetensors; the extension .pth may be omitted; empty: the demo model
  std::string name;  ///< name in the API; empty: the file's name without its extension
  /// Other names that clients may send in the field `model`. Default: the names that clients of older servers send.
  std::vector<std::string> aliases{"rwkv7", "rwkv"};
  std::string vocab;             ///< vocabulary file or "bytes"; empty: the file beside the model
  bool allow_nonfinite = false;  ///< load weights and tuned states that contain NaN or infinity
  std::string root;              ///< folder of the models that clients may load; empty: only `path`
  /// How a load replaces the current model. beside: it serves until the new one is loaded; replace: it is unloaded
  /// first, for memory that cannot hold both. Default beside.
  std::string on_switch = "beside";
  std::uint32_t resident_max = 1;       ///< models in memory at a time; above 1 a request loads the model that it names
  std::uint32_t resting_max = 16;       ///< unloaded models that are loaded again when a request names them
  std::uint64_t idle_unload_s = 0;      ///< seconds after which an unused model is unloaded; 0: never
  std::uint64_t memory_bytes_max = 0;   ///< bytes of all models while one is loaded beside another; 0: free memory
  std::string states_dir;               ///< folder of the state-tuning files that clients may load; empty: none
  std::uint32_t tuned_states_max = 64;  ///< of these in memory at a time
  /// State-tuning files as "NAME=FILE", with FILE below states_dir; loaded with every model that they fit. They must
  /// fit the first model.
  std::vector<std::string> tuned_states;
};

struct log_settings {
  std::string level = "info";        ///< debug, info, warning, error, off; live
  std::string format = "automatic";  ///< automatic, text, json, systemd
  bool prompts = false;              ///< also log the beginning of each request's first prompt; live
};

struct drain_settings {
  std::uint64_t grace_ms = 5000;      ///< after SIGTERM: listeners stay open, new requests get 503
  std::uint64_t timeout_ms = 30'000;  ///< after SIGTERM: running answers may finish; then they are aborted
};

/// Chat answers that were interrupted by /v1/server/pause.
struct pause_settings {
  std::uint32_t requests_max = 64;    ///< of one tenant; a further one replaces the oldest; 0: none can be paused
  std::uint32_t tokens_max = 65'536;  ///< tokens of a paused answer with its prompt; longer ones cannot be paused
  std::uint64_t age_max_s = 3600;     ///< seconds after which a paused answer is discarded
};

/// Defaults of one model for fields that a request does not set; all live. Section `[models."name"]`.
struct model_defaults {
  // chat requests without sampler fields
  double temperature = 1.0;
  double top_p = 0.6;
  std::int32_t top_k = 20;
  double alpha_presence = 1.0;
  double alpha_frequency = 0.1;
  double alpha_decay = 0.996;
  std::uint32_t max_tokens = 4096;                               ///< of a chat answer
  std::uint32_t completion_max_tokens = 256;                     ///< of /v1/completions
  std::vector<std::string> stop{"\nUser:"};                      ///< stop strings of chat requests that send none
  std::string no_think_opening = "Assistant: <think>\n</think";  ///< text that opens an answer without thinking
  bool default_think = false;                                    ///< whether chat requests think by default
};

/// The demo model is small and its distributions are sharp: penalties would suppress the only correct answer.
[[nodiscard]] inline model_defaults demo_defaults() {
  model_defaults d;
  d.temperature = 0.5;
  d.top_p = 0.5;
  d.alpha_presence = 0;
  d.alpha_frequency = 0;
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
