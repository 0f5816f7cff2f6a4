#include "actors/request/tokenize_call.hpp"

#include <utility>
#include <vector>

#include "protocol/http_error.hpp"
#include "protocol/tokenize_api.hpp"

namespace skein::request {
namespace {

result<std::string> tokenize(const std::string& body, const service_context& context) {
  auto request = protocol::parse_tokenize(body, context.settings.limits);
  if (!request) return request.error();
  std::vector<token_id> tokens;
  if (auto count = context.model.vocabulary->encode(request->content, tokens); !count) return count.error();
  if (!request->with_pieces) return protocol::tokenize_answer(tokens);
  std::vector<protocol::token_piece> pieces;
  pieces.reserve(tokens.size());
  for (token_id t : tokens) pieces.push_back({t, context.model.vocabulary->text(t)});
  return protocol::tokenize_answer(pieces);
}

result<std::string> detokenize(const std::string& body, const service_context& context) {
  auto tokens = protocol::parse_detokenize(body, context.settings.limits);
  if (!tokens) return tokens.error();
  std::string bytes;
  for (token_id t : *tokens) {
    if (t < 0 || static_cast<std::uint32_t>(t) >= context.model.vocab)
      return error{error_kind::invalid_argument, "token " + std::to_string(t) + " is not in the vocabulary", "tokens"};
    bytes += context.model.vocabulary->text(t);
  }
  return protocol::detokenize_answer(bytes);
}

void send(connection::response_writer& out, connection::header_list headers, result<std::string> answer) {
  headers.emplace_back("Content-Type", "application/json");
  if (answer) return out.respond(200, std::move(headers), std::move(*answer));
  const protocol::http_error refusal = protocol::to_http(answer.error());
  headers.insert(headers.end(), refusal.headers.begin(), refusal.headers.end());
  out.respond(refusal.status, std::move(headers), refusal.body);
}

}  // namespace

tokenize_call::tokenize_call(bool to_tokens, connection::header_list headers,
                             std::shared_ptr<const service_context> context,
                             std::function<void(std::function<void()>)> post,
                             std::shared_ptr<connection::response_writer> out)
    : to_tokens_(to_tokens),
      headers_(std::move(headers)),
      context_(std::move(context)),
      post_(std::move(post)),
      out_(std::move(out)) {}

void tokenize_call::body(std::string bytes) {
  const auto work = to_tokens_ ? tokenize : detokenize;
  if (bytes.size() <= context_->settings.inline_text_bytes_max) return send(*out_, headers_, work(bytes, *context_));
  auto text = std::make_shared<std::string>(std::move(bytes));
  const bool taken = context_->run_long([work, text, context = context_, post = post_, out = out_, headers = headers_] {
    auto answer = std::make_shared<result<std::string>>(work(*text, *context));
    post([out, headers, answer] { send(*out, headers, std::move(*answer)); });
  });
  if (!taken)
    send(*out_, headers_, error{error_kind::overloaded, "too many long requests are being read; try again soon", ""});
}

}  // namespace skein::request
