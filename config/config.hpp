#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// Every setting of the server as plain values, grouped as in the file: the member `server.port` is the key `port` of
/// the section `[server]`. The initial values here are the defaults; config/keys.cpp adds meaning, range and other
/// spellings; config/load.hpp fills this in from file, environment and flags. "Live" settings may change while the
/// server runs, all others need a restart.
namespace skein::config {

struct server_settings {
  /// Address to listen on. Beyond loopback it needs a password or allow_unauthenticated. Default 127.0.0.1.
  std::string host = "127.0.0.1";
  /// TCP port; 0 lets the system choose. 0 .. 65535, default 8000.
  std::uint32_t port = 8000;
  /// PEM files of a certificate (with its chain) and its key; with them TLS is spoken on tls_port. Read anew when the
  /// server reloads. Live, default: none.
  std::string tls_certificate, tls_key;
  /// TCP port for TLS beside `port`; 0 lets the system choose. 0 .. 65535, default 8443.
  std::uint32_t tls_port = 8443;
  /// Path of a unix socket to listen on as well. Default: none.
  std::string unix_socket;
  /// Path of the unix socket for `skein state`; empty: admin.socket in state_dir, if there is one.
  std::string admin_socket;
  /// Threads that speak HTTP; 0 chooses from the number of cores. 0 .. 64, default 0.
  std::uint32_t io_threads = 0;
  /// What clients must send as bearer token. Empty: no authentication. Secret; not together with password_file. Live.
  std::string password;
  /// File whose first line is the password. The loader reads it and sets `password`. Live.
  std::string password_file;
  /// File of API keys, see access/api_key.hpp; a credential api-keys of systemd takes its place. Default: none. Live.
  std::string keys_file;
  /// Also accept the password as the JSON field `password` of the body, as older servers do. Live, default true.
  bool json_password = true;
  /// Let anybody translate (/translate/v1/batch-translate), where all else needs the password: the extension of
  /// browsers that uses it sends none. Live, default false.
  bool open_translation = false;
  /// Let /big_batch/completions draw by `noise` where a request sends it; else the field has no effect, as with the
  /// newer of the servers that had it. Live, default false.
  bool noise = false;
  /// Let anybody read /metrics. Live, default false.
  bool open_metrics = false;
  /// Refuse a request of OpenAI's routes whose model nobody knows (404); else the current model answers, as the older
  /// servers have it. Live, default false.
  bool strict_model_names = false;
  /// Name the fields of a request for text that were not read, in a header of its answer. Live, default false.
  bool tell_ignored_fields = false;
  /// Serve the chat page at /. Live, default true.
  bool web_page = true;
  /// Serve beyond loopback without a password. Default false.
  bool allow_unauthenticated = false;
  /// Folder for what outlives the process: sessions and states. Default: none, all of it is in memory.
  std::string state_dir;
  /// Work without progress of the device, after which /livez fails. Default 30 s.
  std::uint32_t stall_ms = 30'000;
  /// Origins whose pages may call the server; "*" is every origin. Live, default: same origin only.
  std::vector<std::string> cors_origins;
  /// Names under which clients may address a server without a password, beside localhost and IP addresses; a request
  /// for another `Host` gets 403. Live. Default: none.
  std::vector<std::string> host_names;
  /// Addresses of proxies whose X-Forwarded-For is believed. Default: none.
  std::vector<std::string> trusted_proxies;
};

struct limit_settings {
  // connections
  std::uint32_t header_bytes_max = 8192;               ///< bytes of request line and header fields
  std::uint32_t header_fields_max = 100;               ///< header fields of a request
  std::uint64_t body_bytes_max = 8ull << 20;           ///< bytes of a body
  std::uint64_t request_wire_bytes_max = 16ull << 20;  ///< bytes of a body with framing and trailers
  std::uint32_t body_bytes_per_second_min = 1024;      ///< slower bodies are cut off
  std::uint32_t outbound_bytes_max = 256 * 1024;       ///< bytes queued for one reader before its generation pauses
  std::uint32_t unsent_bytes_max = 128 * 1024;         ///< beside them, that the system takes before it sends
  std::uint32_t connections_max = 12000;               ///< open connections of the whole server
  std::uint32_t connections_per_address_max = 64;      ///< loopback and trusted proxies are spared
  std::uint32_t requests_per_connection_max = 10000;   ///< then the connection closes
  std::uint64_t unauthenticated_body_bytes_max = 256 * 1024;  ///< of a body that has to bring the password itself
  std::uint32_t login_failures_max = 20;                      ///< of one address within login_window_ms; 0: no limit
  std::uint64_t login_window_ms = 60'000;                     ///< from an address's first wrong password
  std::uint32_t login_addresses_max = 4096;                   ///< whose wrong passwords are remembered
  std::uint64_t header_timeout_ms = 10'000;                   ///< for complete headers
  std::uint64_t body_timeout_ms = 30'000;                     ///< for a complete body
  std::uint64_t idle_timeout_ms = 60'000;                     ///< between requests of one connection
  std::uint64_t write_timeout_ms = 60'000;                    ///< without progress of a reader
  std::uint32_t socket_message_bytes_max = 1u << 20;          ///< of one message on a WebSocket
  std::uint64_t socket_idle_timeout_ms = 300'000;             ///< without a sign of life on a WebSocket
  std::uint32_t socket_requests_max = 16;                     ///< responses that run on one WebSocket
  // requests
  std::uint32_t n_max = 128;                       ///< answers to one prompt
  std::uint32_t max_tokens_max = 1u << 20;         ///< tokens of one answer; larger wishes are cut to this
  std::uint32_t prompt_tokens_max = 4u << 20;      ///< tokens of one prompt
  std::uint32_t prompts_max = 4096;                ///< prompts times n of one request
  std::uint32_t stops_max = 16;                    ///< stop strings of a request
  std::uint32_t stop_bytes_max = 256;              ///< bytes of one stop string
  std::uint32_t logit_bias_max = 1024;             ///< entries of logit_bias
  std::uint32_t mixture_max = 8;                   ///< states of one mixture
  std::uint32_t json_depth_max = 64;               ///< nesting of a body
  std::uint64_t response_bytes_max = 32ull << 20;  ///< bytes of a response that is sent whole
};

struct queue_settings {
  std::uint32_t waiting_max = 1024;             ///< requests that wait for a slot; more are answered 429
  std::uint32_t waiting_per_client_max = 256;   ///< of one client (its key or address)
  std::uint64_t bytes_max = 256ull << 20;       ///< bytes of bodies, of prompts, and of answers that wait for readers
  std::uint64_t key_bytes_max = 0;              ///< of these, of one key; 0: half of them
  std::uint64_t address_bytes_max = 0;          ///< of one address without a secret; 0: a sixteenth
  std::uint32_t prompts_waiting_max = 64;       ///< prompts of one request that wait for slots at a time
  std::uint32_t turn_tokens = 256;              ///< tokens after which a row may have to make room for a waiting one
  std::uint32_t parked_max = 4096;              ///< rows that made room and wait, their states copied out
  std::uint64_t parked_bytes_max = 1ull << 30;  ///< bytes of these states
  std::uint32_t copies_max = 16;                ///< copies of states inside prompts on their way out at a time
  std::uint64_t undo_bytes_max = 1ull << 30;    ///< bytes of states after prompts, kept for answers that may be cut
  std::uint64_t queue_timeout_ms = 120'000;     ///< longest wait for a slot
  std::uint64_t total_timeout_ms = 3'600'000;   ///< longest life of a request, waiting included
  std::uint64_t full_unready_ms = 10'000;       ///< a queue that was full for so long makes /readyz fail
};

struct session_settings {
  std::uint64_t ram_bytes_max = 0;                 ///< bytes of states in RAM; 0: an eighth of what is free at start
  std::uint32_t ram_states_max = 0;                ///< states in RAM; 0: as many as their bytes allow
  std::uint64_t disk_bytes_max = 32ull << 30;      ///< bytes of states on disk
  std::uint32_t disk_states_max = 0;               ///< states on disk; 0: as many as their bytes allow
  std::uint64_t disk_state_age_max_s = 0;          ///< seconds after which an unused state leaves the disk; 0: never
  std::uint64_t session_age_max_s = 0;             ///< seconds after which an unused session is removed; 0: never
  std::uint64_t write_behind_ms = 1000;            ///< that a new state waits until it is written
  std::uint64_t dirty_bytes_max = 64ull << 20;     ///< bytes of states that wait; above, they are written at once
  std::uint64_t tree_bytes_max = 64ull << 20;      ///< bytes of sessions' texts that stay in memory
  std::uint64_t unsaved_bytes_max = 64ull << 20;   ///< bytes of turns that only memory has
  std::uint64_t file_bytes_max = 256ull << 20;     ///< bytes of an imported session
  std::uint64_t tenant_sessions_max = 100'000;     ///< sessions that one tenant may store; 0: no limit
  std::uint64_t tenant_versions_max = 10'000'000;  ///< versions of all of them; 0: no limit
  std::uint64_t tenant_bytes_max = 64ull << 30;    ///< bytes of all of them; 0: no limit
  std::uint32_t writers_max = 8;                   ///< turns of one session that run at a time
  std::uint32_t waiters_max = 16;                  ///< turns that wait for one session
  std::string busy = "wait";                       ///< what a turn does that cannot run yet: wait, refuse
  std::string state_dtype = "auto";                ///< type of stored states: auto (as in the engine), fp32, fp16
  std::string signature_key;                       ///< that exported sessions are signed with
  // of the database
  std::uint64_t cache_bytes_max = 32ull << 20;         ///< bytes of blocks that are kept in memory
  std::uint64_t write_buffer_bytes_max = 64ull << 20;  ///< bytes that wait in memory for a file
  std::uint32_t open_files_max = 512;                  ///< files that are open at once
};

struct prefix_cache_settings {
  bool enabled = true;                        ///< keep states of prompts' beginnings
  std::uint64_t ram_bytes_max = 0;            ///< bytes of these states in RAM; 0: a sixteenth of what is free at start
  std::uint64_t disk_bytes_max = 8ull << 30;  ///< bytes of them on disk; 0: none
  std::uint32_t min_tokens = 32;              ///< of a prefix that is worth a state
  std::uint32_t every_tokens = 512;           ///< a state after every so many tokens of a prompt; 0: none of these
  std::uint32_t wait_tokens_min = 0;          ///< that make a prompt wait for a state on disk; 0: by the device
};

struct engine_settings {
  /// auto (a GPU if there is one, else the CPU), cpu, cuda, fake, or devices as cuda:0, cuda:0,cuda:1 (replicas),
  /// cuda:0+1 (shards), hip:0. Default auto.
  std::string device = "auto";
  /// Type the matrices are kept in: auto (as in the file), fp32, bf16, fp16, int8, nf4. Default auto.
  std::string dtype = "auto";
  /// Type the states are kept in: fp32, fp16. Default fp32.
  std::string state_dtype = "fp32";
  /// How far the bits of an answer may hang on what else runs: default, strict, fast. Default default.
  std::string invariance = "default";
  /// Sequences resident at once; 0 chooses. 0 .. 65536, default 0.
  std::uint32_t slots = 0;
  /// States of sessions that stay in free slots until others need the slots; more than slots: in all. 0 .. 65536,
  /// default 65536.
  std::uint32_t vram_states_max = 65536;
  /// Tokens that one tick may carry, decode and prefill together; 0: 256 on the CPU, 2048 on a GPU. Default 0.
  std::uint32_t max_tick_tokens = 0;
  /// Prompt tokens that a tick carries while others decode, at most max_tick_tokens; 0: 64 on the CPU, where two cores
  /// then hold up the other answers of a 0.4B model by about 0.15 s, and 512 on a GPU. Default 0.
  std::uint32_t prefill_chunk_tokens = 0;
  /// Bytes of states on their way between a GPU and the host, there and pinned here; four states are always allowed.
  /// Default 256 MiB.
  std::uint64_t moving_bytes_max = 256ull << 20;
  /// Threads of the cpu engine; 0: as many as the process may use. Default 0.
  std::uint32_t threads = 0;
  /// Microseconds that a tick of the fake engine takes, so that tests can hold streams in their middle. Default 0.
  std::uint32_t fake_tick_us = 0;
  /// Tick of the fake engine out of which an exception comes, so that tests can see the server survive it. Default
  /// 0: none.
  std::uint32_t fake_throw_tick = 0;
  /// Tick in which the fake engine's device is gone, likewise. Default 0: none.
  std::uint32_t fake_lost_tick = 0;
};

struct model_settings {
  std::string path;  ///< checkpoint, .pth or .safetensors; the ending .pth may be left out; empty: the demo model
  std::string name;  ///< name in the API; empty: the file's name without its ending
  /// Other names that clients may send in the field `model`. Default: what clients of older servers send.
  std::vector<std::string> aliases{"rwkv7", "rwkv"};
  std::string vocab;             ///< vocabulary file or "bytes"; empty: found beside the model
  bool allow_nonfinite = false;  ///< load weights and tuned states that hold NaN or infinity
  std::string root;              ///< folder of the models that clients may load; empty: none but `path`
  /// What a load does with the model that is there: beside, it serves until the new one is loaded; replace, it goes
  /// first, for where both do not fit. Default beside.
  std::string on_switch = "beside";
  std::uint32_t resident_max = 1;       ///< models in memory at a time; above 1 a request's name has them loaded
  std::uint32_t resting_max = 16;       ///< models that had to go, or that nobody used, and come back when named
  std::uint64_t idle_unload_s = 0;      ///< seconds after which an unused model is unloaded; 0: never
  std::uint64_t memory_bytes_max = 0;   ///< bytes of all models while one is loaded beside another; 0: what is free
  std::string states_dir;               ///< folder of the state-tuning files that clients may load; empty: none
  std::uint32_t tuned_states_max = 64;  ///< of these that are loaded at once
  /// Loaded with every model that they fit, and they must fit the first: "NAME=FILE", with FILE below states_dir.
  std::vector<std::string> tuned_states;
};

struct log_settings {
  std::string level = "info";        ///< debug, info, warning, error, off; live
  std::string format = "automatic";  ///< automatic, text, json, systemd
  bool prompts = false;              ///< log what is fed of each request; live
};

struct drain_settings {
  std::uint64_t grace_ms = 5000;      ///< after SIGTERM: listeners stay open, new work is answered 503
  std::uint64_t timeout_ms = 30'000;  ///< after SIGTERM: running answers may finish; then they are ended
};

/// Chat answers that were interrupted by /v1/server/pause.
struct pause_settings {
  std::uint32_t requests_max = 64;    ///< kept at a time; one more takes the oldest one's place; 0: none can be paused
  std::uint32_t tokens_max = 65'536;  ///< of one, prompt and answer; a longer one cannot be paused
  std::uint64_t age_max_s = 3600;     ///< after that it is forgotten
};

/// Defaults of one model for requests that leave things open; all live. Section `[models."name"]`.
struct model_defaults {
  // a chat request that names no sampler field
  double temperature = 1.0;
  double top_p = 0.6;
  std::int32_t top_k = 20;
  double alpha_presence = 1.0;
  double alpha_frequency = 0.1;
  double alpha_decay = 0.996;
  std::uint32_t max_tokens = 4096;                               ///< of a chat answer
  std::uint32_t completion_max_tokens = 256;                     ///< of /v1/completions
  std::vector<std::string> stop{"\nUser:"};                      ///< stop strings of chat requests that name none
  std::string no_think_opening = "Assistant: <think>\n</think";  ///< how the template opens an answer without thinking
  bool default_think = false;                                    ///< chat requests that do not say think
};

/// The demo model is small and sure of itself: penalties would push it off the only answer that it knows.
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
