#pragma once
#include <algorithm>
#include <array>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "config/key.hpp"

namespace skein::config {

template <typename Field>
value to_value(const Field& field) {
  if constexpr (std::is_same_v<Field, bool>)
    return field;
  else if constexpr (std::is_integral_v<Field>)
    return static_cast<std::int64_t>(field);
  else
    return field;
}

template <typename Field>
void assign(Field& field, const value& v) {
  if constexpr (std::is_same_v<Field, bool>)
    field = std::get<bool>(v);
  else if constexpr (std::is_integral_v<Field>)
    field = static_cast<Field>(std::get<std::int64_t>(v));
  else
    field = std::get<Field>(v);
}

/// One row of the tables of keys. Constant data: a table of objects with destructors takes a minute to compile.
struct row {
  std::string_view section, name, help;
  value (*get)(const config&, const std::string& model);
  void (*set)(config&, const std::string& model, const value&);
  double min = 0, max = 0;
  std::string_view form = {};
  bool (*is_legal)(std::string_view) = nullptr;
  std::array<std::string_view, 3> flags = {};
  bool live = false, secret = false;

  constexpr row range(double low, double high) const {
    row made = *this;
    made.min = low;
    made.max = high;
    return made;
  }
  /// The legal texts: those of the list `what`, or those that pass the test, which `what` describes.
  constexpr row texts(std::string_view what, bool (*test)(std::string_view) = nullptr) const {
    row made = *this;
    made.form = what;
    made.is_legal = test;
    return made;
  }
  constexpr row flag(std::initializer_list<std::string_view> spellings) const {
    row made = *this;
    std::ranges::copy(spellings, made.flags.begin());
    return made;
  }
  constexpr row changes_live() const {
    row made = *this;
    made.live = true;
    return made;
  }
  constexpr row hidden() const {
    row made = *this;
    made.secret = true;
    return made;
  }
};

/// The key of a row; `prefix` is what its path begins with.
[[nodiscard]] inline key key_of(const row& one, std::string prefix, const std::string& model = {}) {
  key made;
  made.path = std::move(prefix) + '.' + std::string(one.name);
  made.help = one.help;
  made.min = one.min;
  made.max = one.max;
  made.form = one.form;
  made.is_legal = one.is_legal;
  made.live = one.live;
  made.secret = one.secret;
  for (const auto flag : one.flags)
    if (!flag.empty()) made.flags.push_back(flag);
  made.get = [get = one.get, model](const config& c) { return get(c, model); };
  made.set = [set = one.set, model](config& c, const value& v) { set(c, model, v); };
  return made;
}

template <auto Section, auto Field>
constexpr row setting(std::string_view section, std::string_view name, std::string_view help) {
  return {.section = section,
          .name = name,
          .help = help,
          .get = [](const config& c, const std::string&) { return to_value(c.*Section.*Field); },
          .set = [](config& c, const std::string&, const value& v) { assign(c.*Section.*Field, v); }};
}

}  // namespace skein::config
