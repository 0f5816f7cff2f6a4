#include "load/load_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "protocol/json/json_writer.hpp"

namespace skein::load {
namespace {

/// The percentile for a `share` from 0 to 1; `sorted` is not empty.
double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

template <typename... Values>
std::string line(const char* format, Values... values) {
  char text[256];
  const int length = std::snprintf(text, sizeof text, format, values...);
  return {text, std::min<std::size_t>(static_cast<std::size_t>(length), sizeof text - 1)};
}

std::string line(const char* name, const spread& s) {
  return line("%-6s %12.2f %12.2f %12.2f %12.2f\n", name, s.mean, s.median, s.p90, s.p99);
}

void write(protocol::json_writer& out, const char* name, const spread& s) {
  out.key(name).begin_object();
  out.key("mean").value(s.mean).key("median").value(s.median).key("p90").value(s.p90).key("p99").value(s.p99);
  out.end_object();
}

}  // namespace

spread spread_of(std::vector<double> values_ms) {
  if (values_ms.empty()) return {};
  std::ranges::sort(values_ms);
  const double sum = std::accumulate(values_ms.begin(), values_ms.end(), 0.0);
  return {sum / static_cast<double>(values_ms.size()), percentile(values_ms, 0.5), percentile(values_ms, 0.9),
          percentile(values_ms, 0.99)};
}

load_figures figures_of(const std::vector<request_outcome>& outcomes, double duration_s, std::uint64_t most_at_once) {
  load_figures made;
  made.duration_s = duration_s;
  made.most_at_once = most_at_once;
  std::vector<double> ttft, itl, tpot, e2e;
  for (const auto& one : outcomes) {
    if (!one.failure.empty()) {
      ++made.failed;
      ++made.failures[one.failure];
      continue;
    }
    ++made.completed;
    made.input_tokens += one.input_tokens;
    made.output_tokens += one.output_tokens;
    if (one.text_s.empty()) continue;
    const double first = one.text_s.front(), last = one.text_s.back();
    ttft.push_back(first * 1e3);
    e2e.push_back(last * 1e3);
    for (std::size_t i = 1; i < one.text_s.size(); ++i) itl.push_back((one.text_s[i] - one.text_s[i - 1]) * 1e3);
    if (one.output_tokens > 1) tpot.push_back((last - first) * 1e3 / static_cast<double>(one.output_tokens - 1));
  }
  if (duration_s > 0) {
    made.requests_per_s = static_cast<double>(made.completed) / duration_s;
    made.output_tokens_per_s = static_cast<double>(made.output_tokens) / duration_s;
    made.total_tokens_per_s = static_cast<double>(made.input_tokens + made.output_tokens) / duration_s;
  }
  made.ttft = spread_of(std::move(ttft));
  made.itl = spread_of(std::move(itl));
  made.tpot = spread_of(std::move(tpot));
  made.e2e = spread_of(std::move(e2e));
  return made;
}

std::string table_of(const load_figures& f) {
  const auto count = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
  std::string text = line("requests    %llu completed, %llu failed, %.2f/s, at most %llu concurrent, %.1f s total\n",
                          count(f.completed), count(f.failed), f.requests_per_s, count(f.most_at_once), f.duration_s);
  for (const auto& [why, times] : f.failures) text += "  failed    " + std::to_string(times) + ": " + why + '\n';
  text += line("tokens      %llu in, %llu out; %.1f out/s, %.1f total/s\n\n", count(f.input_tokens),
               count(f.output_tokens), f.output_tokens_per_s, f.total_tokens_per_s);
  text += line("%-6s %12s %12s %12s %12s\n", "ms", "mean", "median", "p90", "p99");
  return text + line("TTFT", f.ttft) + line("ITL", f.itl) + line("TPOT", f.tpot) + line("E2E", f.e2e);
}

std::string json_of(const load_figures& f, const std::string& setting) {
  std::string text = "{\"setting\":" + setting + ",\"figures\":";
  protocol::json_writer out(text);
  out.begin_object().key("completed").value(f.completed).key("failed").value(f.failed);
  out.key("failures").begin_object();
  for (const auto& [why, times] : f.failures) out.key(why).value(times);
  out.end_object();
  out.key("input_tokens").value(f.input_tokens).key("output_tokens").value(f.output_tokens);
  out.key("duration_s").value(f.duration_s).key("requests_per_s").value(f.requests_per_s);
  out.key("output_tokens_per_s").value(f.output_tokens_per_s);
  out.key("total_tokens_per_s").value(f.total_tokens_per_s).key("most_at_once").value(f.most_at_once);
  write(out, "ttft_ms", f.ttft);
  write(out, "itl_ms", f.itl);
  write(out, "tpot_ms", f.tpot);
  write(out, "e2e_ms", f.e2e);
  out.end_object();
  return text + "}\n";
}

}  // namespace skein::load
