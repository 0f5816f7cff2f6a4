#include "actors/supervisor/settings/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include "actors/supervisor/settings/open_store.hpp"
#include "config/rules.hpp"

namespace skein::supervisor {

using std::chrono::milliseconds;

connection::connection_limits connection_limits(const config::config& c) {
  connection::connection_limits to{c.limits};
  to.upload_bytes_max = c.sessions.file_bytes_max;
  to.trusted_proxies = c.server.trusted_proxies;
  return to;
}

sampling::row_limits row_limits(const config::config& c) {
  const protocol::request_limits asked = service_settings(c).limits;
  return {.logit_bias_max = asked.logit_bias_max + sampling::own_bias_max,
          .stop_ids_max = asked.stop_ids_max + sampling::own_stop_ids_max};
}

request::service_settings service_settings(const config::config& c) {
  request::service_settings to;
  to.server = c.server;
  to.limits = {c.limits};
  to.limits.noise = c.server.noise;
  to.limits.tells_ignored = c.server.tell_ignored_fields;
  to.queue = c.queue;
  to.model = c.model;
  to.log = c.log;
  to.guarded = config::asks_for_secret(c);
  return to;
}

device::device_actor_options device_options(const config::config& c) {
  device::device_actor_options to;
  to.mailbox_max = c.queue.waiting_max + 1024;
  to.scheduling = {c.queue};
  to.scheduling.vram_states_max = c.engine.vram_states_max;
  to.scheduling.mixture_max = c.limits.mixture_max;
  return to;
}

persistence::persistence_options persistence_options(const config::config& c, bool on_gpu) {
  const auto& from = c.sessions;
  const bool on_disk = !c.server.state_dir.empty();
  persistence::persistence_options to;
  to.file_type = stored_state_type(c);
  to.mailbox_max = c.queue.waiting_max + 1024;
  to.sessions = from;

  to.session_states.ram_bytes_max = from.ram_bytes_max ? from.ram_bytes_max : free_memory() / 8;
  to.session_states.ram_states_max = from.ram_states_max;
  to.session_states.disk_bytes_max = on_disk ? from.disk_bytes_max : 0;
  to.session_states.disk_states_max = from.disk_states_max;
  to.session_states.disk_age_ms = static_cast<std::int64_t>(from.disk_state_age_max_s * 1000);
  to.session_states.write_delay = milliseconds(from.write_behind_ms);
  to.session_states.dirty_bytes_max = from.dirty_bytes_max;

  const auto& prefixes = c.prefix_cache;
  to.prefix_states.ram_bytes_max = prefixes.ram_bytes_max ? prefixes.ram_bytes_max : free_memory() / 16;
  to.prefix_states.disk_bytes_max = on_disk ? prefixes.disk_bytes_max : 0;
  to.prefix_states.dirty_bytes_max = from.dirty_bytes_max;
  to.prefix_states.write_behind = false;
  to.prefix_states.thin = false;
  // A GPU feeds 30 to 150 tokens in a millisecond; reading a state from disk takes 20 milliseconds or more.
  to.prefix_wait_tokens = prefixes.wait_tokens_min ? prefixes.wait_tokens_min : on_gpu ? 2048 : 1;
  to.prefixes = {prefixes};
  return to;
}

protocol::model_preset model_preset(const config::config& c, const std::string& model_name) {
  const auto found = c.models.find(model_name);
  return {found == c.models.end() ? config::model_defaults{} : found->second};
}

std::uint32_t io_threads(const config::config& c) {
  if (c.server.io_threads > 0) return c.server.io_threads;
  return std::clamp(std::thread::hardware_concurrency() / 4, 1u, 8u);
}

std::size_t free_memory() {
  return static_cast<std::size_t>(sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t available_memory() {
  std::ifstream file("/proc/meminfo");
  for (std::string name, unit; file >> name;) {
    std::size_t kib = 0;
    file >> kib;
    std::getline(file, unit);
    if (name == "MemAvailable:") return kib * 1024;
  }
  return free_memory();
}

}  // namespace skein::supervisor
