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
  const auto& from = c.limits;
  connection::connection_limits to;
  to.header_bytes_max = from.header_bytes_max;
  to.header_fields_max = from.header_fields_max;
  to.body_bytes_max = from.body_bytes_max;
  to.request_wire_bytes_max = from.request_wire_bytes_max;
  to.upload_bytes_max = c.sessions.file_bytes_max;
  to.body_bytes_per_second_min = from.body_bytes_per_second_min;
  to.outbound_bytes_max = from.outbound_bytes_max;
  to.unsent_bytes_max = from.unsent_bytes_max;
  to.connections_max = from.connections_max;
  to.connections_per_address_max = from.connections_per_address_max;
  to.requests_per_connection_max = from.requests_per_connection_max;
  to.header_timeout = milliseconds(from.header_timeout_ms);
  to.body_timeout = milliseconds(from.body_timeout_ms);
  to.idle_timeout = milliseconds(from.idle_timeout_ms);
  to.write_timeout = milliseconds(from.write_timeout_ms);
  to.socket_message_bytes_max = from.socket_message_bytes_max;
  to.socket_idle_timeout = milliseconds(from.socket_idle_timeout_ms);
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
  to.limits.body_bytes_max = c.limits.body_bytes_max;
  to.limits.n_max = c.limits.n_max;
  to.limits.max_tokens_max = c.limits.max_tokens_max;
  to.limits.prompt_tokens_max = c.limits.prompt_tokens_max;
  to.limits.prompts_max = c.limits.prompts_max;
  to.limits.stops_max = c.limits.stops_max;
  to.limits.stop_bytes_max = c.limits.stop_bytes_max;
  to.limits.logit_bias_max = c.limits.logit_bias_max;
  to.limits.json_depth_max = c.limits.json_depth_max;
  to.limits.mixture_max = c.limits.mixture_max;
  to.limits.response_bytes_max = c.limits.response_bytes_max;
  to.limits.noise = c.server.noise;
  to.limits.tells_ignored = c.server.tell_ignored_fields;
  to.guarded = config::asks_for_secret(c);
  to.password = c.server.password;
  to.unauthenticated_body_bytes_max = c.limits.unauthenticated_body_bytes_max;
  to.json_password = c.server.json_password;
  to.open_translation = c.server.open_translation;
  to.open_metrics = c.server.open_metrics;
  to.strict_model_names = c.server.strict_model_names;
  to.log_prompts = c.log.prompts;
  to.web_page = c.server.web_page;
  to.cors_origins = c.server.cors_origins;
  to.host_names = c.server.host_names;
  to.outbound_bytes_max = c.limits.outbound_bytes_max;
  to.held_bytes_max = c.queue.bytes_max;
  to.key_bytes_max = c.queue.key_bytes_max;
  to.address_bytes_max = c.queue.address_bytes_max;
  to.prompts_waiting_max = c.queue.prompts_waiting_max;
  to.socket_requests_max = c.limits.socket_requests_max;
  to.queue_timeout = milliseconds(c.queue.queue_timeout_ms);
  to.total_timeout = milliseconds(c.queue.total_timeout_ms);
  to.stall_limit = milliseconds(c.server.stall_ms);
  to.full_limit = milliseconds(c.queue.full_unready_ms);
  to.states_dir = c.model.states_dir;
  to.tuned_states_max = c.model.tuned_states_max;
  return to;
}

request::pause_limits pause_limits(const config::config& c) {
  return {.requests_max = c.pause.requests_max,
          .tokens_max = c.pause.tokens_max,
          .age_max = std::chrono::seconds(c.pause.age_max_s)};
}

request::login_limits login_limits(const config::config& c) {
  return {.failures_max = c.limits.login_failures_max,
          .window = milliseconds(c.limits.login_window_ms),
          .addresses_max = c.limits.login_addresses_max};
}

device::device_actor_options device_options(const config::config& c) {
  device::device_actor_options to;
  to.waiting_max = c.queue.waiting_max;
  to.waiting_per_client_max = c.queue.waiting_per_client_max;
  to.turn_tokens = c.queue.turn_tokens;
  to.parked_max = c.queue.parked_max;
  to.parked_bytes_max = c.queue.parked_bytes_max;
  to.copies_max = c.queue.copies_max;
  to.undo_bytes_max = c.queue.undo_bytes_max;
  to.mixture_max = c.limits.mixture_max;
  to.vram_states_max = c.engine.vram_states_max;
  to.mailbox_max = c.queue.waiting_max + 1024;
  return to;
}

persistence::tenant_limits tenant_limits(const config::config& c) {
  return {c.sessions.tenant_sessions_max, c.sessions.tenant_versions_max, c.sessions.tenant_bytes_max};
}

persistence::persistence_options persistence_options(const config::config& c, bool on_gpu) {
  const auto& from = c.sessions;
  const bool on_disk = !c.server.state_dir.empty();
  persistence::persistence_options to;
  to.file_type = stored_state_type(c);
  to.signature_key = from.signature_key;
  to.mailbox_max = c.queue.waiting_max + 1024;
  to.unsaved_bytes_max = from.unsaved_bytes_max;
  to.session_age_max_ms = static_cast<std::int64_t>(from.session_age_max_s * 1000);
  to.file_bytes_max = from.file_bytes_max;

  to.tenants = tenant_limits(c);
  to.sessions.tree_bytes_max = from.tree_bytes_max;
  to.sessions.writers_max = from.writers_max;
  to.sessions.waiters_max = from.waiters_max;
  to.sessions.wait_when_busy = from.busy == "wait";

  to.session_states.ram_bytes_max = from.ram_bytes_max ? from.ram_bytes_max : free_memory() / 8;
  to.session_states.ram_states_max = from.ram_states_max;
  to.session_states.disk_bytes_max = on_disk ? from.disk_bytes_max : 0;
  to.session_states.disk_states_max = from.disk_states_max;
  to.session_states.disk_age_ms = static_cast<std::int64_t>(from.disk_state_age_max_s * 1000);
  to.session_states.write_delay = milliseconds(from.write_behind_ms);
  to.session_states.dirty_bytes_max = from.dirty_bytes_max;

  const auto& prefixes = c.prefix_cache;
  to.cache_prefixes = prefixes.enabled;
  to.prefix_states.ram_bytes_max = prefixes.ram_bytes_max ? prefixes.ram_bytes_max : free_memory() / 16;
  to.prefix_states.disk_bytes_max = on_disk ? prefixes.disk_bytes_max : 0;
  to.prefix_states.dirty_bytes_max = from.dirty_bytes_max;
  to.prefix_states.write_behind = false;
  to.prefix_states.thin = false;
  // A GPU feeds 30 to 150 tokens in a millisecond; reading a state from disk takes 20 milliseconds or more.
  to.prefix_wait_tokens = prefixes.wait_tokens_min ? prefixes.wait_tokens_min : on_gpu ? 2048 : 1;
  to.prefixes.min_tokens = prefixes.min_tokens;
  to.prefixes.every_tokens = prefixes.every_tokens;
  return to;
}

protocol::model_preset model_preset(const config::config& c, const std::string& model_name) {
  const auto found = c.models.find(model_name);
  const config::model_defaults from = found == c.models.end() ? config::model_defaults{} : found->second;
  protocol::model_preset to;
  to.temperature = static_cast<float>(from.temperature);
  to.top_p = static_cast<float>(from.top_p);
  to.top_k = from.top_k;
  to.alpha_presence = static_cast<float>(from.alpha_presence);
  to.alpha_frequency = static_cast<float>(from.alpha_frequency);
  to.alpha_decay = static_cast<float>(from.alpha_decay);
  to.max_tokens = from.max_tokens;
  to.completion_max_tokens = from.completion_max_tokens;
  to.stop = from.stop;
  to.no_think_opening = from.no_think_opening;
  to.default_think = from.default_think;
  return to;
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
