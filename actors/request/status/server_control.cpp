#include "actors/request/status/server_control.hpp"

#include <algorithm>
#include <utility>

#include "actors/request/status/server_status.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/server/control_request.hpp"

namespace skein::request {

using protocol::json_writer;

server_control_call::server_control_call(order what, plain_origin origin,
                                         std::shared_ptr<const service_context> context,
                                         std::function<void(std::function<void()>)> post,
                                         std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)), order_(what), post_(std::move(post)) {}

/// Without an id, stop selects all requests and pause the latest one.
void server_control_call::read(std::string body) {
  const auto id = protocol::parse_control(body, context().settings.limits);
  if (!id) return refuse(id.error());
  auto meant = context().requests->running();
  std::erase_if(meant, [&](const auto& r) { return !origin().who->sees(r->what().tenant); });
  if (!id->empty()) std::erase_if(meant, [&](const auto& r) { return r->what().id != *id; });
  if (order_ == order::pause && meant.size() > 1) meant.erase(meant.begin(), meant.end() - 1);
  waiting_ = meant.size();
  if (meant.empty()) return tell();
  latest_ = meant.back();
  for (const auto& each : meant)
    each->tell(order_, [post = post_, self = std::weak_ptr(self_)](outcome how) {
      post([self, how] {
        if (const auto call = self.lock()) (*call)->carried_out(how);
      });
    });
}

void server_control_call::carried_out(outcome how) {
  guarded([&] {
    any_ = any_ || how == outcome::done;
    refused_ = refused_ || how == outcome::refused;
    if (--waiting_ == 0) tell();
  });
}

void server_control_call::tell() {
  if (refused_ && !any_)
    return refuse({error_kind::conflict,
                   "request_id: request '" + latest_->what().id +
                       "' cannot be paused; only a chat that has begun can, with one answer, no session, no logprobs " +
                       "and at most pause.tokens_max tokens",
                   "request_id"});
  std::string body;
  json_writer out(body);
  out.begin_object().key("ok").value(true);
  out.key(order_ == order::stop ? "stopped" : "paused").value(any_);
  if (order_ == order::pause) {
    out.key("request_id");
    latest_ ? out.value(latest_->what().id) : out.null();
  }
  out.key("active_request");
  write_request(out, latest_);
  out.end_object();
  answer(200, std::move(body));
}

}  // namespace skein::request
