#include "actors/request/status/health.hpp"

#include <unistd.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "actors/request/status/device_totals.hpp"
#include "base/version.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::request {
namespace {

using protocol::json_writer;

bool is_lost(const model_ref& model) { return model->devices.lost(); }

/// Whether the queue has been full for queue.full_unready_ms.
bool is_full(const service_context& c, const model_device& device) {
  const std::int64_t since = device.counters->queue_full_since;
  return since != 0 && c.time->now().time_since_epoch() - duration(since) >
                           std::chrono::milliseconds(c.settings.queue.full_unready_ms);
}

/// Whether all devices that work are full.
bool is_full(const service_context& c, const model_ref& model) {
  return std::ranges::all_of(model->devices, [&](const auto& d) { return d.lost() || is_full(c, d); });
}

std::string_view obstacle(const service_context& c) {
  if (std::ranges::any_of(c.models->resident(), is_lost)) return "the device is lost";
  if (c.draining) return "draining";
  if (!c.ready) return "loading";
  const auto resident = c.models->resident();
  if (!resident.empty() && std::ranges::all_of(resident, [&](const auto& m) { return is_full(c, m); }))
    return "the queue is full";
  if (!c.models->current() && c.models->why_none() != loaded_models::absence::resting)
    return c.models->loading() ? "loading" : "no model is loaded";
  return {};
}

bool is_stalled(const service_context& c, const device::device_counters& device) {
  const duration since = c.time->now().time_since_epoch() - duration(device.last_tick_at.load());
  return device.busy && since > std::chrono::milliseconds(c.settings.server.stall_ms);
}

/// Progress of the current load, if any.
void write_loading(json_writer& out, const service_context& c) {
  const auto load = c.models->loading();
  if (!load) return;
  out.key("loading").begin_object().key("model").value(load->model).key("percent").value(load->percent).end_object();
}

/// The devices that are lost, if any; requests run on the others.
void write_lost(json_writer& out, const service_context& c) {
  bool any = false;
  for (const auto& model : c.models->resident())
    for (const model_device& device : model->devices) {
      if (!device.lost()) continue;
      if (!std::exchange(any, true)) out.key("lost_devices").begin_array();
      out.begin_object().key("model").value(model->id()).key("device").value(device.id);
      out.key("name").value(device.name()).end_object();
    }
  if (any) out.end_array();
}

void write_model(json_writer& out, const model_ref& model) {
  out.key("model");
  if (!model) {
    out.null();
    return;
  }
  const auto& card = model->served.card;
  out.begin_object().key("id").value(card.id).key("strategy").value(card.device + ' ' + card.weight_type);
  out.end_object();
}

/// With `shown`, for operators: a load, and lost devices.
probe status_only(std::string_view why, const service_context* shown = nullptr) {
  probe p;
  p.status = why.empty() ? 200 : 503;
  json_writer out(p.body);
  out.begin_object().key("status").value(why.empty() ? "ok" : "unavailable");
  if (!why.empty()) out.key("reason").value(why);
  if (shown) write_loading(out, *shown);
  if (shown) write_lost(out, *shown);
  out.end_object();
  return p;
}

void write_error(json_writer& out, std::string_view why) {
  if (why.empty()) return;
  out.key("error").begin_object();
  out.key("code").value(503).key("message").value(why).key("type").value("unavailable_error");
  out.end_object();
}

void write_tiers(json_writer& out, std::string_view name, const persistence::tier_counters& t) {
  out.key(name).begin_object();
  out.key("vram").value(t.vram.load()).key("ram").value(t.ram.load()).key("disk").value(t.disk.load());
  out.key("dirty").value(t.dirty.load()).key("writing").value(t.writing.load());
  out.key("ram_bytes").value(t.ram_bytes.load()).key("disk_bytes").value(t.disk_bytes.load());
  out.key("written").value(t.writes.load()).key("loaded").value(t.loads.load());
  out.key("failed").value(t.write_failures.load() + t.load_failures.load());
  out.key("oldest_dirty_ms").value(t.oldest_dirty_ms.load());
  out.end_object();
}

void write_sessions(json_writer& out, const persistence::persistence_counters& p) {
  out.key("sessions").begin_object();
  out.key("durable").value(p.disk_fails ? "memory" : p.on_disk ? "process" : "memory");
  out.key("open").value(p.open_sessions.load()).key("leases").value(p.leases.load());
  out.key("waiting").value(p.waiters.load()).key("committed").value(p.turns_committed.load());
  out.key("replayed").value(p.replays.load()).key("rebuilt").value(p.rebuilds.load());
  out.key("damaged").value(p.damaged.load());
  out.key("unsaved_bytes").value(p.unsaved_bytes.load()).key("tree_bytes").value(p.tree_bytes.load());
  write_tiers(out, "states", p.sessions);
  out.end_object();
  out.key("prefixes").begin_object();
  out.key("known").value(p.prefixes_ready.load()).key("wanted").value(p.prefixes_wanted.load());
  out.key("hits").value(p.prefix_hits.load()).key("misses").value(p.prefix_misses.load());
  out.key("tokens").value(p.prefix_tokens.load());
  write_tiers(out, "states", p.prefixes);
  out.end_object();
}

}  // namespace

probe live(const service_context& c, audience) {
  const auto models = c.models->resident();
  const auto stalls = [&](const model_ref& m) {
    return std::ranges::any_of(m->devices, [&](const auto& d) { return is_stalled(c, *d.counters); });
  };
  if (std::ranges::any_of(models, is_lost)) return status_only("the device is lost");
  return status_only(std::ranges::any_of(models, stalls) ? "the device has work and makes no progress" : "");
}

probe ready(const service_context& c, audience who) {
  return status_only(obstacle(c), who == audience::operators ? &c : nullptr);
}

probe health(const service_context& c, audience who) {
  const device_totals d(*c.models);
  const std::string_view why = obstacle(c);
  probe p;
  p.status = why.empty() ? 200 : 503;
  json_writer out(p.body);
  out.begin_object().key("status").value(why.empty() ? "ok" : "unavailable");
  write_error(out, why);
  if (who == audience::strangers) {
    out.end_object();
    return p;
  }
  write_model(out, c.models->current());
  write_loading(out, c);
  write_lost(out, c);
  out.key("slots").begin_object();
  out.key("total").value(d.slots).key("used").value(d.slots_used);
  out.end_object();
  out.key("requests").begin_object();
  out.key("running").value(d.running()).key("waiting").value(d.waiting);
  out.key("parked").value(d.parked).key("paused").value(d.paused);
  out.key("finished").value(d.finished).key("rejected").value(d.rejected);
  out.key("cancelled").value(d.cancelled).key("preempted").value(d.preemptions);
  out.end_object();
  out.key("tokens").begin_object();
  out.key("prompt").value(d.prompt_tokens).key("generated").value(d.generated_tokens);
  out.end_object();
  out.key("memory").begin_object();
  out.key("held_bytes").value(c.memory->held()).key("parked_bytes").value(d.parked_bytes);
  out.end_object();
  out.key("ticks").value(d.ticks);
  if (c.persistence_counters) write_sessions(out, *c.persistence_counters);
  out.key("connections").begin_object();
  out.key("open").value(c.connections->open.load()).key("accepted").value(c.connections->accepted.load());
  out.key("refused").value(c.connections->refused.load());
  out.end_object().end_object();
  return p;
}

probe healthz(const service_context& c, audience who) {
  probe p = ready(c, who);
  if (p.status != 200 || who == audience::strangers) return p;
  p.body.clear();
  const model_ref model = c.models->current();
  json_writer out(p.body);
  out.begin_object().key("status").value("ok").key("model");
  model ? out.value(model->served.names.front()) : out.null();
  out.end_object();
  return p;
}

probe healthcheck(const service_context& c, audience) {
  const std::string_view why = obstacle(c);
  probe p;
  p.status = why.empty() ? 200 : 503;
  json_writer out(p.body);
  out.begin_object().key("message").value(why.empty() ? "ok" : why).key("status_code").value(p.status).end_object();
  return p;
}

probe runner_status(const service_context& c, audience) {
  constexpr int offline = 1, loading = 2, working = 3;
  const model_ref model = c.models->current();
  probe p;
  p.status = 200;
  json_writer out(p.body);
  out.begin_object().key("status").value(c.loading || c.models->loading() ? loading : model ? working : offline);
  out.key("pid").value(getpid()).key("device_name");
  model ? out.value(model->served.card.device) : out.null();
  out.end_object();
  return p;
}

std::string version_body() {
  std::string body;
  json_writer out(body);
  out.begin_object().key("version").value(version_line()).end_object();
  return body;
}

}  // namespace skein::request
