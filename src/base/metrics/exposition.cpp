#include "base/metrics/exposition.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace skein::metrics {
namespace {

void append_escaped(std::string& out, std::string_view text, bool quotes) {
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    out += c;
  }
}

}  // namespace

exposition::dialect exposition::chosen(std::string_view accept) {
  const bool open = accept.find("application/openmetrics-text") != std::string_view::npos;
  return open ? dialect::openmetrics : dialect::prometheus;
}

std::string_view exposition::content_type(dialect d) {
  return d == dialect::openmetrics ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
                                   : "text/plain; version=0.0.4; charset=utf-8";
}

void exposition::begin(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  // OpenMetrics names the family of a counter without the ending of its samples.
  if (dialect_ == dialect::openmetrics && type == "counter") name.remove_suffix(std::string_view("_total").size());
  out_.append("# HELP ").append(name).append(" ");
  append_escaped(out_, help, dialect_ == dialect::openmetrics);
  out_.append("\n# TYPE ").append(name).append(" ").append(type).append("\n");
}

void exposition::sample(label_list labels, double value) {
  write_name("", labels, "");
  write_number(value);
}

void exposition::sample(label_list labels, std::uint64_t value) {
  write_name("", labels, "");
  write_number(value);
}

void exposition::sample(label_list labels, const histogram_sum& value) {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < value.bounds.size(); ++i) {
    below += value.counts[i];
    std::array<char, 32> bound;
    auto end = std::to_chars(bound.data(), bound.data() + bound.size(), value.bounds[i]).ptr;
    const std::string_view digits(bound.data(), static_cast<std::size_t>(end - bound.data()));
    std::string text(digits);
    if (digits.find_first_of(".e") == std::string_view::npos) text += ".0";
    write_name("_bucket", labels, text);
    write_number(below);
  }
  below += value.counts[value.bounds.size()];
  write_name("_bucket", labels, "+Inf");
  write_number(below);
  write_name("_sum", labels, "");
  write_number(value.total);
  write_name("_count", labels, "");
  write_number(below);
}

void exposition::finish() {
  if (dialect_ == dialect::openmetrics) out_ += "# EOF\n";
}

void exposition::write_name(std::string_view ending, label_list labels, std::string_view bound) {
  out_.append(name_).append(ending);
  char before = '{';
  const auto write = [&](std::string_view name, std::string_view value) {
    if (value.empty()) return;
    out_ += before;
    out_.append(name).append("=\"");
    append_escaped(out_, value, true);
    out_ += '"';
    before = ',';
  };
  for (const auto& [name, value] : labels) write(name, value);
  write("le", bound);
  out_ += before == ',' ? "} " : " ";
}

void exposition::write_number(double value) {
  if (std::isnan(value)) {
    out_ += "NaN\n";
  } else if (std::isinf(value)) {
    out_ += value > 0 ? "+Inf\n" : "-Inf\n";
  } else {
    std::array<char, 32> digits;
    out_.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr) += '\n';
  }
}

void exposition::write_number(std::uint64_t value) { out_.append(std::to_string(value)) += '\n'; }

}  // namespace skein::metrics
