#pragma once
#include <cstdint>
#include <string>

#include "actors/request/shared/service_context.hpp"

namespace skein::request {

/// Answer of a probe: status and JSON body.
struct probe {
  unsigned status = 200;
  std::string body;
};

/// Who reads a probe. If the server requires a secret, callers without one get only the status: the model and exact
/// totals reveal what other clients do.
enum class audience : std::uint8_t { strangers, operators };

/// 503 if a model has no working device, or if a device has work but has finished no tick for server.stall_ms. An idle
/// device is healthy.
[[nodiscard]] probe live(const service_context& context, audience who = audience::operators);
/// 503 with a reason while loading, draining, or when a model has no working device. Operators are told which devices
/// are lost.
[[nodiscard]] probe ready(const service_context& context, audience who);
/// As ready, with the server's counters: slots, requests, ticks, connections.
[[nodiscard]] probe health(const service_context& context, audience who);
/// As ready, in the formats of the older servers.
[[nodiscard]] probe healthz(const service_context& context, audience who);
[[nodiscard]] probe healthcheck(const service_context& context, audience who);
/// GET /status of RWKV-Runner: 1 without a model, 2 while one loads, 3 when it serves; this process and its device.
[[nodiscard]] probe runner_status(const service_context& context, audience who);
[[nodiscard]] std::string version_body();

}  // namespace skein::request
