#include "actors/request/sessions/session_call.hpp"

#include <algorithm>
#include <utility>

#include "access/api_key.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/call/memory.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace skein::request {

namespace {

/// Approximate bytes of an answer's JSON and of what is read for it. Counting stops once the answer is long.
std::size_t told_bytes(const persistence::answer_body& answer) {
  constexpr std::size_t record_bytes = 512, version_bytes = 384, long_bytes = 1u << 20;
  if (const auto* list = std::get_if<persistence::session_list>(&answer)) {
    std::size_t bytes = list->sessions.size() * record_bytes;
    for (const auto& s : list->sessions)
      for (const auto& [name, value] : s.record.metadata) bytes += name.size() + value.size();
    return bytes;
  }
  if (const auto* tiers = std::get_if<persistence::tiers_report>(&answer)) return tiers->sessions.size() * record_bytes;
  const auto* described = std::get_if<persistence::session_description>(&answer);
  if (!described) return 0;
  std::size_t bytes = described->versions.size() * version_bytes;
  for (const auto& v : described->versions)
    if ((bytes += storage::content_bytes(*v)) > long_bytes) break;
  return bytes;
}

/// Memory that reading an answer's versions takes, one after the other, besides what is written.
std::size_t reading_bytes(const persistence::answer_body& answer) {
  const auto* described = std::get_if<persistence::session_description>(&answer);
  if (!described) return 0;
  std::size_t most = 0;
  for (const auto& v : described->versions)
    most = std::max(most, protocol::reading_bytes(v->sampling, v->reasoning, v->answer));
  return most;
}

}  // namespace

session_call::session_call(plain_origin origin, session_question question,
                           std::shared_ptr<const service_context> context, request_hub& hub,
                           std::function<void(std::function<void()>)> post,
                           std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)),
      question_(std::move(question)),
      hub_(hub),
      post_(std::move(post)) {}

session_call::~session_call() { hub_.close_ticket(ticket_.number); }

std::uint64_t session_call::body_bytes_max() const {
  return question_.takes_file ? http_call::body_bytes_max() : plain_call::body_bytes_max();
}

/// Without the admin right, the answer does not depend on the other tenant's data.
result<tenant_id> session_call::whose() const {
  const caller& who = *origin().who;
  const auto& named = question_.tenant;
  if (!named || *named == who.tenant) return who.tenant;
  if (!who.admin)
    return error{error_kind::forbidden, "tenant: another tenant needs a key with the admin right", "tenant"};
  if (const auto no = access::name_complaint(*named); !no.empty())
    return error{error_kind::invalid_argument, "tenant " + std::string(no), "tenant"};
  return *named;
}

void session_call::read(std::string body) {
  if (!context().persistence) return refuse({error_kind::unsupported, "this server does not store sessions", ""});
  const auto tenant = whose();
  if (!tenant) return refuse(tenant.error());
  ticket_ = hub_.open_ticket(*this);
  auto message = question_.ask(std::move(body), ticket_, *tenant);
  if (!message) return refuse(message.error());
  std::visit(
      [this](auto& m) {
        if constexpr (requires { m.share; }) m.share = origin().share;
        if constexpr (requires { m.file; }) m.memory = take_memory();
      },
      *message);
  if (!hub_.ask(std::move(*message))) refuse(nobody_listens(context()));
}

void session_call::on_reply(persistence::reply& r) {
  if (ended()) return;
  guarded([&] {
    if (auto* a = std::get_if<persistence::answer>(&r)) return tell(*a);
    if (const auto* no = std::get_if<persistence::refused>(&r)) {
      if (question_.refuse)
        if (auto told = question_.refuse(no->why)) return answer(told->status, std::move(told->body), told->type);
      refuse(no->why);
    }
  });
}

/// A list of thousands of versions, or their texts, would block the io thread.
void session_call::tell(persistence::answer& a) {
  answer_memory_ = std::move(a.memory);
  if (told_bytes(a.body) <= context().settings.inline_text_bytes_max) return told(question_.tell(a.body));
  auto work = [tell = question_.tell, share = origin().share,
               body = std::make_shared<persistence::answer_body>(std::move(a.body))]() -> result<plain_answer> {
    const auto memory = hold_memory(share, reading_bytes(*body));
    if (!memory) return memory.error();
    return tell(*body);
  };
  auto back = [self = std::weak_ptr(self_)](result<plain_answer> answer) {
    const auto call = self.lock();
    if (call && !(*call)->ended()) (*call)->guarded([&] { (*call)->told(std::move(answer)); });
  };
  if (!run_long(context(), {post_, origin().request_name, over(), origin().share}, std::move(work), std::move(back)))
    refuse({error_kind::overloaded, "too many long answers are being written; try again soon", ""});
}

void session_call::told(result<plain_answer> told) {
  answer_memory_.reset();
  if (!told) return refuse(told.error());
  answer(told->status, std::move(told->body), told->type);
}

}  // namespace skein::request
