#include <charconv>
#include <limits>
#include <string>

#include "base/path_text.hpp"
#include "protocol/requests/lenient_fields.hpp"
#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

constexpr std::int64_t version_max = std::numeric_limits<std::uint32_t>::max();

bool read_power(const object_reader& body) {
  const auto level = body.text("durability");
  if (level && *level != "power" && *level != "process") body.refuse("durability", "must be power or process");
  return level == "power";
}

/// RWKV-Runner and ai00 name a tuned state by its file or by an id; this id means none.
void read_foreign_state(const object_reader& body, generation_request& out) {
  constexpr std::string_view no_state = "00000000-0000-0000-0000-000000000000";
  const auto state = body.value("state");
  if (!state) return;
  const auto name = state->text();
  if (!name) return body.refuse("state", "must be the name or file of a loaded tuned state");
  if (*name == no_state) return;
  out.state_name = *name;
  out.state_field = "state";
}

/// A session is one sequence of text, so it allows only one row and text prompts.
void refuse_what_is_not_one_row(const object_reader& body, const generation_request& request) {
  if (request.n > 1) body.refuse("n", "must be 1 with a session");
  if (request.best_of > 1) body.refuse("best_of", "must be 1 with a session");
  if (request.suffix) body.refuse("suffix", "cannot be used with a session");
  if (request.echo && request.sampling.logprobs) body.refuse("echo", "cannot be combined with logprobs in a session");
  if (request.prompts.size() > 1) body.refuse("prompt", "must be one text with a session");
  if (!request.prompts.empty() && request.prompts.front().is_tokens)
    body.refuse("prompt", "must be a text, not tokens, with a session");
}

}  // namespace

bool fits_in_path(std::string_view session_id) {
  return is_printable_utf8(session_id) && !has_dot_segment("/" + std::string(session_id));
}

std::optional<std::uint32_t> read_version(const object_reader& body, std::string_view name) {
  const auto version = body.integer(name, 0, version_max);
  return version ? std::optional(static_cast<std::uint32_t>(*version)) : std::nullopt;
}

bool goes_on(const object_reader& body, std::string_view text_field) {
  if (!body.boolean("continue").value_or(false)) return false;
  const auto id = body.text("session_id");
  if (!id || id->empty()) body.refuse("continue", "requires session_id");
  if (const auto text = body.value(text_field); text && !text->is_empty_array())
    body.refuse(text_field, "must be absent with continue");
  return true;
}

void read_beginning(const object_reader& body, const request_limits& limits, generation_request& out) {
  out.state_name = body.text("state_name").value_or("");
  if (out.state_name.empty()) read_foreign_state(body, out);
  out.mixture_weights = read_weights(body, "mrss_gatingweight", limits.mixture_max).value_or(std::vector<float>());
  out.store = body.boolean("store").value_or(true);
  const bool use = body.boolean("use_prefix_cache").value_or(true);
  out.use_prefix_cache = body.boolean("cache_prompt").value_or(true) && use;
}

void read_session(const object_reader& body, generation_request& out) {
  const auto id = body.text("session_id");
  if (!id) return;
  if (id->empty() || id->size() > session_id_bytes_max)  // a turn of "" would be lost silently
    body.refuse("session_id", "must have 1 to " + std::to_string(session_id_bytes_max) + " bytes");
  if (!fits_in_path(*id)) body.refuse("session_id", no_path);
  session_fields session;
  session.id = *id;
  session.from_version = read_version(body, "from_version");
  session.expected_version = read_version(body, "expected_version");
  session.go_on = body.boolean("continue").value_or(false);
  session.power = read_power(body);
  session.store_on_disconnect = body.boolean("store_on_disconnect").value_or(false);
  out.session = std::move(session);
  refuse_what_is_not_one_row(body, out);
}

result<void> read_session_headers(std::string_view if_match, std::string_view request_key, session_fields& out) {
  if (request_key.size() > request_key_bytes_max)
    return error{error_kind::invalid_argument,
                 "Idempotency-Key must have at most " + std::to_string(request_key_bytes_max) + " bytes",
                 "Idempotency-Key"};
  out.request_key = request_key;
  if (if_match.empty() || if_match == "*") return {};
  if (if_match.size() > 1 && if_match.front() == '"' && if_match.back() == '"')
    if_match = if_match.substr(1, if_match.size() - 2);
  std::uint32_t version = 0;
  const auto [end, code] = std::from_chars(if_match.data(), if_match.data() + if_match.size(), version);
  if (code != std::errc() || end != if_match.data() + if_match.size())
    return error{error_kind::invalid_argument, "If-Match must be a version number or *", "If-Match"};
  if (out.expected_version && *out.expected_version != version)
    return error{error_kind::invalid_argument, "If-Match and expected_version name different versions", "If-Match"};
  out.expected_version = version;
  return {};
}

}  // namespace skein::protocol
