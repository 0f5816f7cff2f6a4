#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "access/api_key.hpp"
#include "actors/connection/websocket/socket_handshake.hpp"
#include "actors/request/call/auth.hpp"
#include "actors/request/responses/response_socket.hpp"
#include "actors/request/service/exchange.hpp"

namespace skein::request {

using connection::header_list;

/// GET on this route upgrades to a WebSocket or is refused.
api_service::made_call api_service::open_socket(exchange& x) {
  auto no = connection::judge_handshake(x.head);
  if (!connection::asks_for_socket(x.head))
    no = connection::refusal{426, "GET on this route needs a WebSocket handshake; or use POST"};
  if (!no && context_->draining) no = connection::refusal{503, "the server is shutting down"};
  if (no) {
    if (no->status == 426) {
      x.headers.emplace_back("Upgrade", "websocket");
      x.headers.emplace_back("Sec-WebSocket-Version", "13");
    }
    x.answer(no->status, protocol::error_body(no->status, no->message));
    return nullptr;
  }
  header_list headers{{"X-Request-Id", x.name}};
  const auto offered = connection::offered_protocols(x.head);
  const auto harmless = [](std::string_view p) { return !p.starts_with(password_protocol); };
  const auto chosen = std::ranges::find_if(offered, harmless);
  if (chosen != offered.end()) headers.emplace_back("Sec-WebSocket-Protocol", *chosen);  // never the password's
  x.out->upgrade(std::move(headers));

  const auto origin = std::make_shared<call_origin>(origin_of(x));
  origin->headers.clear();
  const auto secret = presented_secret(x.head);
  auto admits = [this, origin, by_socket = x.head.admin,
                 hash = secret ? std::optional(access::hash_of(*secret)) : std::nullopt] {
    if (by_socket || !context_->guarded()) return true;
    const caller_ref who = hash ? identify(*hash, *context_) : nullptr;
    if (who) origin->who = who;  // with its current limits
    return who != nullptr;
  };
  auto start = [this, origin, count = 0](std::shared_ptr<connection::response_writer> out) mutable -> made_call {
    call_origin of = *origin;
    of.request_name += '-' + std::to_string(++count);
    of.received = context_->time->now();
    if (!context_->draining) return responses_.start(std::move(of), std::move(out));
    const auto away = protocol::to_http({error_kind::unavailable, "the server is shutting down", ""});
    out->respond(away.status, {}, away.body);
    return nullptr;
  };
  return std::make_unique<response_socket>(std::move(start), std::move(admits), context_, post_, std::move(x.out));
}

}  // namespace skein::request
