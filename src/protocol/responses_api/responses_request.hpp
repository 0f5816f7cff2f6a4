#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/responses_api/response_object.hpp"

/// Stored responses, and the continuation of interrupted ones.
namespace skein::protocol {

/// A message on a WebSocket; one that creates a response is a body of dialects::socket.
struct socket_message {
  bool creates = false;
  std::optional<std::string> cancels;  ///< id of the response; empty: all of this socket
};
/// Errors: invalid_argument naming the field.
[[nodiscard]] result<socket_message> read_socket_message(std::string_view text, const request_limits& limits);

/// The metadata in a body that creates or changes a conversation; the body may be empty. `items` are not supported.
[[nodiscard]] result<std::optional<metadata_fields>> parse_conversation(std::string_view body,
                                                                        const request_limits& limits);

/// Tokens of a stored answer that usage does not count, because they only close the tag at the end of the template:
/// their key in version_record::sampling, and their number there (0 if absent).
inline constexpr std::string_view hidden_tokens_key = "hidden_tokens";
[[nodiscard]] std::uint64_t hidden_tokens(std::string_view settings);
/// The digest of the turn's request body (request_digest), stored if the request had an Idempotency-Key.
inline constexpr std::string_view request_digest_key = "request_digest";
[[nodiscard]] std::optional<std::uint64_t> request_digest_in(std::string_view settings);
/// The usage that such a turn reported, for the answer to a retry: an object of that key in version_record::sampling.
inline constexpr std::string_view reported_usage_key = "usage";
void write_reported_usage(json_writer& out, const token_usage& usage);
/// Nothing in records of older versions.
[[nodiscard]] std::optional<token_usage> reported_usage_in(std::string_view settings);

/// A stored turn of a session that was created by the Responses API.
struct logged_response {
  std::string id;
  std::string settings;  ///< version_record::sampling
  std::string reasoning, answer, finish_reason, stop_reason;
  bool unfinished = false;
  bool without_ending = false;  ///< the server died before it sent an ending event
  std::uint64_t tokens_sampled = 0;
};

/// The same, parsed. `text` has the steps in which it was streamed.
struct known_response {
  response_facts facts;
  token_usage usage;
  response_text text;
  response_outcome outcome;
};
/// Approximate bytes that reading it takes, the result included. Many times its size if it consists of numbers.
[[nodiscard]] std::size_t reading_bytes(const logged_response& logged);
/// The same from the parts of a record.
[[nodiscard]] std::size_t reading_bytes(std::string_view settings, std::string_view reasoning, std::string_view answer);
/// Errors: not_found if the turn was created by another route.
[[nodiscard]] result<known_response> read_logged(const logged_response& logged);

/// Options for continuing an answer.
struct continuation {
  std::optional<std::uint64_t> after;        ///< as in response_writer
  bool beyond_limit = false;                 ///< also continue an answer that ended at its token limit,
  std::optional<std::uint32_t> more_tokens;  ///< by this number of tokens; default: its original limit
};
/// {"max_output_tokens"?, "starting_after"?}; the body may be empty. Sets beyond_limit.
[[nodiscard]] result<continuation> parse_continuation(std::string_view body, const request_limits& limits);

/// The request that continues an interrupted answer with the same sampling settings.
[[nodiscard]] result<generation_request> go_on_with(const logged_response& logged, const model_preset& preset,
                                                    const request_limits& limits, const continuation& how);

/// The events of a finished response with numbers above `after`.
[[nodiscard]] std::string response_events(const known_response& response, std::optional<std::uint64_t> after,
                                          const session_note* session);

}  // namespace skein::protocol
