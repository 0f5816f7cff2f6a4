#include "actors/request/responses/input_count_call.hpp"

#include <utility>
#include <vector>

#include "actors/request/call/attempt.hpp"
#include "actors/request/call/awaited_model.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/call/memory.hpp"
#include "actors/request/generation/session_turn.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/requests/ignored_fields.hpp"

namespace skein::request {
namespace {

/// Whether the request continues a session; otherwise it begins with nothing before it.
bool continues(const protocol::generation_request& request) {
  const auto& session = request.session;
  return session && !session->id.empty() && session->from_version != storage::beginning;
}

/// Whether the request begins with the system text with which the session began, which is then not fed again.
bool repeats_system(const session_turn& turn, const std::string& first) {
  const auto system = turn.system_text();
  return !system.empty() && first.starts_with(system);
}

/// The text that is fed, as for a response. `path`: the turns before; empty: none.
result<protocol::fed_text> text_after(const protocol::generation_request& request,
                                      const std::vector<persistence::shared_version>& path) {
  if (path.empty())
    return protocol::text_to_feed(protocol::render_turns(request.messages, request.think, request.style), 0);
  session_turn turn(request);
  persistence::session_opened after;
  after.base = path.back()->id;
  after.repeats_system = repeats_system(turn, path.front()->text);
  return turn.begin(std::move(after));
}

result<std::size_t> tokens_after(const protocol::generation_request& request,
                                 const std::vector<persistence::shared_version>& path, const served_model& model) {
  const auto text = text_after(request, path);
  if (!text) return text.error();
  std::vector<token_id> tokens;
  if (const auto ok = model.vocabulary->encode(text->text, tokens); !ok) return ok.error();
  return tokens.size();
}

}  // namespace

input_count_call::input_count_call(plain_origin origin, std::shared_ptr<const service_context> context,
                                   request_hub& hub, poster post, std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), out), hub_(hub), post_(std::move(post)), out_(std::move(out)) {}

input_count_call::~input_count_call() {
  plain_call::gone({}, connection::client_gone);
  hub_.close_ticket(ticket_.number);
}

std::uint64_t input_count_call::body_bytes_max() const {
  return origin().authenticated ? http_call::body_bytes_max() : plain_call::body_bytes_max();
}

/// Runs `work` here, or on the worker pool, and passes its result to `next`.
template <typename Work, typename Next>
void input_count_call::run(bool is_long, Work work, Next next) {
  if (!is_long) return next(*this, work());
  auto back = [self = std::weak_ptr(self_), next = std::move(next)](auto outcome) {
    const auto call = self.lock();
    if (call && !(*call)->ended()) (*call)->guarded([&] { next(**call, std::move(outcome)); });
  };
  if (!run_long(context(), {post_, origin().request_name, over(), origin().share}, std::move(work), std::move(back)))
    refuse({error_kind::overloaded, "too many long requests are being processed; try again soon", ""});
}

void input_count_call::read(std::string body) {
  memory_ = take_memory();
  is_long_ = body.size() > context().settings.inline_text_bytes_max;
  auto work = [text = std::move(body), context = shared_context(), who = origin().who,
               errors = origin().errors]() -> result<input> {
    auto model = model_at_hand(*context, *who, named_in(text, *context), errors);
    if (!model) return model.error();
    auto read =
        protocol::read_request(text, protocol::dialects::responses, *(*model)->preset(), context->settings.limits);
    if (!read.request) return read.request.error();
    return input{std::move(*model), std::move(*read.request), std::move(read.ignored)};
  };
  run(is_long_, std::move(work), [](input_count_call& call, result<input> in) { call.understood(std::move(in)); });
}

void input_count_call::understood(result<input> in) {
  if (!in) return refuse(in.error());
  input_ = std::make_shared<const input>(std::move(*in));
  if (!continues(input_->request)) return count({});
  if (!context().persistence) return refuse({error_kind::unsupported, "this server does not store responses", ""});
  ticket_ = hub_.open_ticket(*this);
  ask(input_->request.session->from_version);
}

/// Asks for the turns up to a version, or for the turn that the request names.
void input_count_call::ask(std::optional<persistence::version_id> version) {
  const protocol::session_fields& session = *input_->request.session;
  persistence::describe_session q;
  q.reply = ticket_;
  q.session = {origin().who->tenant, session.id};
  q.version = version;
  q.share = origin().share;
  q.transcript = session.from_key.empty() || found_turn_;
  if (!q.transcript) q.turn = session.from_key;
  if (!hub_.ask(std::move(q))) refuse(nobody_listens(context()));
}

void input_count_call::on_reply(persistence::reply& r) {
  if (ended()) return;
  guarded([&] {
    if (const auto* a = std::get_if<persistence::answer>(&r))
      return told(std::get<persistence::session_description>(a->body));
    const auto* const no = std::get_if<persistence::refused>(&r);
    if (!no) return;
    const protocol::session_fields& session = *input_->request.session;
    const bool begins = no->why.kind == error_kind::not_found && session.from_key.empty() && !session.from_version;
    begins ? count({}) : refuse(session_turn(input_->request).in_own_words(no->why));
  });
}

void input_count_call::told(const persistence::session_description& found) {
  if (!input_->request.session->from_key.empty() && !std::exchange(found_turn_, true))
    return ask(found.versions.front()->id);
  count(found.versions);
}

void input_count_call::count(std::vector<persistence::shared_version> path) {
  auto work = [in = input_, path = std::move(path)] { return tokens_after(in->request, path, in->model->served); };
  run(is_long_, std::move(work), [](input_count_call& call, result<std::size_t> tokens) {
    tokens ? call.tell(*tokens) : call.refuse(tokens.error());
  });
}

void input_count_call::tell(std::size_t tokens) {
  std::string json;
  protocol::json_writer out(json);
  out.begin_object().key("object").value("response.input_tokens").key("input_tokens").value(tokens).end_object();
  connection::header_list headers = origin().headers;
  headers.emplace_back("Content-Type", "application/json");
  if (!input_->ignored.empty())
    headers.emplace_back("X-Skein-Ignored-Fields", protocol::ignored_fields_header(input_->ignored));
  out_->respond(200, std::move(headers), std::move(json));
  plain_call::gone({}, 200);
}

}  // namespace skein::request
