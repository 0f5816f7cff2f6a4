#pragma once
#include "protocol/requests/dialect.hpp"
#include "protocol/requests/object_reader.hpp"

/// The fields that chat and text completions share. Each function reports errors to the body's fault.
namespace skein::protocol {

/// temperature, top_p, top_k, min_p, penalties (native and OpenAI names), logit_bias, max_tokens and its alias.
void read_sampling(const object_reader& body, const sampling_rules& rules, const request_limits& limits,
                   sampling::sampling_params& out);

/// stop, stop_tokens, stop_token_ids, ignore_eos, include_stop_str_in_output. `turn_ends` are the preset's stop
/// strings.
void read_stops(const object_reader& body, const std::vector<std::string>& turn_ends, const request_limits& limits,
                generation_request& out);

/// Adds a prompt, or counts it only if there are limits.prompts_max already: a short element of a body would take many
/// times its size as a prompt.
void add_prompt(prompt_input prompt, const request_limits& limits, generation_request& out);
[[nodiscard]] inline bool has_all_prompts(const generation_request& request, const request_limits& limits) {
  return request.prompts.size() >= limits.prompts_max;
}

/// model, user, stream, stream_options, chunk_size, n, seed.
void read_delivery(const object_reader& body, const reading& by, generation_request& out);

/// Tokens collected before an event; values below 1 count as 1.
[[nodiscard]] std::uint32_t read_chunk_size(const object_reader& body, std::uint32_t otherwise,
                                            const request_limits& limits);

/// The number of a version, 0 for the beginning.
[[nodiscard]] std::optional<std::uint32_t> read_version(const object_reader& body, std::string_view name);

/// Whether the request continues its session's interrupted answer (`continue`); `text_field` must then be absent
/// (reported).
[[nodiscard]] bool goes_on(const object_reader& body, std::string_view text_field);

/// state_name, state, mrss_gatingweight, store, use_prefix_cache, cache_prompt.
void read_beginning(const object_reader& body, const request_limits& limits, generation_request& out);

/// session_id, from_version, expected_version, continue, durability, store_on_disconnect. Rejects what a session does
/// not support: several rows or prompts, token prompts, echo with logprobs, a suffix. Call it after the functions
/// above.
void read_session(const object_reader& body, generation_request& out);
/// Whether a URL path can contain this session id; otherwise the session could be created but not managed.
[[nodiscard]] bool fits_in_path(std::string_view session_id);
inline constexpr const char* no_path = "must not have control characters or the path segments . and ..";

/// Rejects unsupported fields that would change the answer: audio and the like. Empty values ("", [], false)
/// count as absent.
void refuse_unsupported_fields(const object_reader& body);
/// Rejects tools and functions, unless the choice is "none"; "auto" without tools is accepted.
void refuse_tool_use(const object_reader& body);
/// Rejects the older names of tools, likewise.
void refuse_functions(const object_reader& body);
/// Reads what the text must match (schema, pattern, grammar), under the field names of any server. For all dialects.
void read_constraint(const object_reader& body, generation_request& out);
/// The same for `text.format` of the Responses API.
void read_text_format(const object_reader& body, generation_request& out);

}  // namespace skein::protocol
