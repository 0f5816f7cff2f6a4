#include "protocol/tokenize_api.hpp"

#include <limits>

#include "base/utf8.hpp"
#include "protocol/json_writer.hpp"
#include "protocol/object_reader.hpp"

namespace skein::protocol {
namespace {

void write_piece(json_writer& out, std::string_view bytes) {
  if (is_utf8(bytes)) {
    out.value(bytes);
    return;
  }
  out.begin_array();
  for (const char byte : bytes) out.value(static_cast<std::uint8_t>(byte));
  out.end_array();
}

}  // namespace

result<tokenize_request> parse_tokenize(std::string_view text, const request_limits& limits) {
  const auto document = parse_object(text, limits);
  if (!document) return document.error();
  first_fault fault;
  const object_reader body(document->root(), "", fault);
  const auto content = body.text("content");
  if (!content) body.refuse("content", "must be a string");
  const tokenize_request request{std::string(content.value_or("")), body.boolean("add_special").value_or(false),
                                 body.boolean("with_pieces").value_or(false)};
  if (fault.found()) return fault.get();
  return request;
}

std::string tokenize_answer(std::span<const token_id> tokens) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("tokens").begin_array();
  for (const auto token : tokens) out.value(token);
  out.end_array().end_object();
  return json;
}

std::string tokenize_answer(std::span<const token_piece> pieces) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("tokens").begin_array();
  for (const auto& piece : pieces) {
    out.begin_object().key("id").value(piece.id).key("piece");
    write_piece(out, piece.bytes);
    out.end_object();
  }
  out.end_array().end_object();
  return json;
}

result<std::vector<token_id>> parse_detokenize(std::string_view text, const request_limits& limits) {
  const auto document = parse_object(text, limits);
  if (!document) return document.error();
  first_fault fault;
  const object_reader body(document->root(), "", fault);
  std::vector<token_id> tokens;
  if (const auto list = body.array("tokens"))
    tokens = read_token_list(*list, body.path_of("tokens"), limits.prompt_tokens_max, fault);
  else
    body.refuse("tokens", "must be a list of token ids");
  if (fault.found()) return fault.get();
  return tokens;
}

std::string detokenize_answer(std::string_view content) {
  std::string json;
  json_writer(json).begin_object().key("content").value(content).end_object();
  return json;
}

}  // namespace skein::protocol
