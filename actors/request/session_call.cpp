#include "actors/request/session_call.hpp"

#include <utility>

#include "access/api_key.hpp"
#include "actors/request/memory.hpp"

namespace skein::request {

session_call::session_call(plain_origin origin, session_question question,
                           std::shared_ptr<const service_context> context, request_hub& hub,
                           std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)), question_(std::move(question)), hub_(hub) {}

session_call::~session_call() { hub_.close_ticket(ticket_.number); }

std::uint64_t session_call::body_bytes_max() const {
  return question_.takes_file ? http_call::body_bytes_max() : plain_call::body_bytes_max();
}

/// The answer to a caller without the right does not depend on what the other tenant has.
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
  if (!context().persistence) return refuse({error_kind::unsupported, "this server keeps no sessions", ""});
  const auto tenant = whose();
  if (!tenant) return refuse(tenant.error());
  ticket_ = hub_.open_ticket(*this);
  auto message = question_.ask(std::move(body), ticket_, *tenant);
  if (!message) return refuse(message.error());
  if (!hub_.ask(std::move(*message))) refuse(nobody_listens(context()));
}

void session_call::on_reply(persistence::reply& r) {
  if (ended()) return;
  guarded([&] {
    if (auto* a = std::get_if<persistence::answer>(&r)) {
      plain_answer told = question_.tell(a->body);
      return answer(told.status, std::move(told.body), told.type);
    }
    if (const auto* no = std::get_if<persistence::refused>(&r)) {
      if (question_.refuse)
        if (auto told = question_.refuse(no->why)) return answer(told->status, std::move(told->body), told->type);
      refuse(no->why);
    }
  });
}

}  // namespace skein::request
