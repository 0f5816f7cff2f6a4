#include "actors/request/models/tokenize_call.hpp"

#include <utility>
#include <vector>

#include "actors/request/call/attempt.hpp"
#include "actors/request/call/auth.hpp"
#include "actors/request/call/awaited_model.hpp"
#include "actors/request/call/body_login.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/call/memory.hpp"
#include "protocol/json/http_error.hpp"
#include "protocol/requests/body_head.hpp"
#include "protocol/requests/ignored_fields.hpp"
#include "protocol/server/tokenize_api.hpp"

namespace skein::request {
namespace {

auto texts_of(const served_model& model) {
  return [&vocabulary = *model.vocabulary](token_id t) { return vocabulary.text(t); };
}

/// The body of an answer, and the request's members that were ignored.
struct text_answer {
  std::string body;
  protocol::ignored_names ignored;
};

error client_gone() { return {error_kind::cancelled, "the client is gone", ""}; }

result<std::string> tokenize(const std::string& body, const service_context& context, const served_model& model,
                             const std::stop_token& gone, protocol::ignored_names& ignored) {
  auto request = protocol::parse_tokenize(body, context.settings.limits, &ignored);
  if (!request) return request.error();
  if (gone.stop_requested()) return client_gone();
  std::vector<token_id> tokens;
  if (auto count = model.vocabulary->encode(request->content, tokens); !count) return count.error();
  if (gone.stop_requested()) return client_gone();
  request->content = {};
  const auto& limits = context.settings.limits;
  return request->with_pieces ? protocol::tokenize_answer(tokens, texts_of(model), limits)
                              : protocol::tokenize_answer(tokens, limits);
}

result<std::string> detokenize(const std::string& body, const service_context& context, const served_model& model,
                               const std::stop_token& gone, protocol::ignored_names& ignored) {
  auto tokens = protocol::parse_detokenize(body, context.settings.limits, &ignored);
  if (!tokens) return tokens.error();
  if (gone.stop_requested()) return client_gone();
  for (token_id t : *tokens)
    if (t < 0 || static_cast<std::uint32_t>(t) >= model.vocab)
      return error{error_kind::invalid_argument, "token " + std::to_string(t) + " is not in the vocabulary", "tokens"};
  return protocol::detokenize_answer(*tokens, texts_of(model), context.settings.limits);
}

/// The number of tokens of a prompt, which can be given in several ways.
result<std::string> count(const std::string& body, const service_context& context, const loaded_model& model,
                          const std::stop_token& gone, protocol::ignored_names& ignored) {
  const auto& limits = context.settings.limits;
  auto request = protocol::parse_count(body, *model.preset(), limits, &ignored);
  if (!request) return request.error();
  if (gone.stop_requested()) return client_gone();
  std::vector<token_id> tokens;
  if (auto ok = model.served.vocabulary->encode(request->text, tokens); !ok) return ok.error();
  return protocol::count_answer(tokens, request->return_tokens, limits);
}

result<std::string> work_of(text_task task, const std::string& body, const service_context& context,
                            const loaded_model& model, const std::stop_token& gone, protocol::ignored_names& ignored) {
  switch (task) {
    case text_task::tokenize: return tokenize(body, context, model.served, gone, ignored);
    case text_task::detokenize: return detokenize(body, context, model.served, gone, ignored);
    case text_task::apply_template:
      return protocol::template_answer(body, *model.preset(), context.settings.limits, &ignored);
    case text_task::count: break;
  }
  return count(body, context, model, gone, ignored);
}

void respond(connection::response_writer& out, const plain_origin& origin, result<text_answer> answer,
             std::chrono::seconds retry_after) {
  connection::header_list headers = origin.headers;
  headers.emplace_back("Content-Type", "application/json");
  if (answer) {
    if (!answer->ignored.empty())
      headers.emplace_back("X-Skein-Ignored-Fields", protocol::ignored_fields_header(answer->ignored));
    return out.respond(200, std::move(headers), std::move(answer->body));
  }
  const protocol::http_error refusal = protocol::to_http(answer.error(), retry_after, origin.errors);
  headers.insert(headers.end(), refusal.headers.begin(), refusal.headers.end());
  out.respond(refusal.status, std::move(headers), refusal.body);
}

/// If an exception is thrown, the client gets a 500, or the connection ends.
void send(connection::response_writer& out, const plain_origin& origin, result<text_answer> answer,
          std::chrono::seconds retry_after = std::chrono::seconds(1)) {
  const auto sent = [&](result<text_answer> what) {
    return attempt(origin.request_name, [&]() -> result<void> {
      respond(out, origin, std::move(what), retry_after);
      return {};
    });
  };
  if (!sent(std::move(answer)) && !sent(server_failed())) out.abort();
}

}  // namespace

tokenize_call::tokenize_call(text_task task, plain_origin origin, std::shared_ptr<const service_context> context,
                             std::function<void(std::function<void()>)> post,
                             std::shared_ptr<connection::response_writer> out)
    : task_(task),
      origin_(std::move(origin)),
      context_(std::move(context)),
      post_(std::move(post)),
      out_(std::move(out)) {}

std::uint64_t tokenize_call::body_bytes_max() const {
  return origin_.authenticated ? http_call::body_bytes_max() : login_body_bytes_max(context_->settings);
}

std::string tokenize_call::error_body(unsigned status, std::string_view message) const {
  return protocol::error_body(status, message, origin_.errors);
}

void tokenize_call::body(std::string bytes) {
  const bool is_long = bytes.size() > context_->settings.inline_text_bytes_max;
  auto tell = [out = out_, origin = origin_](result<text_answer> answer) { send(*out, origin, std::move(answer)); };
  const auto memory = hold_memory(origin_.share, bytes.size());
  if (!memory) return tell(memory.error());
  if (!origin_.authenticated) {
    const auto password = protocol::read_body_head(bytes, context_->settings.limits).password;
    if (const auto no = judge_body_password(password, origin_.client, *context_, origin_.who))
      return send(*out_, origin_, no->why, no->retry_after);
    out_->charge(share_of(*context_, *origin_.who, origin_.client, true));
  }
  if (origin_.who->revoked) return tell(revoked_key());
  auto work = [task = task_, text = std::move(bytes), context = context_, who = origin_.who, errors = origin_.errors,
               memory = *memory, gone = over_.get_token()]() -> result<text_answer> {
    const auto model = model_at_hand(*context, *who, named_in(text, *context), errors);
    if (!model) return model.error();
    text_answer answer;
    auto body = work_of(task, text, *context, **model, gone, answer.ignored);
    if (!body) return body.error();
    answer.body = std::move(*body);
    return answer;
  };
  if (!is_long) return tell(attempt(origin_.request_name, work));
  if (!run_long(*context_, {post_, origin_.request_name, over_.get_token(), origin_.share}, std::move(work), tell))
    tell(error{error_kind::overloaded, "too many long requests are being processed; try again soon", ""});
}

}  // namespace skein::request
