#include "cli/bench/bench_report.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/version.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::cli {
namespace {

double bytes_of(const std::string& type) { return type == to_string(dtype::f32) ? 4 : 2; }

bool is_quantised(const std::string& type) {
  return std::ranges::none_of(std::array{dtype::f32, dtype::f16, dtype::bf16},
                              [&](dtype each) { return type == to_string(each); });
}

template <typename Case, typename Figure>
double median(const Case& of, const Figure& figure) {
  std::vector<double> values;
  values.reserve(of.samples.size());
  for (const auto& sample : of.samples) values.push_back(figure(sample));
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double share(double part, double whole) { return whole > 0 ? part / whole : 0; }

template <typename... Values>
std::string formatted(const char* format, Values... values) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, format, values...);
  return {text, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof text - 1)};
}

std::string percent(double share_or_unknown) {
  return share_or_unknown > 0 ? formatted("%5.1f %%", 100 * share_or_unknown) : "      -";
}

}  // namespace

tick_cost::tick_cost(const model::model_info& info, const std::string& weight_type, std::size_t weights_in_memory,
                     const std::string& state_type)
    : table_(static_cast<double>(info.vocab) * info.embd), element_bytes_(bytes_of(weight_type)), embd_(info.embd) {
  layers_ = static_cast<double>(info.parameters) - 2 * table_;
  bytes_of_matrices_ =
      is_quantised(weight_type) ? static_cast<double>(weights_in_memory) : (layers_ + table_) * element_bytes_;
  bytes_of_state_ = static_cast<double>(
      model::state_format(info.state, state_type == to_string(dtype::f16) ? dtype::f16 : dtype::f32).bytes());
}

double tick_cost::weight_bytes(const bench_case& of) const {
  return bytes_of_matrices_ + embd_ * of.sequences * of.tokens * element_bytes_;
}

double tick_cost::state_bytes(const bench_case& of) const { return 2 * bytes_of_state_ * of.sequences; }

double tick_cost::flop(const bench_case& of) const {
  return 2 * of.sequences * (layers_ * of.tokens + table_);  // the head runs once per sequence
}

double tick_cost::least_s(const bench_case& of, const device_limits& limits) const {
  if (limits.read_bytes_per_s <= 0 || limits.flop_per_s <= 0) return 0;
  return std::max(weight_bytes(of) / limits.read_bytes_per_s, flop(of) / limits.flop_per_s) +
         state_bytes(of) / limits.read_bytes_per_s;
}

bench_rates rates_of(const bench_case& of, const tick_cost& cost) {
  const double bytes = cost.weight_bytes(of) + cost.state_bytes(of), flop = cost.flop(of);
  const auto by_tick = [](const tick_sample& a, const tick_sample& b) { return a.tick_s < b.tick_s; };
  bench_rates to{};
  to.tick_s = median(of, [](const tick_sample& s) { return s.tick_s; });
  to.fastest_s = std::ranges::min(of.samples, by_tick).tick_s;
  to.slowest_s = std::ranges::max(of.samples, by_tick).tick_s;
  to.tokens_per_s = of.sequences * of.tokens / to.tick_s;
  to.bytes_per_s = bytes / to.tick_s;
  to.flop_per_s = flop / to.tick_s;
  to.limits.read_bytes_per_s = median(of, [](const tick_sample& s) { return s.limits.read_bytes_per_s; });
  to.limits.flop_per_s = median(of, [](const tick_sample& s) { return s.limits.flop_per_s; });
  to.share_of_read =
      median(of, [&](const tick_sample& s) { return share(bytes / s.tick_s, s.limits.read_bytes_per_s); });
  to.share_of_flop = median(of, [&](const tick_sample& s) { return share(flop / s.tick_s, s.limits.flop_per_s); });
  to.share_of_least = median(of, [&](const tick_sample& s) { return cost.least_s(of, s.limits) / s.tick_s; });
  return to;
}

std::string line_of(const bench_case& of, const bench_report& in) {
  const bench_rates x = rates_of(of, in.cost);
  const std::string shape = formatted("%ux%u", of.sequences, of.tokens);
  return formatted("%-7s %9s %10.1f %9.3f ms (%8.3f %8.3f) %8.1f GB/s %s %9.2f TFLOP/s %s  %s", of.kind, shape.c_str(),
                   x.tokens_per_s, x.tick_s * 1e3, x.fastest_s * 1e3, x.slowest_s * 1e3, x.bytes_per_s * 1e-9,
                   percent(x.share_of_read).c_str(), x.flop_per_s * 1e-12, percent(x.share_of_flop).c_str(),
                   percent(x.share_of_least).c_str());
}

state_rates rates_of(const state_moves_bench& of) {
  using sample = state_move_sample;
  const auto bytes = static_cast<double>(of.bytes);
  return {median(of, [&](const sample& s) { return bytes / s.copy_s; }),
          median(of, [&](const sample& s) { return bytes / s.in_s; }),
          median(of, [&](const sample& s) { return bytes / s.out_s; }),
          median(of, [](const sample& s) { return s.copy_s / s.in_s; }),
          median(of, [](const sample& s) { return s.copy_s / s.out_s; }),
          median(of, [](const sample& s) { return s.alone_in_s; }),
          median(of, [](const sample& s) { return s.alone_out_s; })};
}

std::string table_of(const bench_report& r) {
  std::string text = "model    " + r.model + "\nengine   " + r.built.device + ", weights " + r.built.weight_type +
                     formatted(" (%.2f GB), states ", static_cast<double>(r.built.memory.weight_bytes) * 1e-9) +
                     r.state_type + ", invariance " + r.invariance +
                     formatted(", opened in %.2f s, loaded in %.2f s", r.open_s, r.load_s) +
                     (r.threads > 0 ? formatted(", %u threads", r.threads) : "");
  if (!r.cases.empty()) {
    const device_limits limits = rates_of(r.cases.front(), r.cost).limits;
    const auto known = [](double limit, const char* unit) {
      return limit > 0 ? formatted("%.1f ", limit) + unit : std::string("unknown");
    };
    text += "\nlimits   reads " + known(limits.read_bytes_per_s * 1e-9, "GB/s") + ", GEMM " +
            known(limits.flop_per_s * 1e-12, "TFLOP/s") + " (" + r.flop_source + ')';
  }
  text +=
      "\n\nMedians. Bytes: weights once per tick (fast invariance: also those skipped for zero inputs), states read\n"
      "and written. Shares refer to the limits measured in this run. The last one refers to the least time, in which\n"
      "GEMMs and reads of weights overlap and the time for states is added.\n\n"
      "        sequences                                                      share of             share of    share\n"
      "         x tokens   tokens/s       tick  (fastest  slowest)     bytes      read    operations  matrix  of all\n";
  for (const auto& each : r.cases) text += line_of(each, r) + '\n';
  if (!r.states.samples.empty()) {
    const state_rates x = rates_of(r.states);
    const auto line = [&](const char* way, double speed, double of_copy, double alone_s) {
      return formatted("  %s %8.2f GB/s %s of the copy; one state alone %9.3f ms\n", way, speed * 1e-9,
                       percent(of_copy).c_str(), alone_s * 1e3);
    };
    text += formatted("\nStates of %.2f MB, %u together; a copy within host memory: %.2f GB/s\n",
                      static_cast<double>(r.states.bytes) * 1e-6, r.states.together, x.copy_bytes_per_s * 1e-9) +
            line("into slots  ", x.in_bytes_per_s, x.share_in, x.alone_in_s) +
            line("out of slots", x.out_bytes_per_s, x.share_out, x.alone_out_s);
    if (r.states.parked > 0)
      text += formatted("  %u sequences: parked in %.3f s, resumed in %.3f s\n", r.states.parked, r.states.park_s,
                        r.states.resume_s);
  }
  return text;
}

std::string json_of(const bench_report& r) {
  std::string text;
  protocol::json_writer json(text);
  json.begin_object().key("program").value(version_line()).key("model").value(r.model);
  json.key("device").value(r.built.device).key("weight_type").value(r.built.weight_type);
  json.key("state_type")
      .value(r.state_type)
      .key("invariance")
      .value(r.invariance)
      .key("threads")
      .value(r.threads)
      .key("open_s")
      .value(r.open_s)
      .key("load_s")
      .value(r.load_s);
  json.key("flop_source").value(r.flop_source).key("weight_bytes").value(r.built.memory.weight_bytes);
  json.key("activation_bytes").value(r.built.memory.activation_bytes).key("slots").value(r.built.slots);
  json.key("cases").begin_array();
  for (const auto& each : r.cases) {
    const bench_rates x = rates_of(each, r.cost);
    json.begin_object().key("kind").value(each.kind).key("sequences").value(each.sequences);
    json.key("tokens").value(each.tokens).key("samples").value(each.samples.size());
    json.key("ticks_a_sample").value(each.ticks).key("median_s").value(x.tick_s);
    json.key("fastest_s").value(x.fastest_s).key("slowest_s").value(x.slowest_s);
    json.key("tokens_per_s").value(x.tokens_per_s);
    json.key("weight_bytes").value(r.cost.weight_bytes(each)).key("state_bytes").value(r.cost.state_bytes(each));
    json.key("flop").value(r.cost.flop(each));
    const auto known = [&](const char* name, double value) {
      json.key(name);
      value > 0 ? json.value(value) : json.null();
    };
    json.key("bytes_per_s").value(x.bytes_per_s).key("flop_per_s").value(x.flop_per_s);
    known("read_limit_bytes_per_s", x.limits.read_bytes_per_s);
    known("limit_flop_per_s", x.limits.flop_per_s);
    known("share_of_read", x.share_of_read);
    known("share_of_flop", x.share_of_flop);
    known("least_s", r.cost.least_s(each, x.limits));
    known("share_of_least", x.share_of_least);
    json.end_object();
  }
  json.end_array();
  if (!r.states.samples.empty()) {
    const state_rates x = rates_of(r.states);
    json.key("states").begin_object().key("bytes").value(r.states.bytes).key("together").value(r.states.together);
    json.key("samples").value(r.states.samples.size()).key("copy_bytes_per_s").value(x.copy_bytes_per_s);
    json.key("in_bytes_per_s").value(x.in_bytes_per_s).key("out_bytes_per_s").value(x.out_bytes_per_s);
    json.key("share_in").value(x.share_in).key("share_out").value(x.share_out);
    json.key("alone_in_s").value(x.alone_in_s).key("alone_out_s").value(x.alone_out_s);
    json.key("parked").value(r.states.parked).key("park_s").value(r.states.park_s);
    json.key("resume_s").value(r.states.resume_s).end_object();
  }
  json.end_object();
  return text + '\n';
}

}  // namespace skein::cli
