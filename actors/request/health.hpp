#pragma once
#include <string>

#include "actors/request/service_context.hpp"

namespace skein::request {

/// A probe's answer: status and JSON body.
struct probe {
  unsigned status = 200;
  std::string body;
};

/// 503 when the device has work and has finished no tick for settings.stall_limit, or is lost; idle is healthy.
[[nodiscard]] probe live(const service_context& context);
/// 503 with a reason while loading, draining, or when the device is lost.
[[nodiscard]] probe ready(const service_context& context);
/// As ready, with the server's counters: slots, requests, ticks, connections.
[[nodiscard]] probe health(const service_context& context);
/// As ready, in the words of the older servers.
[[nodiscard]] probe healthz(const service_context& context);
[[nodiscard]] probe healthcheck(const service_context& context);
/// GET /status of RWKV-Runner: 1 without a model, 2 while one loads, 3 when it serves; our process and its device.
[[nodiscard]] probe runner_status(const service_context& c);
[[nodiscard]] std::string version_body();

}  // namespace skein::request
