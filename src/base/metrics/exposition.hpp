#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/metrics/metrics.hpp"

namespace skein::metrics {

/// Name and value of a label. A label with an empty value is left out.
using label = std::pair<std::string_view, std::string_view>;
using label_list = std::initializer_list<label>;

/// Writes the Prometheus text format: families of samples. Begin each family once, then write its samples.
///   # HELP skein_requests_running Requests that have a slot.
///   # TYPE skein_requests_running gauge
///   skein_requests_running{model="skein-demo"} 3
class exposition {
 public:
  enum class dialect : std::uint8_t { prometheus, openmetrics };

  /// The dialect to send for this value of the Accept header.
  [[nodiscard]] static dialect chosen(std::string_view accept);
  [[nodiscard]] static std::string_view content_type(dialect d);

  exposition(std::string& out, dialect d) : out_(out), dialect_(d) {}

  /// Begins a family. `help` is one sentence; names of counters end in _total.
  void counter(std::string_view name, std::string_view help) { begin(name, "counter", help); }
  void gauge(std::string_view name, std::string_view help) { begin(name, "gauge", help); }
  void histogram(std::string_view name, std::string_view help) { begin(name, "histogram", help); }

  /// Writes a family of one sample without labels.
  void counter(std::string_view name, std::string_view help, std::uint64_t value) {
    counter(name, help);
    sample({}, value);
  }
  void gauge(std::string_view name, std::string_view help, std::uint64_t value) {
    gauge(name, help);
    sample({}, value);
  }

  // Write a sample of the family that was begun last.
  void sample(label_list labels, double value);
  void sample(label_list labels, std::uint64_t value);
  void sample(label_list labels, const histogram_sum& value);

  /// Ends the output.
  void finish();

 private:
  void begin(std::string_view name, std::string_view type, std::string_view help);
  void write_name(std::string_view ending, label_list labels, std::string_view bound);
  void write_number(double value);
  void write_number(std::uint64_t value);

  std::string& out_;
  const dialect dialect_;
  std::string name_;
};

}  // namespace skein::metrics
