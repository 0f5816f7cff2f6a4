#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "load/load_plan.hpp"

namespace skein::load {

/// Where requests go.
struct load_target {
  std::string host = "127.0.0.1", port = "8000";
  std::string prefix;       ///< of every path; no slash at its end
  std::string unix_socket;  ///< not empty: in place of host and port
  bool chat = false;        ///< /v1/chat/completions with words; else /v1/completions with token ids
  std::string model;        ///< empty: the server's own
  std::string password;     ///< sent as bearer token; empty: none
  std::uint32_t vocab = 0;  ///< token ids are drawn from 1 .. vocab - 1; 0: printable ASCII, one token each in the
                            ///< World vocabulary and where a token is a byte
};

/// "http://HOST[:PORT][/PREFIX]", HOST may be [an IPv6 address]. Errors: invalid_argument.
[[nodiscard]] result<load_target> parse_url(std::string_view url);

/// The path and the body of a request for so many tokens, streamed and with usage at its end. A prompt of token ids has
/// exactly as many; one of words about as many, and the chat's frame. Prompts with another `number` are others.
[[nodiscard]] std::string path_of(const load_target& target);
[[nodiscard]] std::string body_of(const load_target& target, const planned_request& request, std::uint64_t number);

}  // namespace skein::load
