#pragma once
#include <cstdint>
#include <string>

#include "actors/connection/http/http.hpp"
#include "actors/device/device_actor.hpp"
#include "actors/persistence/keeper/persistence_options.hpp"
#include "actors/request/shared/service_context.hpp"
#include "config/config.hpp"
#include "protocol/requests/generation_request.hpp"

/// Converts the configuration to the options of each actor; the only place that depends on both.
namespace skein::supervisor {

[[nodiscard]] connection::connection_limits connection_limits(const config::config& c);
[[nodiscard]] request::service_settings service_settings(const config::config& c);
/// The limits of requests plus the entries that the server adds.
[[nodiscard]] sampling::row_limits row_limits(const config::config& c);
[[nodiscard]] device::device_actor_options device_options(const config::config& c);
[[nodiscard]] persistence::persistence_options persistence_options(const config::config& c, bool on_gpu);
[[nodiscard]] protocol::model_preset model_preset(const config::config& c, const std::string& model_name);
[[nodiscard]] std::uint32_t io_threads(const config::config& c);

/// Unused memory of this machine, in bytes.
[[nodiscard]] std::size_t free_memory();
/// The same plus memory that the system can reclaim, such as cached files.
[[nodiscard]] std::size_t available_memory();

}  // namespace skein::supervisor
