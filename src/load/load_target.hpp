#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "load/load_plan.hpp"

namespace skein::load {

/// The destination and form of the requests.
struct load_target {
  std::string host = "127.0.0.1", port = "8000";
  std::string prefix;       ///< of every path; without a trailing slash
  std::string unix_socket;  ///< if not empty: used instead of host and port
  bool chat = false;        ///< /v1/chat/completions with words; false: /v1/completions with token ids
  std::string model;        ///< empty: the server's current model
  std::string password;     ///< sent as a bearer token; empty: none
  std::uint32_t vocab = 0;  ///< sample token ids from 1 .. vocab - 1; 0: printable ASCII characters, which are one
  ///< token each in the World vocabulary and in byte vocabularies
};

/// Parses "http://HOST[:PORT][/PREFIX]"; HOST may be an IPv6 address in brackets. Errors: invalid_argument.
[[nodiscard]] result<load_target> parse_url(std::string_view url);

/// Path and body of a streamed request with usage. A prompt of token ids has exactly the requested number of tokens;
/// one
/// of words about that number plus the chat template. Each `number` gives a different prompt.
[[nodiscard]] std::string path_of(const load_target& target);
[[nodiscard]] std::string body_of(const load_target& target, const planned_request& request, std::uint64_t number);

}  // namespace skein::load
