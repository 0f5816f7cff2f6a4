#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "sampling/sampling_params.hpp"

namespace skein::protocol {

class answer_writer;

struct chat_message {
  std::string role;     ///< system, developer, user, assistant or tool
  std::string content;  ///< text parts joined
  std::string name;     ///< optional
  bool raw = false;     ///< stands in the prompt as it is, with nobody's name and no blank line
};

/// How an assistant turn is opened; see protocol/chat_template. english, short and long append their wish to the last
/// user text; chinese begins the thinking with a Chinese word.
enum class think_mode : std::uint8_t { off, on, short_think, long_think, english_think, chinese_think };

/// The words of a rendered conversation.
struct chat_style {
  std::string system = "System", user = "User", assistant = "Assistant";  ///< who speaks
  std::string no_think_opening = "Assistant: <think>\n</think";           ///< how an answer without thinking is opened
  bool opens_answer = true;                                               ///< false: the model opens the next turn
};

/// A prompt that is not a conversation: text, or tokens given as such (at least one). An empty text is legal and means
/// the start of a text: whoever tokenises it feeds end_of_text.
struct prompt_input {
  std::string text;
  std::vector<token_id> tokens;
  bool is_tokens = false;
};

/// What a client made the defaults, when it loaded the model or since; they go before those of the older servers'
/// dialects, and before the preset's on chat routes.
struct client_defaults {
  std::optional<float> temperature, top_p, presence, frequency, decay;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint32_t> max_tokens;
  std::optional<std::string> end_text;  ///< empty: nothing ends a turn
  std::optional<bool> penalises_prompt;

  /// Takes what `newer` names.
  void change(const client_defaults& newer);
};

/// Defaults of a model for requests that leave things open (configuration, section per model).
struct model_preset {
  // chat: a request that names no sampler field
  float temperature = 1.0f, top_p = 0.6f;
  std::int32_t top_k = 20;
  float alpha_presence = 1.0f, alpha_frequency = 0.1f, alpha_decay = 0.996f;
  std::uint32_t max_tokens = 4096;
  std::uint32_t completion_max_tokens = 256;
  std::vector<std::string> stop{"\nUser:"};
  std::string no_think_opening = "Assistant: <think>\n</think";  ///< how the template opens an answer without thinking
  bool default_think = false;
  client_defaults by_client = {};
};

/// Limits on what a request may ask for.
struct request_limits {
  std::size_t body_bytes_max = 8u << 20;
  std::uint32_t n_max = 128;                ///< also of best_of
  std::uint32_t max_tokens_max = 1u << 20;  ///< larger values are cut to this
  std::uint32_t prompt_tokens_max = 4u << 20;
  std::uint32_t prompts_max = 4096;    ///< prompts times the larger of n and best_of in one request
  std::uint32_t stops_max = 16;        ///< stop strings that the request names
  std::uint32_t stop_bytes_max = 256;  ///< of one stop string
  std::uint32_t stop_ids_max = sampling::request_stop_ids_max;
  std::uint32_t logit_bias_max = sampling::request_bias_max;
  std::uint32_t json_depth_max = 64;
  std::uint32_t mixture_max = 8;               ///< states of a mixture
  std::size_t response_bytes_max = 32u << 20;  ///< of an answer that is sent whole
  bool tells_ignored = false;                  ///< the members of a body that are not read are listed
  bool noise = false;                          ///< `noise` counts where a dialect has it
};

/// What a request says of the session that it belongs to.
struct session_fields {
  std::string id;                                 ///< 1 to session_id_bytes_max bytes
  std::optional<std::uint32_t> from_version;      ///< continue this version in place of the newest; 0: the beginning
  std::optional<std::uint32_t> expected_version;  ///< the newest must be this one
  bool go_on = false;                             ///< `continue`: with the answer that broke last; nothing new is said
  bool beyond_limit = false;                      ///< with go_on: `from_key` may have ended at its limit of tokens
  bool power = false;                             ///< `durability`: synced before the last event
  bool store_on_disconnect = false;
  bool branches = false;    ///< the route names versions by dialogue_idx, and tells it in the answer
  std::string request_key;  ///< Idempotency-Key
  std::string from_key;     ///< continue the turn with this key, in place of a version
  bool appends = false;     ///< what is said comes next, and is never a whole history
  bool must_exist = false;  ///< the session is not made
  bool responds = false;    ///< the key is a response's name; a session without an id is a new conversation
};

/// A text that is fed, and two places in it after which its state may be of use again; 0: none.
struct fed_text {
  std::string text;
  std::size_t system_bytes = 0;  ///< where the system text that it begins with ends
  std::size_t turn_bytes = 0;    ///< where the last turn ends and the opening of the answer begins
};

/// A parsed and checked generation call; all defaults are applied.
struct generation_request {
  std::shared_ptr<const answer_writer> writer;  ///< how the answer is written
  bool chat = true;                             ///< the prompt is the conversation, else `prompts`
  bool lenient = false;                         ///< an older client: its model is a label, an empty stop is none
  std::string_view prompt_field = "messages";   ///< what errors about prompts name
  std::string model;                            ///< as sent; empty when absent
  std::vector<chat_message> messages;           ///< chat
  chat_style style;                             ///< chat
  std::vector<prompt_input> prompts;
  bool penalises_prompt = false;      ///< its tokens count as drawn before (sampling_params::prior)
  bool pad_zero = false;              ///< end_of_text comes before every prompt
  std::optional<std::string> suffix;  ///< completions: fill in the middle
  bool echo = false;
  think_mode think = think_mode::off;
  bool reasoning_raw = false;          ///< leave think text in the content
  bool force_reasoning = false;        ///< the answer does not begin by closing its thinking, see prepare()
  sampling::sampling_params sampling;  ///< of row 0, as the client sent it; see prepared_call for what is added
  bool seed_given = false;             ///< else the request actor draws one
  bool foreign_stop_ids = false;       ///< stop ids may be of another vocabulary: those are read over
  bool ignore_eos = false;
  bool shows_stop = false;        ///< a stop string that ends the answer is its last word
  std::vector<std::string> stop;  ///< all stop strings; see below where they come from
  std::uint32_t n = 1;
  std::uint32_t best_of = 1;  ///< completions, >= n
  bool stream = false;
  bool include_usage = false;
  std::uint32_t chunk_size = 1;  ///< tokens collected before an event
  bool background = false;       ///< goes on without a reader
  bool answers_at_once = false;  ///< whoever asked hears only that it was begun
  bool queue_events = false;     ///< a stream tells while it waits how many are before it
  std::string user;
  std::string state_name;  ///< tuned state to begin with; empty: the one that `model` names, if any
  std::string_view state_field = "state_name";  ///< that brought it
  std::vector<float> mixture_weights;  ///< in place of those of the mixture that it begins with; empty: its own
  bool temperature_named = false, top_p_named = false;  ///< else a tuned state's own defaults may count
  bool use_prefix_cache = true;
  bool store = true;  ///< false: nothing of this request is kept
  std::optional<session_fields> session;
  std::optional<fed_text> to_feed;      ///< sessions: what is new to the state, in place of messages and prompts
  std::vector<token_id> goes_on_after;  ///< sessions: a prompt and its answer so far, in place of all of these
};

inline constexpr std::size_t session_id_bytes_max = 256;
inline constexpr std::size_t session_title_bytes_max = 256;
inline constexpr std::size_t request_key_bytes_max = 256;

/// Takes the header fields If-Match ("3", with or without quotes; "*" is any version) and Idempotency-Key into a
/// session's fields; empty: not sent. Errors: invalid_argument naming the header.
[[nodiscard]] result<void> read_session_headers(std::string_view if_match, std::string_view request_key,
                                                session_fields& out);

}  // namespace skein::protocol
