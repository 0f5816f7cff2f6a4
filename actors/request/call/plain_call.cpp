#include "actors/request/call/plain_call.hpp"

#include <utility>

#include "actors/request/call/attempt.hpp"
#include "actors/request/call/auth.hpp"
#include "actors/request/call/body_login.hpp"
#include "actors/request/call/memory.hpp"
#include "protocol/requests/body_head.hpp"

namespace skein::request {

plain_call::plain_call(plain_origin origin, std::shared_ptr<const service_context> context,
                       std::shared_ptr<connection::response_writer> out)
    : origin_(std::move(origin)), context_(std::move(context)), out_(std::move(out)) {}

/// Bodies of these routes have a few fields and are read on the io thread.
std::uint64_t plain_call::body_bytes_max() const { return login_body_bytes_max(context_->settings); }

std::string plain_call::error_body(unsigned status, std::string_view message) const {
  return protocol::error_body(status, message, origin_.errors);
}

void plain_call::body(std::string bytes) {
  guarded([&] {
    auto memory = hold_memory(origin_.share, bytes.size());
    if (!memory) return refuse(memory.error());
    memory_ = std::move(*memory);
    if (!origin_.authenticated) {
      const auto password = protocol::read_body_head(bytes, context_->settings.limits).password;
      if (const auto no = judge_body_password(password, origin_.client, *context_, origin_.who))
        return refuse(no->why, no->retry_after);
      out_->charge(origin_.share = share_of(*context_, *origin_.who, origin_.client, true));
    }
    if (origin_.who->revoked) return refuse(revoked_key());  // while the body was on its way
    if (origin_.needs_admin && !origin_.who->admin) return refuse(no_admin());
    read(std::move(bytes));
  });
}

void plain_call::guarded(const std::function<void()>& work) {
  const std::string& name = origin_.request_name;
  const result<void> outcome = attempt_step(name, work);
  if (outcome || ended() || attempt_step(name, [&] { refuse(outcome.error()); })) return;
  end();
  out_->abort();
}

void plain_call::answer(unsigned status, std::string body, std::string_view type) {
  if (ended()) return;
  connection::header_list headers = origin_.headers;
  headers.emplace_back("Content-Type", type);
  out_->respond(status, std::move(headers), std::move(body));
  end();
}

void plain_call::refuse(const error& why, std::chrono::seconds retry_after) {
  if (ended()) return;
  const protocol::http_error no = protocol::to_http(why, retry_after, origin_.errors);
  connection::header_list headers = origin_.headers;
  headers.emplace_back("Content-Type", "application/json");
  headers.insert(headers.end(), no.headers.begin(), no.headers.end());
  out_->respond(no.status, std::move(headers), no.body);
  end();
}

}  // namespace skein::request
