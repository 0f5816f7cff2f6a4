#include "config/keys.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/weight_format_names.hpp"
#include "config/key_row.hpp"
#include "config/limits.hpp"

namespace skein::config {
namespace {

template <auto Field>
constexpr row server(std::string_view name, std::string_view help) {
  return setting<&config::server, Field>("server", name, help);
}
template <auto Field>
constexpr row limit(std::string_view name, double low, double high, std::string_view help) {
  return setting<&config::limits, Field>("limits", name, help).range(low, high).changes_live();
}
template <auto Field>
constexpr row queue(std::string_view name, double low, double high, std::string_view help) {
  return setting<&config::queue, Field>("queue", name, help).range(low, high).changes_live();
}
template <auto Field>
constexpr row session(std::string_view name, std::string_view help) {
  return setting<&config::sessions, Field>("sessions", name, help);
}
template <auto Field>
constexpr row session(std::string_view name, double low, double high, std::string_view help) {
  return session<Field>(name, help).range(low, high);
}
template <auto Field>
constexpr row prefix(std::string_view name, std::string_view help) {
  return setting<&config::prefix_cache, Field>("prefix_cache", name, help);
}
template <auto Field>
constexpr row engine(std::string_view name, std::string_view help) {
  return setting<&config::engine, Field>("engine", name, help);
}
template <auto Field>
constexpr row model(std::string_view name, std::string_view help) {
  return setting<&config::model, Field>("model", name, help);
}
template <auto Field>
constexpr row log(std::string_view name, std::string_view help) {
  return setting<&config::log, Field>("log", name, help);
}
template <auto Field>
constexpr row drain(std::string_view name, std::string_view help) {
  return setting<&config::drain, Field>("drain", name, help)
      .range(0, static_cast<double>(limits::duration_ms_max))
      .changes_live();
}

template <auto Field>
constexpr row pause(std::string_view name, double high, std::string_view help) {
  return setting<&config::pause, Field>("pause", name, help).range(0, high);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 4 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "cuda:0", "hip:1", "cuda:0+1"
bool is_device_group(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos) return false;
  if (text.substr(0, colon) != "cuda" && text.substr(0, colon) != "hip") return false;
  for (std::string_view rest = text.substr(colon + 1);;) {
    const auto plus = rest.find('+');
    if (!is_number(rest.substr(0, plus))) return false;
    if (plus == std::string_view::npos) return true;
    rest = rest.substr(plus + 1);
  }
}

// One of a list of devices of one kind.
bool is_listed_device(std::string_view text, std::string_view kind) {
  if (text == kind) return true;
  return is_device_group(text) && text.starts_with(kind);
}

bool is_device(std::string_view text) {
  if (text == "auto") return true;
  const std::string_view kind = text.substr(0, text.find_first_of(":,"));
#if SKEIN_FAKE_ENGINE
  if (kind != "cpu" && kind != "cuda" && kind != "hip" && kind != "fake") return false;
#else
  if (kind != "cpu" && kind != "cuda" && kind != "hip") return false;
#endif
  for (std::uint32_t count = 1; count <= limits::devices_max; ++count) {
    const auto comma = text.find(',');
    if (!is_listed_device(text.substr(0, comma), kind)) return false;
    if (comma == std::string_view::npos) return true;
    text = text.substr(comma + 1);
  }
  return false;
}

constexpr double u32_max = 4294967295.0;
constexpr auto duration_max = static_cast<double>(limits::duration_ms_max);

#if SKEIN_FAKE_ENGINE
/// Behind the others of their section.
void add_keys_for_tests(std::vector<key>& table) {
  using e = engine_settings;
  static constexpr row rows[] = {
      engine<&e::fake_tick_us>("fake_tick_us", "Microseconds that a tick of the fake engine takes.")
          .range(0, 10'000'000),
      engine<&e::fake_throw_tick>("fake_throw_tick", "Tick in which the fake engine throws; 0: none.")
          .range(0, u32_max),
      engine<&e::fake_lost_tick>("fake_lost_tick", "Tick in which the fake device is lost; 0: none.").range(0, u32_max),
      engine<&e::fake_faulty_device>("fake_faulty_device", "Number of the fake device that throws or is lost.")
          .range(0, limits::devices_max),
  };
  auto at = std::ranges::find(table, std::string_view("model"), &key::section);
  for (const auto& one : rows) {
    key made = key_of(one, std::string(one.section));
    made.for_tests = true;
    at = std::next(table.insert(at, std::move(made)));
  }
}
#endif

std::vector<key> make_keys() {
  using s = server_settings;
  using l = limit_settings;
  using q = queue_settings;
  using n = session_settings;
  using p = prefix_cache_settings;
  using e = engine_settings;
  static constexpr row rows[] = {
      server<&s::host>(
          "host",
          "Address to listen on. Any address but loopback requires a password, API keys or allow_unauthenticated.")
          .flag({"--host", "--localhost"}),
      server<&s::port>("port", "TCP port; 0 lets the system choose.").range(0, 65535).flag({"--port"}),
      server<&s::tls_certificate>("tls_certificate", "PEM file of a certificate and its chain, for TLS; empty: no TLS.")
          .flag({"--tls-certificate"})
          .changes_live(),
      server<&s::tls_key>("tls_key", "PEM file of the certificate's key.").flag({"--tls-key"}).changes_live(),
      server<&s::tls_port>("tls_port", "TCP port for TLS, in addition to port; 0 lets the system choose.")
          .range(0, 65535)
          .flag({"--tls-port"}),
      server<&s::unix_socket>("unix_socket", "Path of a unix socket to listen on as well; empty: none.")
          .flag({"--unix-socket"}),
      server<&s::admin_socket>(
          "admin_socket",
          "Path of the unix socket for skein state, accessible to its owner only; empty: admin.socket in state_dir."),
      server<&s::io_threads>("io_threads", "HTTP threads; 0 chooses from the number of cores.")
          .range(0, limits::io_threads_max)
          .flag({"--io-threads", "--workers"}),
      server<&s::password>("password", "Bearer token that clients must send; empty: no password.")
          .flag({"--password"})
          .hidden()
          .changes_live(),
      server<&s::password_file>("password_file", "File whose first line is the password; empty: none.")
          .flag({"--password-file"})
          .changes_live(),
      server<&s::keys_file>(
          "keys_file", "File of API keys (see skein keys); the systemd credential api-keys overrides it; empty: none.")
          .flag({"--keys-file"})
          .changes_live(),
      server<&s::json_password>("json_password", "Also accept the password in the JSON field password of the body.")
          .changes_live(),
      server<&s::open_translation>("open_translation", "Allow translation requests without a password or key.")
          .changes_live(),
      server<&s::noise>("noise",
                        "Apply the field noise of /big_batch/completions to sampling; otherwise it is ignored.")
          .changes_live(),
      server<&s::open_metrics>("open_metrics", "Allow reading /metrics without a password or key.").changes_live(),
      server<&s::strict_model_names>(
          "strict_model_names",
          "Return 404 for an unknown model name on OpenAI routes; otherwise the current model answers.")
          .changes_live(),
      server<&s::tell_ignored_fields>(
          "tell_ignored_fields",
          "List the ignored fields of a generation request in the response header X-Skein-Ignored-Fields.")
          .changes_live(),
      server<&s::web_page>("web_page", "Serve the chat page at /.").changes_live(),
      server<&s::allow_unauthenticated>("allow_unauthenticated",
                                        "Allow addresses other than loopback without a password or API keys.")
          .flag({"--allow-unauthenticated"}),
      server<&s::state_dir>("state_dir", "Folder for sessions and states; empty: keep them in memory only.")
          .flag({"--state-dir", "--state-db-path"}),
      server<&s::stall_ms>("stall_ms",
                           "Milliseconds for which the device may have work but make no progress; after that /livez "
                           "fails and the systemd watchdog is no longer notified.")
          .range(100, static_cast<double>(limits::duration_ms_max)),
      server<&s::cors_origins>("cors_origins", "Origins whose pages may call the server; \"*\" allows every origin.")
          .changes_live(),
      server<&s::host_names>(
          "host_names",
          "Host names that requests may use, in addition to localhost and IP addresses, if the server has no password.")
          .changes_live(),
      server<&s::trusted_proxies>("trusted_proxies",
                                  "Addresses of proxies whose X-Forwarded-For is trusted; \"unix\" trusts connections "
                                  "through the unix socket."),

      limit<&l::header_bytes_max>("header_bytes_max", 512, limits::header_bytes_max,
                                  "Bytes of the request line and the header fields."),
      limit<&l::header_fields_max>("header_fields_max", 8, limits::header_fields_max, "Header fields of a request."),
      limit<&l::body_bytes_max>("body_bytes_max", 1024, limits::body_bytes_max, "Bytes of a request body."),
      limit<&l::request_wire_bytes_max>("request_wire_bytes_max", 1024, limits::request_wire_bytes_max,
                                        "Bytes of a request body with its framing and trailers."),
      limit<&l::body_bytes_per_second_min>(
          "body_bytes_per_second_min", 0, u32_max,
          "Minimum upload rate of a body in bytes per second; slower uploads are aborted."),
      limit<&l::outbound_bytes_max>(
          "outbound_bytes_max", 4096, limits::outbound_bytes_max,
          "Bytes queued for one client before its generation pauses; also the limit of a streamed echo."),
      limit<&l::unsent_bytes_max>("unsent_bytes_max", 4096, limits::unsent_bytes_max,
                                  "Unsent bytes that the kernel buffers for one connection, in addition to "
                                  "outbound_bytes_max; applies to new connections."),
      limit<&l::connections_max>("connections_max", 1, limits::connections_max,
                                 "Open connections of the whole server."),
      limit<&l::connections_per_address_max>(
          "connections_per_address_max", 1, limits::connections_max,
          "Open connections of one address; loopback and trusted proxies are exempt."),
      limit<&l::requests_per_connection_max>("requests_per_connection_max", 1, u32_max,
                                             "Requests after which a connection is closed."),
      limit<&l::unauthenticated_body_bytes_max>(
          "unauthenticated_body_bytes_max", 1024, limits::body_bytes_max,
          "Bytes of the body of a request that its headers do not authenticate; such a body may contain the password."),
      limit<&l::login_failures_max>(
          "login_failures_max", 0, limits::login_failures_max,
          "Wrong passwords of one address, loopback included, after which further wrong ones get 429 for the rest of "
          "login_window_ms; requests without a password may be five times as many. 0: no limit."),
      limit<&l::login_window_ms>("login_window_ms", 1, duration_max,
                                 "Milliseconds from an address's first wrong password until its count is reset."),
      limit<&l::login_addresses_max>("login_addresses_max", 1, limits::login_addresses_max,
                                     "Addresses whose wrong passwords are counted; a further one replaces the oldest."),
      limit<&l::header_timeout_ms>("header_timeout_ms", 1, duration_max,
                                   "Milliseconds in which the complete headers must arrive."),
      limit<&l::body_timeout_ms>("body_timeout_ms", 1, duration_max,
                                 "Milliseconds in which the complete body must arrive."),
      limit<&l::idle_timeout_ms>("idle_timeout_ms", 1, duration_max,
                                 "Milliseconds between two requests of a connection."),
      limit<&l::write_timeout_ms>("write_timeout_ms", 1, duration_max,
                                  "Milliseconds without progress after which a slow client is disconnected."),
      limit<&l::socket_message_bytes_max>("socket_message_bytes_max", 1024, limits::response_bytes_max,
                                          "Bytes of one WebSocket message."),
      limit<&l::socket_idle_timeout_ms>("socket_idle_timeout_ms", 2, duration_max,
                                        "Milliseconds without a frame from the client after which a WebSocket is "
                                        "closed; a ping is sent after half of them."),
      limit<&l::socket_requests_max>("socket_requests_max", 1, limits::waiting_max,
                                     "Concurrent responses on one WebSocket."),
      limit<&l::n_max>("n_max", 1, limits::n_max, "Answers to one prompt (n and best_of)."),
      limit<&l::max_tokens_max>("max_tokens_max", 1, limits::max_tokens_max,
                                "Tokens of one answer; larger requests are reduced to this."),
      limit<&l::prompt_tokens_max>("prompt_tokens_max", 1, limits::prompt_tokens_max, "Tokens of one prompt."),
      limit<&l::prompts_max>("prompts_max", 1, limits::prompts_max, "Prompts times n of one request."),
      limit<&l::stops_max>("stops_max", 0, limits::stops_max, "Stop strings of a request."),
      limit<&l::stop_bytes_max>("stop_bytes_max", 1, limits::stop_bytes_max, "Bytes of one stop string."),
      setting<&config::limits, &l::logit_bias_max>("limits", "logit_bias_max", "Entries of logit_bias.")
          .range(0, limits::logit_bias_max),  // not live: the GPU engine has allocated its buffers
      setting<&config::limits, &l::mixture_max>("limits", "mixture_max", "States in one mixture.")
          .range(1, limits::mixture_max),
      limit<&l::tools_max>("tools_max", 0, limits::tools_max, "Functions in the tools of a request."),
      limit<&l::json_depth_max>("json_depth_max", 4, limits::json_depth_max, "Nesting depth of a JSON body."),
      limit<&l::grammar_bytes_max>("grammar_bytes_max", 0, limits::grammar_bytes_max,
                                   "Bytes of the schema, pattern or grammar that an answer must match; 0: none is "
                                   "accepted."),
      limit<&l::grammar_steps_max>("grammar_steps_max", 1000, limits::grammar_steps_max,
                                   "Steps to compile one of these, about 10 ns each; a limit in steps refuses the same "
                                   "schemas on every machine."),
      limit<&l::grammars_max>("grammars_max", 0, limits::grammars_max,
                              "Compiled schemas and grammars that are kept for later requests, up to some MB each."),
      limit<&l::response_bytes_max>(
          "response_bytes_max", 65536, limits::response_bytes_max,
          "Bytes of a response that is not streamed; generated text ends there, other responses are refused."),
      limit<&l::response_followers_max>("response_followers_max", 1, limits::response_followers_max,
                                        "Clients that follow one background response; further ones are refused."),

      queue<&q::waiting_max>("waiting_max", 0, limits::waiting_max,
                             "Requests that wait for a slot; further ones are refused at once. The last one waits for "
                             "about waiting_max / slots answers."),
      queue<&q::waiting_per_client_max>("waiting_per_client_max", 0, limits::waiting_max,
                                        "Waiting requests of one client (its key or address)."),
      queue<&q::prompts_waiting_max>("prompts_waiting_max", 1, limits::waiting_max,
                                     "Prompts of one request that wait for slots at a time; the rest follow."),
      queue<&q::bytes_max>("bytes_max", 1024, limits::memory_bytes_max,
                           "Bytes of all requests and answers: bodies as they arrive, tokens of prompts that wait or "
                           "run, answers until clients have read them."),
      queue<&q::key_bytes_max>("key_bytes_max", 0, limits::memory_bytes_max,
                               "Bytes of bytes_max that one key may use, or one address if no key is required; 0: half "
                               "of bytes_max. A longer body or file is refused."),
      queue<&q::address_bytes_max>("address_bytes_max", 0, limits::memory_bytes_max,
                                   "Bytes of bytes_max that one address may use before it authenticates; 0: a "
                                   "sixteenth of bytes_max. All such addresses together use at most a quarter."),
      queue<&q::turn_tokens>("turn_tokens", 1, u32_max,
                             "Tokens that an answer generates before it may be parked for a waiting request."),
      queue<&q::parked_max>("parked_max", 0, limits::waiting_max,
                            "Parked answers: they wait for another turn, with their states copied out of the engine."),
      queue<&q::parked_bytes_max>("parked_bytes_max", 0, limits::memory_bytes_max,
                                  "Bytes of the states of parked answers; one more state is always allowed."),
      setting<&config::queue, &q::copies_max>(
          "queue", "copies_max",
          "Copies of states inside prompts that are in transfer out of the engine at a time; further ones are skipped.")
          .range(0, limits::waiting_max),
      setting<&config::queue, &q::undo_bytes_max>("queue", "undo_bytes_max",
                                                  "Bytes of states after prompts, kept while an answer may be cut; "
                                                  "without such a state the prompt is processed again.")
          .range(0, limits::memory_bytes_max),
      queue<&q::queue_timeout_ms>("queue_timeout_ms", 1, duration_max, "Milliseconds that a request waits for a slot."),
      queue<&q::total_timeout_ms>("total_timeout_ms", 1, duration_max,
                                  "Milliseconds from a request's arrival until it is aborted."),
      queue<&q::full_unready_ms>(
          "full_unready_ms", 1, duration_max,
          "Milliseconds for which the queue may be full; after that /readyz fails until the queue has room."),

      session<&n::ram_bytes_max>("ram_bytes_max", 0, limits::memory_bytes_max,
                                 "Bytes of session states in RAM; 0: an eighth of the memory that is free at start."),
      session<&n::ram_states_max>("ram_states_max", 0, u32_max,
                                  "Session states in RAM; 0: as many as ram_bytes_max allows."),
      session<&n::disk_bytes_max>(
          "disk_bytes_max", 0, limits::disk_bytes_max,
          "Bytes of session states on disk; older ones are removed and recomputed from tokens when needed."),
      session<&n::disk_states_max>("disk_states_max", 0, u32_max,
                                   "Session states on disk; 0: as many as disk_bytes_max allows."),
      session<&n::disk_state_age_max_s>("disk_state_age_max_s", 0, limits::age_s_max,
                                        "Seconds after which an unused state is removed from disk; 0: never."),
      session<&n::session_age_max_s>("session_age_max_s", 0, limits::age_s_max,
                                     "Seconds after which an unused session is removed; 0: never."),
      session<&n::write_behind_ms>("write_behind_ms", 0, duration_max,
                                   "Milliseconds that a new state may wait to be written."),
      session<&n::dirty_bytes_max>(
          "dirty_bytes_max", 0, limits::memory_bytes_max,
          "Bytes of states that may wait to be written; RAM may exceed its budget by as much meanwhile."),
      session<&n::tree_bytes_max>(
          "tree_bytes_max", 0, limits::memory_bytes_max,
          "Bytes of tokens, texts, titles and metadata of unused sessions that stay in memory."),
      session<&n::unsaved_bytes_max>(
          "unsaved_bytes_max", 0, limits::memory_bytes_max,
          "Bytes of turns that are in memory only; above it turns are refused while the disk fails, and without a "
          "state_dir the least recently used sessions are removed."),
      session<&n::file_bytes_max>("file_bytes_max", 1024, limits::memory_bytes_max, "Bytes of an imported session."),
      session<&n::tenant_sessions_max>(
          "tenant_sessions_max", 0, u32_max,
          "Sessions, conversations and chains of responses that one tenant may store; further ones are refused with "
          "507. 0: no limit.")
          .changes_live(),
      session<&n::tenant_versions_max>(
          "tenant_versions_max", 0, u32_max,
          "Versions (turns) that one tenant may store, including those of forks; 0: no limit.")
          .changes_live(),
      session<&n::tenant_bytes_max>("tenant_bytes_max", 0, limits::disk_bytes_max,
                                    "Bytes of tokens, texts, titles and metadata that one tenant may store, including "
                                    "those of forks; 0: no limit.")
          .changes_live(),
      session<&n::writers_max>("writers_max", 1, limits::waiting_max,
                               "Concurrent turns of one session, each from a version that it names."),
      session<&n::waiters_max>("waiters_max", 0, limits::waiting_max,
                               "Turns that wait for another turn of the same session."),
      session<&n::busy>("busy",
                        "Whether a turn waits or is refused if it cannot run beside the running turns of its session.")
          .texts("wait, refuse"),
      session<&n::state_dtype>("state_dtype", "Data type of stored states; auto: as in the engine.")
          .texts("auto, fp32, fp16"),
      session<&n::signature_key>(
          "signature_key",
          "Key that signs exported sessions; imported ones must be signed with it. Empty: no signatures.")
          .hidden(),
      session<&n::cache_bytes_max>("cache_bytes_max", 1 << 20, limits::memory_bytes_max,
                                   "Bytes of the database's block cache."),
      session<&n::write_buffer_bytes_max>("write_buffer_bytes_max", 1 << 20, limits::memory_bytes_max,
                                          "Bytes of the database's write buffer."),
      session<&n::open_files_max>("open_files_max", 32, limits::connections_max, "Files that the database keeps open."),

      prefix<&p::enabled>("enabled", "Keep states of prompt prefixes for later prompts that share them."),
      prefix<&p::ram_bytes_max>("ram_bytes_max",
                                "Bytes of these states in RAM; 0: a sixteenth of the memory that is free at start.")
          .range(0, limits::memory_bytes_max),
      prefix<&p::disk_bytes_max>("disk_bytes_max", "Bytes of these states on disk; 0: none.")
          .range(0, limits::disk_bytes_max),
      prefix<&p::min_tokens>("min_tokens", "Tokens of the shortest prefix whose state is kept.").range(1, u32_max),
      prefix<&p::every_tokens>("every_tokens", "Interval in tokens at which states inside a prompt are kept; 0: none.")
          .range(0, u32_max),
      prefix<&p::wait_tokens_min>("wait_tokens_min",
                                  "Tokens that a state on disk must save for a prompt to wait for it; below that it is "
                                  "read only for later prompts. 0: 2048 on a GPU, 1 otherwise.")
          .range(0, u32_max),

      engine<&e::device>(
          "device",
          "Devices of a model. Each of a list such as cuda:0,cuda:1 or cpu,cpu has a copy of the weights "
          "and its own slots and queue.")
          .texts("auto, cpu, cuda, cuda:N, hip, hip:N, or a list of these separated by commas", is_device)
          .flag({"--device"}),
      engine<&e::dtype>(
          "dtype",
          "Format of the weight matrices; auto: as in the file; of a quantised GGUF file the one of about the "
          "same size. int8, int4 and nf4 have a scale for 64 weights, int4-32 and the like for 32 or 128, fp8 one for "
          "each row.")
          .texts(weight_format_words)
          .flag({"--dtype"}),
      engine<&e::weight_format>("weight_format",
                                "Formats of single matrices, before dtype: PATTERN=FORMAT,... such as "
                                "\"ffn.*=nf4,att.*@0-7=int8\".")
          .flag({"--weight-format"}),
      engine<&e::state_dtype>("state_dtype", "Data type of the states.").texts("fp32, fp16").flag({"--state-dtype"}),
      engine<&e::invariance>("invariance",
                             "Reproducibility on a GPU. default: an answer depends on its request and session, not on "
                             "load; strict: nor on how its text was split into requests; fast: it may depend on both.")
          .texts("default, strict, fast")
          .flag({"--invariance"}),
      engine<&e::slots>("slots", "Sequences resident at once; 0 chooses from the device and its memory.")
          .range(0, limits::slots_max)
          .flag({"--slots", "--dynamic_state_cache_size", "--dynamic-state-cache-size"}),
      engine<&e::vram_states_max>("vram_states_max",
                                  "Session states that stay in free slots until other requests need the slots.")
          .range(0, limits::slots_max),
      engine<&e::max_tick_tokens>("max_tick_tokens",
                                  "Tokens of one tick, decode and prefill together; 0: 256 on the CPU, 2048 on a GPU, "
                                  "down to 256 where its memory is short. Below 128 a GPU decodes few answers "
                                  "while it prefills.")
          .range(0, limits::tick_tokens_max)
          .flag({"--max-tick-tokens"}),
      engine<&e::prefill_chunk_tokens>("prefill_chunk_tokens",
                                       "Prompt tokens of one tick while other requests decode; 0: 64 on the CPU, 512 "
                                       "on a GPU. On a GPU it is at least 64.")
          .range(0, limits::tick_tokens_max)
          .flag({"--prefill-chunk-tokens", "--chunk-size"}),
      engine<&e::moving_bytes_max>(
          "moving_bytes_max",
          "Bytes of buffers for states in transfer between a GPU and the host: this much on the "
          "GPU and as much in pinned host memory, down to an eighth where the GPU's memory is "
          "short. Four states are always allowed.")
          .range(0, limits::memory_bytes_max),
      engine<&e::threads>("threads", "Threads of the CPU engine; 0: as many as the process may use.")
          .range(0, limits::engine_threads_max)
          .flag({"--threads"}),

      model<&model_settings::path>(
          "path",
          "File (.pth, .safetensors, .st of web-rwkv, .gguf of llama.cpp, .bin of rwkv.cpp) or "
          "folder of a Hugging Face repository; the extension .pth may be omitted; empty: the "
          "demo model.")
          .flag({"--model", "--model-path"}),
      model<&model_settings::name>("name", "Name in the API; empty: the file's name without its extension.")
          .flag({"--model-name"}),
      model<&model_settings::aliases>("aliases", "Additional names that requests may use."),
      model<&model_settings::adapters>("adapters",
                                       "Adapters to merge into the weights of path, in order: FILE or FILE:SCALE. An "
                                       "adapter of PEFT is a folder.")
          .flag({"--adapter"}),
      model<&model_settings::vocab>("vocab", "Vocabulary file or bytes; empty: the file beside the model.")
          .flag({"--vocab", "--vocab-path"}),
      model<&model_settings::allow_nonfinite>(
          "allow_nonfinite", "Load weights and tuned states that contain NaN or infinity; otherwise they are refused.")
          .flag({"--allow-nonfinite"}),
      model<&model_settings::root>("root", "Folder of the models that clients may load; empty: only the model of path.")
          .flag({"--model-root"}),
      model<&model_settings::on_switch>(
          "switch",
          "How a load by a client replaces the model. beside: the old model serves until the new one is loaded, which "
          "needs memory for both; replace: the old model is unloaded first, and requests wait.")
          .texts("beside, replace"),
      model<&model_settings::resident_max>("resident_max",
                                           "Models in memory at a time; above 1 a request loads the model that it "
                                           "names, and the least recently used one is unloaded.")
          .range(1, limits::resident_models_max),
      model<&model_settings::resting_max>(
          "resting_max",
          "Unloaded models that are loaded again when a request names them; a further one replaces the oldest.")
          .range(1, limits::resting_models_max),
      model<&model_settings::idle_unload_s>(
          "idle_unload_s", "Seconds after which an unused model is unloaded, until the next request; 0: never.")
          .range(0, limits::age_s_max),
      model<&model_settings::memory_bytes_max>(
          "memory_bytes_max",
          "Bytes of all models while one is loaded beside another; 0: the free memory of the machine or the GPU.")
          .range(0, limits::memory_bytes_max),
      model<&model_settings::states_dir>("states_dir",
                                         "Folder of the state-tuning files that clients may load; empty: none.")
          .flag({"--states-dir"}),
      model<&model_settings::tuned_states_max>("tuned_states_max", "State-tuning files in memory at a time.")
          .range(0, limits::tuned_states_max),
      model<&model_settings::tuned_states>("tuned_states",
                                           "State-tuning files from states_dir, as \"NAME=FILE\", that are loaded with "
                                           "every model that they fit; they must fit the first model."),

      log<&log_settings::level>("level", "Lowest level that is logged.")
          .texts("debug, info, warning, error, off")
          .flag({"--log-level"})
          .changes_live(),
      log<&log_settings::format>("format", "Format of log lines; automatic chooses by the type of stderr.")
          .texts("automatic, text, json, systemd")
          .flag({"--log-format"}),
      log<&log_settings::prompts>("prompts",
                                  "Also log the first 4096 bytes of each request's first prompt, as fed to the model.")
          .changes_live(),

      drain<&drain_settings::grace_ms>("grace_ms",
                                       "Milliseconds after SIGTERM during which new requests are answered with 503."),
      drain<&drain_settings::timeout_ms>("timeout_ms",
                                         "Milliseconds after SIGTERM during which running answers may finish."),
      drain<&drain_settings::flush_ms>(
          "flush_ms",
          "Milliseconds at the end in which states of sessions that are only in memory are "
          "written. Turns whose states were not written are processed again later."),

      pause<&pause_settings::requests_max>("requests_max", 65536,
                                           "Chat answers of one tenant, interrupted by /v1/server/pause, that are "
                                           "kept; a further one replaces the oldest. 0: none can be paused."),
      pause<&pause_settings::tokens_max>("tokens_max", 16'777'216,
                                         "Tokens of a paused answer with its prompt; longer ones cannot be paused."),
      pause<&pause_settings::age_max_s>("age_max_s", 2'592'000, "Seconds after which a paused answer is discarded."),
  };
  std::vector<key> made;
  for (const auto& one : rows) made.push_back(key_of(one, std::string(one.section)));
#if SKEIN_FAKE_ENGINE
  add_keys_for_tests(made);
#endif
  return made;
}

}  // namespace

std::span<const key> keys() {
  static const std::vector<key> table = make_keys();
  return table;
}

std::optional<key> find_key(std::string_view path) {
  constexpr std::string_view models = "models.";
  const auto last = path.rfind('.');
  if (path.starts_with(models) && last > models.size()) {
    std::string_view model_name = path.substr(models.size(), last - models.size());
    if (model_name.size() > 1 && model_name.front() == '"' && model_name.back() == '"')
      model_name = model_name.substr(1, model_name.size() - 2);
    for (auto& k : model_keys(model_name))
      if (k.name() == path.substr(last + 1)) return std::move(k);
    return std::nullopt;
  }
  for (const auto& k : keys())
    if (k.path == path) return k;
  return std::nullopt;
}

}  // namespace skein::config
