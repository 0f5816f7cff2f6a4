#include "actors/request/status/metrics_page.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <span>
#include <utility>

#include "base/log/log.hpp"
#include "base/metrics/process_usage.hpp"
#include "base/version.hpp"

namespace skein::request {
namespace {

using metrics::exposition;
using metrics::histogram_sum;

/// Sums of the series of one model and key over all io threads.
struct generation_sums {
  histogram_sum first_token, inter_token, per_token, whole, queue, prefill, decode, prompt_tokens, generated_tokens;
  std::uint64_t prompt_total = 0, generated_total = 0, prefix_queries = 0, prefix_hits = 0;
  std::array<std::uint64_t, ending_names.size()> ended{};

  void add(const generation_series& s) {
    first_token += s.first_token;
    inter_token += s.inter_token;
    per_token += s.per_token;
    whole += s.whole;
    queue += s.queue;
    prefill += s.prefill;
    decode += s.decode;
    prompt_tokens += s.prompt_tokens;
    generated_tokens += s.generated_tokens;
    prompt_total += s.prompt_total;
    generated_total += s.generated_total;
    prefix_queries += s.prefix_queries;
    prefix_hits += s.prefix_hits;
    for (std::size_t i = 0; i < ended.size(); ++i) ended[i] += s.ended[i];
  }
};

void write_generations(exposition& out, const request_metrics& all) {
  std::map<series_name, generation_sums> sums;
  for (const auto& shard : all.shards())
    shard.each_generation([&](const series_name& name, const generation_series& s) { sums[name].add(s); });

  const auto counter = [&](std::string_view name, std::string_view help, auto value) {
    out.counter(name, help);
    for (const auto& [of, s] : sums) out.sample({{"model", of.first}, {"key", of.second}}, s.*value);
  };
  const auto histogram = [&](std::string_view name, std::string_view help, auto value) {
    out.histogram(name, help);
    for (const auto& [of, s] : sums) out.sample({{"model", of.first}, {"key", of.second}}, s.*value);
  };
  using s = generation_sums;
  counter("skein_prompt_tokens_total", "Prompt tokens of finished requests.", &s::prompt_total);
  counter("skein_generation_tokens_total", "Generated tokens.", &s::generated_total);
  counter("skein_prefix_cache_queries_total", "Prompt tokens looked up in the prefix cache.", &s::prefix_queries);
  counter("skein_prefix_cache_hits_total", "Of these, tokens found there, which need no prefill.", &s::prefix_hits);
  histogram("skein_time_to_first_token_seconds", "Time from a request's arrival to its first token.", &s::first_token);
  histogram("skein_inter_token_latency_seconds", "Time between two tokens of an answer.", &s::inter_token);
  histogram("skein_request_time_per_output_token_seconds", "Mean time between two tokens of a whole answer.",
            &s::per_token);
  histogram("skein_e2e_request_latency_seconds", "Time from a request's arrival to its end.", &s::whole);
  histogram("skein_request_queue_time_seconds", "Time that a request waits for a slot.", &s::queue);
  histogram("skein_request_prefill_time_seconds", "Time from a request's slot to its first token.", &s::prefill);
  histogram("skein_request_decode_time_seconds", "Time from a request's first token to its last.", &s::decode);
  histogram("skein_request_prompt_tokens", "Tokens of a request's prompts.", &s::prompt_tokens);
  histogram("skein_request_generation_tokens", "Tokens of a request's answers.", &s::generated_tokens);
  out.counter("skein_request_success_total", "Finished requests that had a slot, by finish reason.");
  for (const auto& [of, sum] : sums)
    for (std::size_t i = 0; i < sum.ended.size(); ++i)
      out.sample({{"model", of.first}, {"key", of.second}, {"finished_reason", ending_names[i]}}, sum.ended[i]);

  out.counter("skein_requests_rejected_total", "Requests that were refused before they got a slot, by reason.");
  std::map<std::pair<series_name, error_kind>, std::uint64_t> rejected;
  for (const auto& shard : all.shards())
    shard.each_rejection([&](const series_name& name, error_kind why, std::uint64_t n) { rejected[{name, why}] += n; });
  for (const auto& [of, count] : rejected)
    out.sample({{"model", of.first.first}, {"key", of.first.second}, {"reason", to_string(of.second)}}, count);
}

void write_http(exposition& out, const service_context& c) {
  std::map<exchange_name, std::uint64_t> all;
  for (const auto& shard : c.metrics->shards())
    shard.each_exchange([&](const exchange_name& name, std::uint64_t n) { all[name] += n; });
  out.counter("skein_http_requests_total", "HTTP requests by route, method and status; 499: the client left.");
  for (const auto& [name, count] : all) {
    const auto& [route, method, status] = name;
    out.sample({{"route", route}, {"method", method}, {"code", std::to_string(status)}}, count);
  }
  if (!c.connections) return;
  out.gauge("skein_http_connections", "Open connections, and responses that are being streamed.");
  out.sample({{"kind", "open"}}, std::uint64_t{c.connections->open});
  out.sample({{"kind", "stream"}}, std::uint64_t{c.connections->streams});
  out.counter("skein_http_connections_accepted_total", "Accepted connections.");
  out.sample({}, c.connections->accepted.load());
  out.counter("skein_http_connections_refused_total",
              "Of these, connections that were closed at once because too many were open.");
  out.sample({}, c.connections->refused.load());
}

/// Visits each device of each model in memory, with its id as a label.
template <typename Visit>
void each_device(std::span<const model_ref> models, Visit visit) {
  for (const auto& model : models)
    for (const model_device& device : model->devices) visit(model->id(), std::to_string(device.id), device);
}

/// The metrics of devices, with a sample for each device of each model in memory.
void write_devices(exposition& out, const service_context& c, std::span<const model_ref> models) {
  using counters = device::device_counters;
  const auto each = [&](auto value) {
    each_device(models, [&](const std::string& model, const std::string& id, const model_device& device) {
      out.sample({{"model", model}, {"device", id}}, value(*device.counters));
    });
  };
  const auto gauge = [&](std::string_view family, std::string_view help, auto value) {
    out.gauge(family, help);
    each(value);
  };
  const auto counter = [&](std::string_view family, std::string_view help, auto member) {
    out.counter(family, help);
    each([member](const counters& d) { return (d.*member).load(); });
  };
  const auto running = [](const counters& d) -> std::uint64_t {
    const std::uint32_t all = d.requests;
    return all - std::min(all, d.waiting.load());
  };
  const auto waiting = [](const counters& d) -> std::uint64_t { return d.waiting; };
  gauge("skein_num_requests_running", "Requests that have a slot, or had one and wait for it again.", running);
  gauge("skein_requests_running", "The same as skein_num_requests_running, under its older name.", running);
  gauge("skein_num_requests_waiting", "Requests that wait for their first slot.", waiting);
  gauge("skein_requests_waiting", "The same as skein_num_requests_waiting, under its older name.", waiting);
  gauge("skein_sequences_parked", "Preempted sequences that wait for a slot again.",
        [](const counters& d) -> std::uint64_t { return d.parked; });
  gauge("skein_parked_bytes", "Bytes of the states of parked sequences.",
        [](const counters& d) { return d.parked_bytes.load(); });
  gauge("skein_undo_bytes", "Bytes of states that are kept so that an answer can be cut.",
        [](const counters& d) { return d.undo_bytes.load(); });
  counter("skein_num_preemptions_total", "Sequences that were preempted for another one.", &counters::preemptions);
  counter("skein_preemptions_total", "The same as skein_num_preemptions_total, under its older name.",
          &counters::preemptions);
  counter("skein_steps_total", "Ticks of the device.", &counters::ticks);
  counter("skein_state_settles_total", "States that were made equal to the visible text.", &counters::settles);
  counter("skein_state_settles_back_total", "Of these, states that were rolled back first.", &counters::settles_back);
  counter("skein_state_copies_refused_total", "Requested copies of prefix states that were not made.",
          &counters::copies_refused);
  out.histogram("skein_batch_size", "Rows of a tick.");
  each([](const counters& d) {
    histogram_sum rows;
    return rows += d.batch_rows;
  });
  out.histogram("skein_step_seconds", "Time of a tick, by the kind of its rows.");
  each_device(models, [&](const std::string& model, const std::string& id, const model_device& device) {
    for (const auto& [phase, seconds] :
         {std::pair("decode", &counters::decode_seconds), std::pair("prefill", &counters::prefill_seconds),
          std::pair("mixed", &counters::mixed_seconds)}) {
      histogram_sum sum;
      out.sample({{"model", model}, {"device", id}, {"phase", phase}}, sum += (*device.counters).*seconds);
    }
  });
  gauge("skein_last_step_age_seconds", "Time since the last tick while there is work; 0 if there is none.",
        [&](const counters& d) {
          const duration age = c.time->now().time_since_epoch() - duration(d.last_tick_at.load());
          return d.busy ? std::chrono::duration<double>(age).count() : 0.0;
        });
  gauge("skein_device_lost",
        "1 if the device is lost: its engine failed, and requests run on the model's other devices.",
        [](const counters& d) -> std::uint64_t { return d.lost ? 1 : 0; });
  out.gauge("skein_device_info", "Devices of models in memory.");
  each_device(models, [&](const std::string& model, const std::string& id, const model_device& device) {
    out.sample({{"model", model}, {"device", id}, {"name", device.name()}}, std::uint64_t{1});
  });
  out.gauge("skein_model_info", "Models in memory.");
  for (const auto& model : models) {
    const auto& card = model->served.card;
    out.sample({{"model", model->id()}, {"device", card.device}, {"dtype", card.weight_type}}, std::uint64_t{1});
  }
}

std::uint64_t slot_bytes(const model_device& device) {
  return device.actor ? device.actor->info().memory.slot_bytes : 0;
}

/// States by kind: running sequences, sessions and prefixes.
void write_states(exposition& out, std::span<const model_ref> models, const persistence::persistence_counters* p) {
  using d = device::device_counters;
  const auto moved = [&](auto member) {
    std::uint64_t all = 0;
    for (const auto& model : models) all += model->devices.sum(member);
    return all;
  };
  out.gauge("skein_state_slots", "States in each tier; total: slots in device memory.");
  each_device(models, [&](const std::string& model, const std::string& id, const model_device& device) {
    for (const auto& [state, member] :
         {std::pair("used", &d::slots_used), std::pair("kept", &d::slots_kept), std::pair("total", &d::slots)})
      out.sample({{"model", model}, {"device", id}, {"tier", "vram"}, {"state", state}},
                 std::uint64_t{(*device.counters).*member});
  });
  const auto sum = [&](auto member) -> std::uint64_t {
    return p ? std::uint64_t{p->sessions.*member} + std::uint64_t{p->prefixes.*member} : 0;
  };
  using t = persistence::tier_counters;
  out.sample({{"tier", "ram"}, {"state", "used"}}, sum(&t::ram));
  out.sample({{"tier", "disk"}, {"state", "used"}}, sum(&t::disk));

  out.gauge("skein_state_bytes", "Bytes of states in each tier.");
  each_device(models, [&](const std::string& model, const std::string& id, const model_device& device) {
    const auto vram = [&](const char* kind, std::uint64_t slots) {
      out.sample({{"model", model}, {"device", id}, {"tier", "vram"}, {"kind", kind}}, slots * slot_bytes(device));
    };
    vram("sequence", device.counters->slots_used);
    vram("session", device.counters->slots_kept);
  });
  if (!p) return;
  const std::pair<const char*, const t*> kinds[] = {{"session", &p->sessions}, {"prefix", &p->prefixes}};
  for (const auto& [kind, tier] : kinds) {
    out.sample({{"tier", "ram"}, {"kind", kind}}, tier->ram_bytes.load());
    out.sample({{"tier", "disk"}, {"kind", kind}}, tier->disk_bytes.load());
  }
  out.gauge("skein_states_dirty", "States that wait to be written.");
  for (const auto& [kind, tier] : kinds) out.sample({{"kind", kind}}, std::uint64_t{tier->dirty});
  out.gauge("skein_states_dirty_bytes", "Bytes of states that wait to be written.");
  for (const auto& [kind, tier] : kinds) out.sample({{"kind", kind}}, tier->dirty_bytes.load());
  out.gauge("skein_state_oldest_dirty_seconds", "Age of the oldest state that waits to be written.");
  for (const auto& [kind, tier] : kinds)
    out.sample({{"kind", kind}}, static_cast<double>(tier->oldest_dirty_ms.load()) * 1e-3);
  out.gauge("skein_state_oldest_use_timestamp_seconds",
            "Unix time of the last use of the least recently used state; 0: there is none.");
  for (const auto& [kind, tier] : kinds) {
    out.sample({{"tier", "ram"}, {"kind", kind}}, static_cast<double>(tier->ram_oldest_use_ms.load()) * 1e-3);
    out.sample({{"tier", "disk"}, {"kind", kind}}, static_cast<double>(tier->disk_oldest_use_ms.load()) * 1e-3);
  }

  out.counter("skein_state_moves_total", "States that moved from one tier to another; none: they were dropped.");
  out.sample({{"kind", "session"}, {"from", "vram"}, {"to", "vram"}}, moved(&d::kept_hits));
  out.sample({{"kind", "session"}, {"from", "vram"}, {"to", "ram"}}, moved(&d::settles));
  out.sample({{"kind", "prefix"}, {"from", "vram"}, {"to", "ram"}}, moved(&d::copies_taken));
  out.sample({{"kind", "any"}, {"from", "ram"}, {"to", "vram"}}, moved(&d::states_written));
  for (const auto& [kind, tier] : kinds) {
    out.sample({{"kind", kind}, {"from", "ram"}, {"to", "disk"}}, tier->writes.load());
    out.sample({{"kind", kind}, {"from", "disk"}, {"to", "ram"}}, tier->loads.load());
    out.sample({{"kind", kind}, {"from", "ram"}, {"to", "none"}}, tier->ram_drops.load());
    out.sample({{"kind", kind}, {"from", "disk"}, {"to", "none"}}, tier->disk_drops.load());
  }
  out.counter("skein_state_move_failures_total", "Failed moves; the state stays in its tier or is rebuilt.");
  for (const auto& [kind, tier] : kinds) {
    out.sample({{"kind", kind}, {"from", "ram"}, {"to", "disk"}}, tier->write_failures.load());
    out.sample({{"kind", kind}, {"from", "disk"}, {"to", "ram"}}, tier->load_failures.load());
  }
  out.histogram("skein_state_move_seconds", "Time of a move between tiers.");
  for (const auto& [kind, tier] : kinds) {
    histogram_sum written, loaded;
    out.sample({{"kind", kind}, {"from", "ram"}, {"to", "disk"}}, written += tier->write_seconds);
    out.sample({{"kind", kind}, {"from", "disk"}, {"to", "ram"}}, loaded += tier->load_seconds);
  }
}

void write_sessions(exposition& out, const persistence::persistence_counters& p) {
  out.gauge("skein_sessions_in_memory", "Sessions whose tree is in memory.", p.open_sessions);
  out.gauge("skein_session_leases", "Running turns.", p.leases);
  out.gauge("skein_session_waiters", "Turns that wait for the previous turn of their session.", p.waiters);
  out.gauge("skein_session_tree_bytes", "Bytes of sessions' texts in memory.", p.tree_bytes);
  out.gauge("skein_session_unsaved_bytes", "Bytes of turns that are not on disk yet.", p.unsaved_bytes);
  out.gauge("skein_session_unsaved", "Sessions with turns that are not on disk yet.", p.unsaved_sessions);
  const auto stored = [&](std::string_view name, std::string_view help, std::uint64_t all, std::uint64_t largest) {
    out.gauge(name, help);
    out.sample({{"tenants", "all"}}, all);
    out.sample({{"tenants", "largest"}}, largest);
  };
  stored("skein_stored_sessions", "Stored sessions, of all tenants and of the tenant with the most.", p.stored_sessions,
         p.largest_sessions);
  stored("skein_stored_versions", "Stored versions, of all tenants and of the tenant with the most.", p.stored_versions,
         p.largest_versions);
  stored("skein_stored_bytes", "Stored bytes of tokens, texts, titles and metadata, of all tenants and of the largest.",
         p.stored_bytes, p.largest_bytes);
  out.gauge("skein_disk_failing", "1 while turns are kept in memory because writing to disk fails.",
            p.disk_fails ? 1 : 0);
  out.counter("skein_session_turns_total", "Turns of sessions, by outcome.");
  const std::pair<const char*, const std::atomic<std::uint64_t>*> outcomes[] = {{"opened", &p.turns_opened},
                                                                                {"committed", &p.turns_committed},
                                                                                {"failed", &p.turns_failed},
                                                                                {"replayed", &p.replays},
                                                                                {"refused", &p.refusals}};
  for (const auto& [outcome, count] : outcomes) out.sample({{"outcome", outcome}}, count->load());
  out.counter("skein_session_rebuilds_total", "Turns whose initial state had to be rebuilt.", p.rebuilds);
  out.counter("skein_session_rebuilt_tokens_total", "Tokens that were fed to rebuild states.", p.rebuilt_tokens);
  out.counter("skein_sessions_damaged_total", "Sessions that could not be read and were set aside.", p.damaged);
  out.gauge("skein_prefixes_known", "Prompt prefixes that have a state.", p.prefixes_ready);
  out.gauge("skein_prefixes_wanted", "Prompt prefixes whose state is being made.", p.prefixes_wanted);
  out.gauge("skein_prefix_token_bytes", "Bytes of the tokens that identify known prefixes.", p.prefix_token_bytes);
  out.counter("skein_invariant_violations_total", "Inconsistencies found in the accounting of sessions and states.",
              p.invariant_violations);
}

void write_process(exposition& out, const service_context& c) {
  const process_usage p = measure_process();
  out.counter("process_cpu_seconds_total", "CPU time of all threads.");
  out.sample({}, p.cpu_seconds);
  out.gauge("process_start_time_seconds", "Unix time of the process start.");
  out.sample({}, p.start_time_seconds);
  out.gauge("process_resident_memory_bytes", "Resident memory in bytes.", p.resident_bytes);
  out.gauge("process_virtual_memory_bytes", "Virtual memory in bytes.", p.virtual_bytes);
  out.gauge("process_open_fds", "Open file descriptors.", p.open_files);
  out.gauge("process_max_fds", "Maximum number of open file descriptors.", p.open_files_max);
  out.gauge("process_threads", "Threads.", p.threads);
  out.gauge("skein_request_held_bytes",
            "Bytes of request bodies, of waiting and running prompts, and of unsent answers.", c.memory->held());
  out.counter("skein_log_lines_dropped_total", "Log lines that were dropped because the log output was too slow.",
              log::dropped_lines());
  out.gauge("skein_draining", "1 while the server drains.", c.draining ? 1 : 0);
  out.gauge("skein_build_info", "Version and build of the program.");
  const auto build = this_build();
  out.sample({{"version", build.version}, {"commit", build.commit}, {"backend", build.backend}}, std::uint64_t{1});
}

}  // namespace

std::string metrics_page(const service_context& context, exposition::dialect dialect) {
  std::string page;
  exposition out(page, dialect);
  const auto models = context.models->resident();
  write_generations(out, *context.metrics);
  write_http(out, context);
  if (!models.empty()) write_devices(out, context, models);
  write_states(out, models, context.persistence_counters);
  if (context.persistence_counters) write_sessions(out, *context.persistence_counters);
  write_process(out, context);
  out.finish();
  return page;
}

}  // namespace skein::request
