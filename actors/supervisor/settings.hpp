#pragma once
#include <cstdint>
#include <string>

#include "actors/connection/http.hpp"
#include "actors/device/device_actor.hpp"
#include "actors/persistence/persistence_options.hpp"
#include "actors/request/service_context.hpp"
#include "config/config.hpp"
#include "protocol/generation_request.hpp"

/// From the configuration to the options of each actor: the one place where the two meet.
namespace skein::supervisor {

[[nodiscard]] connection::connection_limits connection_limits(const config::config& c);
[[nodiscard]] request::service_settings service_settings(const config::config& c);
[[nodiscard]] request::pause_limits pause_limits(const config::config& c);
[[nodiscard]] request::login_limits login_limits(const config::config& c);
/// What requests within the limits may have, with what the server adds to them.
[[nodiscard]] sampling::row_limits row_limits(const config::config& c);
[[nodiscard]] device::device_actor_options device_options(const config::config& c);
[[nodiscard]] persistence::tenant_limits tenant_limits(const config::config& c);
[[nodiscard]] persistence::persistence_options persistence_options(const config::config& c, bool on_gpu);
[[nodiscard]] protocol::model_preset model_preset(const config::config& c, const std::string& model_name);
[[nodiscard]] std::uint32_t io_threads(const config::config& c);

/// Bytes of this machine's memory that nobody uses.
[[nodiscard]] std::size_t free_memory();
/// The same with what the system would give up for whoever needs it, such as files that it keeps in memory.
[[nodiscard]] std::size_t available_memory();

}  // namespace skein::supervisor
