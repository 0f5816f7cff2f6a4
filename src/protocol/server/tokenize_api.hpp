#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "protocol/requests/generation_request.hpp"

/// POST /tokenize, /detokenize and /apply-template, with the field names of llama-server.
namespace skein::protocol {

/// Members of a body that were not read, if limits.tells_ignored is set.
using ignored_names = std::vector<std::string>;

/// {"content": text, "add_special"?: bool, "with_pieces"?: bool}
struct tokenize_request {
  std::string content;
  bool add_special = false;  ///< requests a start token; no effect, because RWKV vocabularies have none
  bool with_pieces = false;
};

/// Errors: as read_request.
[[nodiscard]] result<tokenize_request> parse_tokenize(std::string_view body, const request_limits& limits,
                                                      ignored_names* ignored = nullptr);

/// {"tokens":[1,2]}. Errors, also of the answers below: invalid_argument if the answer would exceed
/// limits.response_bytes_max.
[[nodiscard]] result<std::string> tokenize_answer(std::span<const token_id> tokens, const request_limits& limits);

/// {"tokens":[{"id":1,"piece":"a"},{"id":2,"piece":[228,189]}]}: a list of bytes if they are not whole characters.
[[nodiscard]] result<std::string> tokenize_answer(std::span<const token_id> tokens,
                                                  const std::function<std::string_view(token_id)>& bytes_of,
                                                  const request_limits& limits);

/// The text of {"text": text}, {"messages": [...]} (rendered by the template) or {"contents": [texts]} (joined); the
/// first one present is used.
struct count_request {
  std::string text;
  bool return_tokens = false;
};
/// Errors as read_request.
[[nodiscard]] result<count_request> parse_count(std::string_view body, const model_preset& preset,
                                                const request_limits& limits, ignored_names* ignored = nullptr);
/// {"tokens":2}, and "token_ids":[1,2] if requested.
[[nodiscard]] result<std::string> count_answer(std::span<const token_id> tokens, bool with_ids,
                                               const request_limits& limits);

/// {"prompt":"..."}: the text that a chat request with this body would feed. Errors: as read_request; also
/// invalid_argument if the answer would exceed limits.response_bytes_max.
[[nodiscard]] result<std::string> template_answer(std::string_view body, const model_preset& preset,
                                                  const request_limits& limits, ignored_names* ignored = nullptr);

/// The ids of {"tokens":[1,2]}, not checked against a vocabulary. Errors: as read_request.
[[nodiscard]] result<std::vector<token_id>> parse_detokenize(std::string_view body, const request_limits& limits,
                                                             ignored_names* ignored = nullptr);

/// {"content":"..."}; `bytes_of` as above.
[[nodiscard]] result<std::string> detokenize_answer(std::span<const token_id> tokens,
                                                    const std::function<std::string_view(token_id)>& bytes_of,
                                                    const request_limits& limits);

/// The error for an answer that would exceed the limit named `limit` because of `field`.
[[nodiscard]] error answer_too_long(std::string field, std::string_view limit, std::size_t bytes_max);
/// The same for limits.response_bytes_max.
[[nodiscard]] error response_too_long(std::string field, const request_limits& limits);

}  // namespace skein::protocol
