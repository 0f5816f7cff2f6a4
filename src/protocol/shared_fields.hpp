#pragma once
#include "protocol/dialect.hpp"
#include "protocol/object_reader.hpp"

/// The fields that chat and text completions share. Each function reports what is wrong to the body's fault.
namespace skein::protocol {

/// temperature, top_p, top_k, min_p, penalties of both name families, logit_bias, max_tokens and its other name.
void read_sampling(const object_reader& body, const sampling_rules& rules, const request_limits& limits,
                   sampling::sampling_params& out);

/// stop, stop_tokens, stop_token_ids, ignore_eos, include_stop_str_in_output. `turn_ends` are the preset's stop
/// strings.
void read_stops(const object_reader& body, const std::vector<std::string>& turn_ends, const request_limits& limits,
                generation_request& out);

/// model, user, stream, stream_options, chunk_size, n, seed.
void read_delivery(const object_reader& body, const reading& by, generation_request& out);

/// Tokens collected before an event; below 1 is as good as 1.
[[nodiscard]] std::uint32_t read_chunk_size(const object_reader& body, std::uint32_t otherwise,
                                            const request_limits& limits);

/// The number of a version, 0 for the beginning.
[[nodiscard]] std::optional<std::uint32_t> read_version(const object_reader& body, std::string_view name);

/// Whether the request goes on with its session's broken answer (`continue`); it then brings no `text_field`
/// (reported).
[[nodiscard]] bool goes_on(const object_reader& body, std::string_view text_field);

/// state_name, state, mrss_gatingweight, store, use_prefix_cache, cache_prompt.
void read_beginning(const object_reader& body, const request_limits& limits, generation_request& out);

/// session_id, from_version, expected_version, continue, durability, store_on_disconnect. Refuses what a session cannot
/// have: several rows or prompts, prompts of tokens, echo with logprobs, a suffix. After the fields above.
void read_session(const object_reader& body, generation_request& out);
/// Whether a path can name a session that is called so; others could be made and never be looked after.
[[nodiscard]] bool fits_in_path(std::string_view session_id);
inline constexpr const char* no_path = "must not have control characters or segments . and ..: no path can name it";

/// Refuses what would change the answer's meaning and is not done here: tools, audio and the like. Values that ask for
/// nothing ("", [], false) are as good as absent.
void refuse_unsupported_fields(const object_reader& body);
/// Of these, tools and functions: they may be there when the choice is "none", and "auto" chooses among none.
void refuse_tool_use(const object_reader& body);
/// Refuses output that a grammar, a schema or a pattern constrains, under the name of any server. For all dialects.
void refuse_constraints(const object_reader& body);

}  // namespace skein::protocol
