#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.hpp"
#include "config/value.hpp"

namespace skein::config {

/// One setting. Loader, flags, environment, dump, help and documents are driven by the table of these. The default is
/// the value that `get` returns for a fresh config.
struct key {
  std::string path;         ///< "server.port", or models."name".top_p
  std::string_view help;    ///< meaning and unit, a sentence
  double min = 0, max = 0;  ///< of numbers, both legal
  std::string_view form;    ///< legal values of a string setting: "wait, refuse"; empty: any string
  bool (*is_legal)(std::string_view) = nullptr;  ///< test of a string setting whose `form` only describes the values
  bool live = false;                             ///< may change while the server runs
  bool secret = false;                           ///< never printed
  bool for_tests = false;                        ///< in no document and in no program that is shipped
  std::vector<std::string_view> flags;           ///< of `serve`: the documented spelling, then older ones
  std::function<value(const config&)> get;
  std::function<void(config&, const value&)> set;  ///< needs a value of get's type that `objection` accepts

  [[nodiscard]] value standard() const { return get(config{}); }
  [[nodiscard]] std::string_view section() const { return std::string_view(path).substr(0, path.rfind('.')); }
  [[nodiscard]] std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  /// The legal values as text: "0 .. 65535", "fp32, fp16"; empty if every value is legal.
  [[nodiscard]] std::string legal() const;
  /// The legal values if `form` lists all of them; otherwise empty.
  [[nodiscard]] std::vector<std::string> words() const;
  /// Why the value is not legal; nullopt if it is.
  [[nodiscard]] std::optional<std::string> objection(const value& v) const;
  /// SKEIN_SERVER_PORT; empty for keys of model sections, because model names do not fit into variable names.
  [[nodiscard]] std::string environment_name() const;
};

}  // namespace skein::config
