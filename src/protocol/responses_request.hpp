#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "protocol/generation_request.hpp"
#include "protocol/response_object.hpp"

/// Responses as the log has them, and how a broken one goes on.
namespace skein::protocol {

/// What a message on a WebSocket wants; one that creates is a body of dialects::socket.
struct socket_message {
  bool creates = false;
  std::optional<std::string> cancels;  ///< that response; empty: all of the socket
};
/// Errors: invalid_argument naming the field.
[[nodiscard]] result<socket_message> read_socket_message(std::string_view text, const request_limits& limits);

/// The metadata in a body that makes or changes a conversation, which may be empty; `items` are not taken.
[[nodiscard]] result<std::optional<metadata_fields>> parse_conversation(std::string_view body,
                                                                        const request_limits& limits);

/// Tokens of a logged answer that do not count, since they only close the tag in which the template ends: their name in
/// version_record::sampling, and their number there; 0 where it says nothing.
inline constexpr std::string_view hidden_tokens_key = "hidden_tokens";
[[nodiscard]] std::uint64_t hidden_tokens(std::string_view settings);
/// The digest of the body that the turn was asked with (request_digest), where the request had an Idempotency-Key.
inline constexpr std::string_view request_digest_key = "request_digest";
[[nodiscard]] std::optional<std::uint64_t> request_digest_in(std::string_view settings);

/// A turn of a session that was made by the Responses API.
struct logged_response {
  std::string id;
  std::string settings;  ///< version_record::sampling
  std::string reasoning, answer, finish_reason, stop_reason;
  bool unfinished = false;
  std::uint64_t tokens_drawn = 0;
};

/// The same, read. `text` has the steps in which it was told.
struct known_response {
  response_facts facts;
  token_usage usage;
  response_text text;
  response_outcome outcome;
};
/// Errors: not_found where the turn is of another route.
[[nodiscard]] result<known_response> read_logged(const logged_response& logged);

/// How somebody wants to go on with an answer.
struct continuation {
  std::optional<std::uint64_t> after;        ///< as in response_writer
  bool beyond_limit = false;                 ///< also with one that ended at its limit of tokens,
  std::optional<std::uint32_t> more_tokens;  ///< by so many more; else as many as it was to have
};
/// {"max_output_tokens"?, "starting_after"?}; may be empty. It goes beyond limits.
[[nodiscard]] result<continuation> parse_continuation(std::string_view body, const request_limits& limits);

/// What goes on with an answer that was broken off, drawn by the same rules.
[[nodiscard]] result<generation_request> go_on_with(const logged_response& logged, const model_preset& preset,
                                                    const request_limits& limits, const continuation& how);

/// The events of a response that is over, from the one behind number `after` on.
[[nodiscard]] std::string response_events(const known_response& response, std::optional<std::uint64_t> after,
                                          const session_note* session);

}  // namespace skein::protocol
