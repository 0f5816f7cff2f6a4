#pragma once
#include <cstdint>
#include <string>

#include "actors/request/service_context.hpp"

namespace skein::request {

/// A probe's answer: status and JSON body.
struct probe {
  unsigned status = 200;
  std::string body;
};

/// Who reads a probe. Strangers of a server with a secret hear its status alone: the model and exact totals would tell them
/// about others.
enum class audience : std::uint8_t { strangers, operators };

/// 503 when the device has work and has finished no tick for settings.stall_limit, or is lost; idle is healthy.
[[nodiscard]] probe live(const service_context& context, audience who = audience::operators);
/// 503 with a reason while loading, draining, or when the device is lost.
[[nodiscard]] probe ready(const service_context& context, audience who);
/// As ready, with the server's counters: slots, requests, ticks, connections.
[[nodiscard]] probe health(const service_context& context, audience who);
/// As ready, in the words of the older servers.
[[nodiscard]] probe healthz(const service_context& context, audience who);
[[nodiscard]] probe healthcheck(const service_context& context, audience who);
/// GET /status of RWKV-Runner: 1 without a model, 2 while one loads, 3 when it serves; our process and its device.
[[nodiscard]] probe runner_status(const service_context& context, audience who);
[[nodiscard]] std::string version_body();

}  // namespace skein::request
