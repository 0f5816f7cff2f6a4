#pragma once
#include <cstdint>
#include <optional>
#include <string>

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

/// A body that makes or changes a conversation. Nothing is kept of one but its turns: errors name what was asked
/// beside.
[[nodiscard]] result<void> check_conversation(std::string_view body, const request_limits& limits);

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

/// What goes on with an answer that was broken off, drawn by the same rules. `after`: as in response_writer.
[[nodiscard]] result<generation_request> go_on_with(const logged_response& logged, const model_preset& preset,
                                                    const request_limits& limits, std::optional<std::uint64_t> after);

/// The events of a response that is over, from the one behind number `after` on.
[[nodiscard]] std::string response_events(const known_response& response, std::optional<std::uint64_t> after,
                                          const session_note* session);

}  // namespace skein::protocol
