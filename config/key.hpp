#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/value.hpp"

namespace skein::config {

/// One setting as everything but the program's own code sees it: loader, flags, environment, dump and help are driven
/// by the table of these. The default is what `get` finds in a fresh config.
struct key {
  std::string path;         ///< "server.port", or models."name".top_p
  std::string_view help;    ///< meaning and unit, a sentence
  double min = 0, max = 0;  ///< of numbers, both legal
  std::string_view form;    ///< of texts with a fixed form: what is legal, for messages; empty: anything
  bool (*is_legal)(std::string_view) = nullptr;  ///< of texts with a fixed form
  bool live = false;                             ///< may change while the server runs
  bool secret = false;                           ///< never printed
  std::vector<std::string_view> flags;           ///< of `serve`: the documented spelling, then older ones
  std::function<value(const config&)> get;
  std::function<void(config&, const value&)> set;  ///< needs a value of get's type that `objection` accepts

  [[nodiscard]] value standard() const { return get(config{}); }
  [[nodiscard]] std::string_view section() const { return std::string_view(path).substr(0, path.rfind('.')); }
  [[nodiscard]] std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  /// The legal values in words: "0 .. 65535", "fp32, fp16"; empty when everything is.
  [[nodiscard]] std::string legal() const;
  /// The legal values where they are a few words and nothing else is; else nothing.
  [[nodiscard]] std::vector<std::string> words() const;
  /// What is wrong with the value, or nothing.
  [[nodiscard]] std::optional<std::string> objection(const value& v) const;
  /// SKEIN_SERVER_PORT; empty for keys of model sections, whose names do not fit into one.
  [[nodiscard]] std::string environment_name() const;
};

}  // namespace skein::config
