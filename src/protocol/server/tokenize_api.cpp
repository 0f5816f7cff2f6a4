#include "protocol/server/tokenize_api.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "base/utf8.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/requests/dialect.hpp"
#include "protocol/requests/object_reader.hpp"

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

/// {"tokens":[...]}; `write` writes each token.
template <typename Write>
result<std::string> tokens_answer(std::span<const token_id> tokens, const char* field, const request_limits& limits,
                                  Write write) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("tokens").begin_array();
  for (const auto token : tokens) {
    write(out, token);
    if (json.size() + 2 > limits.response_bytes_max) return response_too_long(field, limits);
  }
  out.end_array().end_object();
  return json;
}

/// As read_body, but also reports the members that were not read. Credentials and model are read before.
template <typename Read>
auto read_noting(std::string_view text, const request_limits& limits, ignored_names* ignored, Read read) {
  return read_body(text, limits, [&](const object_reader& plain) {
    asked_fields asked;
    asked.note("password");
    asked.note("model");
    const bool tells = ignored && limits.tells_ignored;
    auto made = read(tells ? plain.noting(asked) : plain);
    if (tells) *ignored = plain.others(asked);
    return made;
  });
}

/// The conversation of a body as text.
result<std::string> rendered(std::string_view body, const model_preset& preset, const request_limits& limits,
                             ignored_names* ignored) {
  auto read = read_request(body, dialects::shared_chat, preset, limits);
  if (ignored) *ignored = std::move(read.ignored);
  const auto& conversation = read.request;
  if (!conversation) return conversation.error();
  return render_chat(conversation->messages, conversation->think, conversation->style);
}

}  // namespace

result<tokenize_request> parse_tokenize(std::string_view text, const request_limits& limits, ignored_names* ignored) {
  return read_noting(text, limits, ignored, [&](const object_reader& body) {
    const auto content = body.text("content");
    if (!content) body.refuse("content", "must be a string");
    const tokenize_request request{std::string(content.value_or("")), body.boolean("add_special").value_or(false),
                                   body.boolean("with_pieces").value_or(false)};
    return request;
  });
}

error answer_too_long(std::string field, std::string_view limit, std::size_t bytes_max) {
  std::string message = "the answer would exceed ";
  message.append(limit).append(" (").append(std::to_string(bytes_max)).append(" bytes)");
  return {error_kind::invalid_argument, std::move(message), std::move(field)};
}

error response_too_long(std::string field, const request_limits& limits) {
  return answer_too_long(std::move(field), "limits.response_bytes_max", limits.response_bytes_max);
}

result<count_request> parse_count(std::string_view text, const model_preset& preset, const request_limits& limits,
                                  ignored_names* ignored) {
  bool chat = false;
  auto request = read_noting(text, limits, ignored, [&](const object_reader& body) {
    count_request made;
    made.return_tokens = body.boolean("return_tokens").value_or(false);
    if (body.value("text")) {
      made.text = body.text("text").value_or("");
    } else if (body.value("messages")) {
      chat = true;
    } else if (const auto contents = body.array("contents")) {
      for (const auto element : contents->elements()) {
        const auto part = element.text();
        if (!part) body.refuse("contents", "must be a list of strings");
        made.text += part.value_or("");
      }
    } else {
      body.fault().report(error_kind::invalid_argument, "text", "Missing text or messages");
    }
    return made;
  });
  if (!request || !chat) return request;
  ignored_names by_chat;
  auto conversation = rendered(text, preset, limits, &by_chat);
  if (!conversation) return conversation.error();
  if (ignored)
    std::erase_if(*ignored, [&](const auto& name) { return std::ranges::find(by_chat, name) == by_chat.end(); });
  request->text = std::move(*conversation);
  return request;
}

result<std::string> template_answer(std::string_view body, const model_preset& preset, const request_limits& limits,
                                    ignored_names* ignored) {
  const auto prompt = rendered(body, preset, limits, ignored);
  if (!prompt) return prompt.error();
  std::string json;
  json_writer(json).begin_object().key("prompt").value(*prompt).end_object();
  if (json.size() > limits.response_bytes_max) return response_too_long("messages", limits);
  return json;
}

result<std::string> count_answer(std::span<const token_id> tokens, bool with_ids, const request_limits& limits) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("tokens").value(tokens.size());
  if (with_ids) {
    out.key("token_ids").begin_array();
    for (const auto token : tokens) {
      out.value(token);
      if (json.size() + 2 > limits.response_bytes_max) return response_too_long("return_tokens", limits);
    }
    out.end_array();
  }
  out.end_object();
  return json;
}

result<std::string> tokenize_answer(std::span<const token_id> tokens, const request_limits& limits) {
  return tokens_answer(tokens, "content", limits, [](json_writer& out, token_id token) { out.value(token); });
}

result<std::string> tokenize_answer(std::span<const token_id> tokens,
                                    const std::function<std::string_view(token_id)>& bytes_of,
                                    const request_limits& limits) {
  return tokens_answer(tokens, "with_pieces", limits, [&](json_writer& out, token_id token) {
    out.begin_object().key("id").value(token).key("piece");
    write_piece(out, bytes_of(token));
    out.end_object();
  });
}

result<std::vector<token_id>> parse_detokenize(std::string_view text, const request_limits& limits,
                                               ignored_names* ignored) {
  return read_noting(text, limits, ignored, [&](const object_reader& body) {
    std::vector<token_id> tokens;
    if (const auto list = body.array("tokens"))
      tokens = read_token_list(*list, body.path_of("tokens"), limits.prompt_tokens_max, body.fault());
    else
      body.refuse("tokens", "must be a list of token ids");
    return tokens;
  });
}

result<std::string> detokenize_answer(std::span<const token_id> tokens,
                                      const std::function<std::string_view(token_id)>& bytes_of,
                                      const request_limits& limits) {
  std::string content;
  for (const auto token : tokens) {
    content += bytes_of(token);
    if (content.size() > limits.response_bytes_max) return response_too_long("tokens", limits);
  }
  std::string json;
  json_writer(json).begin_object().key("content").value(content).end_object();
  if (json.size() > limits.response_bytes_max) return response_too_long("tokens", limits);
  return json;
}

}  // namespace skein::protocol
