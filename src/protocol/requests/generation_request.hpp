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
#include "config/config.hpp"
#include "sampling/sampling_params.hpp"

namespace skein::protocol {

class answer_writer;

struct chat_message {
  std::string role;           ///< system, developer, user, assistant or tool
  std::string content;        ///< text parts joined
  std::string name;           ///< optional
  bool raw = false;           ///< inserted into the prompt unchanged, without a role name or blank line
  bool answers_call = false;  ///< role tool: the result of a call
  bool calls = false;         ///< role assistant: the content ends with calls
};

/// How an assistant turn is opened; see protocol/chat_template. english, short and long append an instruction to the
/// last user text; chinese begins the thinking with a Chinese word.
enum class think_mode : std::uint8_t { off, on, short_think, long_think, english_think, chinese_think };

/// The structure of generated text, determined by the end of its prompt.
enum class answer_form : std::uint8_t {
  raw,       ///< content, unchanged
  direct,    ///< after "Assistant:" or "</think>": one space or newlines, then content
  closing,   ///< after "</think": '>' and newlines, then content
  thinking,  ///< after "<think": '>', newlines, thoughts, "</think>", newlines, content
};

/// A JSON Schema of a request.
struct schema_text {
  std::string text;
  std::string field;         ///< of the request, for errors and notes
  std::string relaxed = {};  ///< taken if `text` has what is not supported; empty: that is an error
};

/// What calls of tools must match.
struct call_constraint {
  struct function {
    std::string name;
    schema_text arguments;
  };
  std::vector<function> functions;
  std::uint32_t calls_max = 1;
  std::optional<schema_text> answer;  ///< none: the answer must be calls
};

/// What the text of an answer must match.
struct text_constraint {
  enum class kind : std::uint8_t {
    json_object,
    json_schema,
    regex,
    choices,
    gbnf,
    kbnf,
    calls
  } what = kind::json_object;
  std::string text;                      ///< schema, pattern or rules; of choices, a JSON array of strings
  std::string field;                     ///< of the request, for errors
  std::string relaxed = {};              ///< of a schema; see schema_text
  answer_form after = answer_form::raw;  ///< how the prompt ends that the text follows
  std::vector<std::string> marks = {};   ///< not empty: free text, up to one of these
  call_constraint calls = {};
};

/// A limit on the thoughts of an answer.
struct thought_limit {
  std::uint32_t tokens_max = 0;
  std::string field;  ///< of the request, for errors; empty: the model's default, which holds where it can
};

/// How turns are written: "User: text" and a blank line, or "### User" and a line with the text.
enum class turn_form : std::uint8_t { names, headings };

/// The texts of the chat template.
struct chat_style {
  std::string system = "System", user = "User", assistant = "Assistant";  ///< names of the speakers
  std::string no_think_opening = "Assistant: <think>\n</think";           ///< opening of an answer without thinking
  bool opens_answer = true;                                               ///< false: the model opens the next turn
  turn_form turns = turn_form::names;  ///< headings: the texts above and below are not used
  std::string mark = ":", gap = " ";   ///< after a name; between them and the text of a turn
  std::string end = "\n\n";            ///< after a turn
};

/// A prompt that is not a conversation: text or token ids (at least one). An empty text is valid and means the start of
/// a text: it is tokenized as end_of_text.
struct prompt_input {
  std::string text;
  std::vector<token_id> tokens;
  bool is_tokens = false;
  bool after_lead = false;  ///< generation_request::lead comes before the text
};

/// Defaults that a client set when it loaded the model or later. They override the defaults of the older servers'
/// dialects and, on chat routes, those of the preset.
struct client_defaults {
  std::optional<float> temperature, top_p, presence, frequency, decay;
  std::optional<std::int32_t> top_k;
  std::optional<std::uint32_t> max_tokens;
  std::optional<std::string> end_text;  ///< empty: no text ends a turn
  std::optional<bool> penalises_prompt;

  /// Applies the fields that `newer` sets.
  void change(const client_defaults& newer);
};

/// Defaults of a model for fields that requests leave out (configuration, section per model).
struct model_preset : config::model_defaults {
  client_defaults by_client = {};
  bool headed_tools = false;  ///< the model's own chat template writes tools with headings
  bool bot_turns = false;     ///< the model's name says that it answers best in the template bot
};

/// Limits of a request.
struct request_limits : config::limit_settings {
  std::uint32_t stop_ids_max = sampling::request_stop_ids_max;
  bool tells_ignored = false;  ///< report the members of a body that are not read
  bool noise = false;          ///< enable `noise` in dialects that have it
};
static_assert(config::limit_settings{}.logit_bias_max == sampling::request_bias_max, "what a row has room for");

/// The session fields of a request.
struct session_fields {
  std::string id;                                 ///< 1 to session_id_bytes_max bytes
  std::optional<std::uint32_t> from_version;      ///< continue this version instead of the head; 0: the beginning
  std::optional<std::uint32_t> expected_version;  ///< the head must be this version
  bool go_on = false;         ///< `continue`: continue the last interrupted answer, without new input
  bool beyond_limit = false;  ///< with go_on: `from_key` may have ended at its token limit
  bool power = false;         ///< `durability` is power: sync before the last event
  bool store_on_disconnect = false;
  bool branches = false;    ///< the route addresses versions by dialogue_idx and returns it in the answer
  std::string request_key;  ///< Idempotency-Key
  std::string from_key;     ///< continue the turn with this key, instead of a version
  bool appends = false;     ///< the input is always appended, never taken as a whole history
  bool must_exist = false;  ///< do not create the session
  bool responds = false;    ///< the key is a response id; a session without an id is a new conversation
};

/// A text to feed, and two positions in it at which the state may be reusable; 0: none.
struct fed_text {
  std::string text;
  std::size_t system_bytes = 0;  ///< end of the leading system text
  std::size_t turn_bytes = 0;    ///< end of the last turn, where the opening of the answer begins
  std::size_t added_bytes = 0;   ///< of a raw prompt: the blank line before it, which the client did not send
  std::string known{};           ///< of an echoed raw prompt: its beginning, which the session has already
};

/// A parsed and checked generation call; all defaults are applied.
struct generation_request {
  std::shared_ptr<const answer_writer> writer;  ///< writes the answer
  bool chat = true;                             ///< the prompt is `messages`; false: `prompts`
  bool lenient = false;  ///< client of an older server: `model` is only a label, an empty stop means none
  std::string_view prompt_field = "messages";  ///< the field that errors about prompts name
  std::string model;                           ///< as sent; empty if absent
  std::vector<chat_message> messages;          ///< chat
  chat_style style;                            ///< chat
  std::vector<prompt_input> prompts;
  std::size_t prompts_left_out = 0;   ///< beyond limits.prompts_max; such a request is refused
  std::string lead;                   ///< the common beginning of the prompts with `after_lead`
  bool penalises_prompt = false;      ///< penalties count the prompt's tokens (sampling_params::prior)
  bool pad_zero = false;              ///< prepend end_of_text to every prompt
  std::optional<std::string> suffix;  ///< completions: fill in the middle
  bool echo = false;
  think_mode think = think_mode::off;
  bool reasoning_raw = false;                 ///< leave the thinking in the content
  bool force_reasoning = false;               ///< prevent the answer from closing its thinking at once, see prepare()
  sampling::sampling_params sampling;         ///< for row 0, as sent by the client; prepared_call adds to it
  bool seed_given = false;                    ///< false: the request actor samples a seed
  bool foreign_stop_ids = false;              ///< stop ids may be of another vocabulary: ignore unknown ones
  std::optional<text_constraint> constraint;  ///< none: any text
  std::optional<thought_limit> thoughts;      ///< only of answers that begin with thoughts; none: no limit
  std::vector<token_id> answered;             ///< tokens of the same answer that an earlier run sampled, for these two
  std::shared_ptr<const std::vector<std::string>> tool_names;  ///< that the answer may call, ascending; null: none
  bool calls_at_once = false;                                  ///< the answer begins with a call
  std::string tool_notes;                                      ///< for answer_head
  bool ignore_eos = false;
  bool shows_stop = false;        ///< include the stop string that ends the answer in its text
  std::vector<std::string> stop;  ///< all stop strings, including turn ends
  std::uint32_t n = 1;
  std::uint32_t best_of = 1;  ///< completions, >= n
  bool stream = false;
  bool include_usage = false;
  std::uint32_t chunk_size = 1;  ///< tokens collected before an event
  bool background = false;       ///< runs without a connected client
  bool answers_at_once = false;  ///< the response only reports that the answer was begun
  bool queue_events = false;     ///< a stream reports its position in the queue while it waits
  std::string user;
  std::string state_name;  ///< tuned state to begin with; empty: the one that `model` names, if any
  std::string_view state_field = "state_name";  ///< the field that named the state
  std::string state_identity;                   ///< instead of the name: of the state that the session began with
  std::vector<float> mixture_weights;           ///< replace the weights of the initial mixture; empty: keep them
  bool temperature_named = false, top_p_named = false;  ///< false: a tuned state's default may apply
  bool use_prefix_cache = true;
  bool store = true;  ///< false: store nothing of this request
  std::optional<session_fields> session;
  std::optional<fed_text> to_feed;  ///< sessions: the text that is new to the state, instead of messages and prompts
  std::vector<token_id> goes_on_after;  ///< sessions: a prompt and its answer so far, instead of all of these
};

inline constexpr std::size_t session_id_bytes_max = 256;
inline constexpr std::size_t session_title_bytes_max = 256;
inline constexpr std::size_t request_key_bytes_max = 256;

/// Applies the headers If-Match ("3", with or without quotes; "*" matches any version) and Idempotency-Key to the
/// session fields; empty: not sent. Errors: invalid_argument naming the header.
[[nodiscard]] result<void> read_session_headers(std::string_view if_match, std::string_view request_key,
                                                session_fields& out);

}  // namespace skein::protocol
