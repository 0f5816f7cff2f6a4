#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/result.hpp"
#include "protocol/generation_request.hpp"

/// POST /tokenize and POST /detokenize, with the field names of llama-server.
namespace skein::protocol {

/// {"content": text, "add_special"?: bool, "with_pieces"?: bool}
struct tokenize_request {
  std::string content;
  bool add_special = false;  ///< asks for a token that begins every text; RWKV vocabularies have none, so it adds none
  bool with_pieces = false;
};

/// Errors as parse_completion.
[[nodiscard]] result<tokenize_request> parse_tokenize(std::string_view body, const request_limits& limits);

/// {"tokens":[1,2]}
[[nodiscard]] std::string tokenize_answer(std::span<const token_id> tokens);

struct token_piece {
  token_id id;
  std::string_view bytes;
};
/// {"tokens":[{"id":1,"piece":"a"},{"id":2,"piece":[228,189]}]}: bytes as a list where they are no whole characters.
[[nodiscard]] std::string tokenize_answer(std::span<const token_piece> pieces);

/// The ids of {"tokens":[1,2]}. Errors as parse_completion; ids are not compared with a vocabulary.
[[nodiscard]] result<std::vector<token_id>> parse_detokenize(std::string_view body, const request_limits& limits);

/// {"content":"..."}
[[nodiscard]] std::string detokenize_answer(std::string_view content);

}  // namespace skein::protocol
