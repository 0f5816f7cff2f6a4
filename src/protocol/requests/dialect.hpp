#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "protocol/json/http_error.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/object_reader.hpp"
#include "protocol/responses/answer_writer.hpp"

namespace skein::protocol {

/// Defaults of sampling and of stop strings for fields that a request leaves out.
struct sampling_rules {
  float temperature = 1.0f, top_p = 1.0f;
  std::int32_t top_k = 0;
  float alpha_presence = 0.0f, alpha_frequency = 0.0f, alpha_decay = 1.0f;
  std::uint32_t max_tokens = 0;
  std::vector<std::string> turn_ends = {};  ///< stop strings
  /// The older servers' rule: defaults are independent, and a top_p outside 0 .. 1 means 1.
  bool stands_alone = false;
  /// Defaults are independent. If this and stands_alone are false, a request that sets one of temperature, top_p and
  /// top_k makes the others neutral; if this is false, so does one of OpenAI's penalties.
  bool keeps_unset = false;
  bool temperature_only = false;  ///< ignore top_p, top_k, min_p and penalties
  bool penalises_prompt = false;  ///< default of global_penalty
  bool noise = false;             ///< read `noise` if limits.noise allows it
  bool stop_replaces = false;     ///< a request's `stop` replaces turn_ends
  std::string_view bias_field = "logit_bias";
  /// The classic order (sampling_params::filters_first), with a constant presence penalty and a frequency penalty that
  /// counts and decays.
  bool classic = false;
};

struct dialect;

/// The context in which a body is read.
struct reading {
  const dialect& as;
  const model_preset& preset;
  const request_limits& limits;
};

/// One API format: how bodies are read, the defaults, and how answers are written. All dialects are rows of one table
/// (dialects.cpp); each route names one.
struct dialect {
  std::string_view name;
  std::string_view prompt_field;  ///< the member with the prompts
  /// Reads the prompts, and sets the related fields (chat, style, suffix).
  void (*read_prompts)(const object_reader& body, const reading& by, generation_request& out);
  /// `sampler`: the preset's values for this answer.
  sampling_rules (*rules)(const model_preset& preset, const config::sampler_defaults& sampler);
  const answer_writer* writer;
  /// Reads the fields of this dialect only, after all others; may be null.
  void (*read_more)(const object_reader& body, const reading& by, generation_request& out) = nullptr;
  error_style errors = error_style::openai;
  std::uint32_t chunk_size = 1;  ///< tokens collected before an event
  bool streams = false;          ///< default of `stream`
  bool sessions = true;          ///< session_id is read
  bool thinks = false;           ///< the fields about thinking are read
  bool lenient = false;          ///< see generation_request
  /// If not empty: numbers and booleans may be strings, and fields may be inside the member of this name.
  std::string_view loose_values_in = {};
  bool may_be_open = false;  ///< a setting can open the route without credentials
  /// Chooses the dialect by the body, on paths with several; null: this one.
  const dialect* (*choose)(const object_reader& body) = nullptr;
};

/// The result of parsing a body. The dialect determines how errors are written.
struct understood {
  const dialect* as;
  result<generation_request> request;
  std::string refusal;                    ///< the error body, if the dialect has its own for this error
  std::vector<std::string> ignored = {};  ///< members that were not read, if limits.tells_ignored is set
};

/// Parses and checks a body; all defaults are applied. Errors: invalid_argument or unsupported with `field` set to the
/// JSON field at fault ("messages[1].role"), or invalid_argument without a field for text that is not JSON; too_large
/// above body_bytes_max. Duplicate keys are rejected. Unknown fields are ignored; null equals absent.
///
/// Stops: `stop` adds to the turn ends of the preset (chat only), because an answer also ends with its turn.
/// `stop_tokens`, the native field, replaces them, so that an empty list leaves none. `ignore_eos` removes them too.
/// Penalties: alpha_* fields follow the native rule, OpenAI's fields OpenAI's; if both are given, the native one wins.
[[nodiscard]] understood read_request(std::string_view body, const dialect& spoken, const model_preset& preset,
                                      const request_limits& limits);

/// The table of dialects, named after their routes; the paths are in the table of routes.
namespace dialects {
extern const dialect chat;           ///< OpenAI's conversations
extern const dialect completions;    ///< OpenAI's raw texts
extern const dialect responses;      ///< OpenAI's Responses API
extern const dialect socket;         ///< the same on a WebSocket: always events, whatever `stream` says
extern const dialect spoken_chat;    ///< /openai/v1: the same; rejects conversations without text
extern const dialect shared_chat;    ///< OpenAI's, with the speaker names of RWKV-Runner's clients
extern const dialect chat_or_batch;  ///< /v1/chat/completions: messages, contents or prompt
extern const dialect text_or_chat;   ///< /v1/completions: prompt or messages
extern const dialect state;          ///< one turn of a session, raw
extern const dialect multi_state;    ///< the same with a session as a tree
extern const dialect batch;          ///< /v1, `contents`: many raw prompts
extern const dialect batch_v2;       ///< the same with pad_zero and penalty_mode
extern const dialect batch_v3;       ///< the same with a template
extern const dialect big_batch;      ///< the same with temperature as the only sampling field
extern const dialect single_events;  ///< the same with one choice per event
extern const dialect fill_in;        ///< prefix and suffix
extern const dialect infill;         ///< llama-server: input_prefix and input_suffix
extern const dialect translate;      ///< text_list
extern const dialect infer_chat;     ///< RWKV-Infer and RWKV-Runner
extern const dialect infer_completions;
extern const dialect ai_chat;  ///< ai00: the same with its own defaults
extern const dialect ai_completions;
extern const dialect ai_choices;  ///< texts that are scored without sampling
extern const dialect resume;      ///< a chat resumed after a pause; control_request reads its body
}  // namespace dialects

}  // namespace skein::protocol
