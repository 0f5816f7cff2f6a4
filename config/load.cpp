#include "config/load.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "config/keys.hpp"
#include "config/limits.hpp"
#include "config/nearest.hpp"
#include "config/rules.hpp"

#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

namespace skein::config {
namespace {

/// The text of a small file, or why it could not be read.
struct file_text {
  std::string text;
  std::string trouble;
  bool missing = false;
};

file_text read_file(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::exists(path, failed) && !failed) return {{}, "does not exist", true};
  const bool is_folder = std::filesystem::is_directory(path, failed);
  if (is_folder) return {{}, "is a folder", false};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  if (!file) return {{}, std::string("cannot be opened: ") + std::strerror(errno), false};
  std::string text(limits::file_bytes_max + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return {{}, "cannot be read", false};
  if (text.size() > limits::file_bytes_max)
    return {{}, "is larger than " + std::to_string(limits::file_bytes_max) + " bytes", false};
  return {std::move(text), {}, false};
}

/// The parser's description, with what is usually meant by the one that does not say it.
std::string not_toml(std::string_view description) {
  const bool is_bare = description.ends_with("could not determine value type");
  return "is not TOML: " + std::string(description) + (is_bare ? "; texts must be in quotes" : "");
}

/// The value of a TOML node if its type is one of the setting types.
std::optional<value> from_toml(const toml::node& node, const value& like) {
  if (const auto* boolean = node.as_boolean()) return boolean->get();
  if (const auto* number = node.as_floating_point()) return number->get();
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* integer = node.as_integer()) {
    if (std::holds_alternative<double>(like)) return static_cast<double>(integer->get());
    return integer->get();
  }
  const auto* list = node.as_array();
  if (!list) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& entry : *list) {
    if (!entry.is_string()) return std::nullopt;
    texts.push_back(entry.as_string()->get());
  }
  return texts;
}

/// A value given outside a file. A list may be written with commas between its entries, or as in the file.
std::optional<value> value_of(std::string_view text, const value& like) {
  if (!std::holds_alternative<std::vector<std::string>>(like) || !text.starts_with('[')) return parse_value(text, like);
  const toml::parse_result parsed = toml::parse("list = " + std::string(text));
  const toml::node* const list = parsed ? parsed.table().get("list") : nullptr;
  return list && parsed.table().size() == 1 && list->is_array() ? from_toml(*list, like) : std::nullopt;
}

std::vector<std::string_view> known_paths() {
  std::vector<std::string_view> paths;
  for (const auto& k : keys()) paths.push_back(k.path);
  return paths;
}

std::vector<std::string_view> known_sections() {
  std::vector<std::string_view> sections;
  for (const auto& k : keys())
    if (sections.empty() || sections.back() != k.section()) sections.push_back(k.section());
  sections.push_back("models");
  return sections;
}

bool contains(const std::vector<std::string_view>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

class merger {
 public:
  loaded merge(const sources& from) && {
    if (!from.file.empty()) {
      merge_file(from.file);
      merge_files_beside(from.file);
    }
    merge_environment(from.environment);
    merge_flags(from.flags);
    unwrap_host();
    refuse_empty_secrets();
    refuse_empty_model();
    check_rules(out_);
    read_password();
    look_for_folder("model.states_dir", out_.settings.model.states_dir);
    look_for_folder("model.root", out_.settings.model.root);
    look_for_file_in_place("server.state_dir", out_.settings.server.state_dir);
    return std::move(out_);
  }

 private:
  void complain(fault_kind kind, origin where, std::string key, std::string message) {
    out_.faults.push_back({kind, std::move(where), std::move(key), std::move(message)});
  }

  void set(const key& k, const value& v, origin where) {
    if (auto wrong = k.objection(v)) return complain(fault_kind::bad_value, std::move(where), k.path, *wrong);
    k.set(out_.settings, v);
    out_.origins[k.path] = std::move(where);
  }

  void set_from_text(const key& k, std::string_view text, origin where) {
    const value like = k.standard();
    if (const auto v = value_of(text, like)) return set(k, *v, std::move(where));
    const std::string shown = k.secret ? "the value" : quoted_text(text);
    complain(fault_kind::bad_value, std::move(where), k.path, shown + " is not " + std::string(type_name(like)));
  }

  void unknown(origin where, const std::string& path, const std::vector<std::string_view>& known) {
    const auto near = nearest(path, known);
    complain(fault_kind::unknown_key, std::move(where), path,
             near.empty() ? "no such key" : "no such key; did you mean " + std::string(near) + "?");
  }

  /// A folder that cannot be read is a fault: its settings would have no effect.
  void merge_files_beside(const std::filesystem::path& file) {
    const auto folder = file.parent_path() / "conf.d";
    std::vector<std::filesystem::path> files;
    std::error_code failed;
    for (auto at = std::filesystem::directory_iterator(folder, failed);
         !failed && at != std::filesystem::directory_iterator(); at.increment(failed))
      if (at->path().extension() == ".toml") files.push_back(at->path());
    if (failed && failed != std::errc::no_such_file_or_directory)
      return complain(fault_kind::unreadable, {origin_kind::file, folder.string(), 0}, {},
                      "cannot be read: " + failed.message());
    std::sort(files.begin(), files.end());
    for (const auto& each : files) merge_file(each);
  }

  void merge_file(const std::filesystem::path& path) {
    const auto at = [&](const toml::source_region& region) {
      return origin{origin_kind::file, path.string(), static_cast<int>(region.begin.line)};
    };
    const auto [text, trouble, missing] = read_file(path);
    if (!trouble.empty())
      return complain(missing ? fault_kind::missing : fault_kind::unreadable, {origin_kind::file, path.string(), 0}, {},
                      trouble);
    const toml::parse_result parsed = toml::parse(text, path.string());
    if (!parsed)
      return complain(fault_kind::unreadable, at(parsed.error().source()), {}, not_toml(parsed.error().description()));

    const auto before = static_cast<std::ptrdiff_t>(out_.faults.size());
    for (const auto& [name, node] : parsed.table()) {
      const std::string section(name.str());
      if (!contains(known_sections(), section))
        unknown(at(node.source()), section, known_sections());
      else if (!node.is_table())
        complain(fault_kind::bad_value, at(node.source()), section, "must be a table");
      else if (section == "models")
        merge_models(*node.as_table(), at);
      else
        merge_section(section, *node.as_table(), keys(), known_paths(), at);
    }
    std::stable_sort(out_.faults.begin() + before, out_.faults.end(),
                     [](const fault& a, const fault& b) { return a.where.line < b.where.line; });
  }

  template <typename At>
  void merge_models(const toml::table& models, const At& at) {
    for (const auto& [name, node] : models) {
      const auto known = model_keys(name.str());
      std::vector<std::string_view> paths;
      paths.reserve(known.size());
      for (const auto& k : known) paths.push_back(k.path);
      const std::string section(known.front().section());
      if (const auto* table = node.as_table())
        merge_section(section, *table, known, paths, at);
      else
        complain(fault_kind::bad_value, at(node.source()), section, "must be a table");
    }
  }

  template <typename At>
  void merge_section(const std::string& section, const toml::table& table, std::span<const key> known,
                     const std::vector<std::string_view>& paths, const At& at) {
    for (const auto& [name, node] : table) {
      const std::string path = section + '.' + std::string(name.str());
      const auto k = std::find_if(known.begin(), known.end(), [&](const key& each) { return each.path == path; });
      if (k == known.end())
        unknown(at(node.source()), path, paths);
      else if (const auto v = from_toml(node, k->standard()))
        set(*k, *v, at(node.source()));
      else
        complain(fault_kind::bad_value, at(node.source()), path, "must be " + std::string(type_name(k->standard())));
    }
  }

  // A variable that names a section but no key of it is a fault; SKEIN_ variables of other programs are ignored.
  void merge_environment(const std::vector<std::pair<std::string, std::string>>& environment) {
    std::vector<std::string> names;
    for (const auto& k : keys()) names.push_back(k.environment_name());
    const std::vector<std::string_view> known(names.begin(), names.end());
    for (const auto& [name, text] : environment) {
      const origin where{origin_kind::environment, name, 0};
      const auto found = std::find(names.begin(), names.end(), name);
      if (found != names.end())
        set_from_text(keys()[static_cast<std::size_t>(found - names.begin())], text, where);
      else if (names_a_section(name))
        unknown(where, name, known);
    }
  }

  static bool names_a_section(const std::string& variable) {
    return std::any_of(keys().begin(), keys().end(), [&](const key& k) {
      const std::string name = k.environment_name();
      return variable.starts_with(name.substr(0, name.find('_', std::string_view("SKEIN_").size()) + 1));
    });
  }

  void merge_flags(const std::vector<assignment>& flags) {
    for (const auto& given : flags) {
      const origin where{origin_kind::flag, given.flag, 0};
      if (const auto k = find_key(given.key))
        set_from_text(*k, given.text, where);
      else
        unknown(where, given.key, known_paths());
    }
  }

  /// Accepts "[::1]", the form used in URLs, for ::1.
  void unwrap_host() {
    std::string& host = out_.settings.server.host;
    if (host.starts_with('[') && host.ends_with(']') && host.find(':') != std::string::npos)
      host = host.substr(1, host.size() - 2);
  }

  /// A flag or variable that names a secret and is empty, as `--password "$UNSET"` is, would open the server.
  void refuse_empty_secrets() {
    const auto& s = out_.settings.server;
    if (s.allow_unauthenticated) return;
    for (const auto& [key, text] : {std::pair<std::string, const std::string&>("server.password", s.password),
                                    {"server.password_file", s.password_file},
                                    {"server.keys_file", s.keys_file}}) {
      const auto given = out_.origins.find(key);
      if (!text.empty() || given == out_.origins.end() || given->second.kind == origin_kind::file) continue;
      complain(fault_kind::bad_value, given->second, key,
               "must not be empty; omit it for a server without this secret");
    }
  }

  /// A flag that names the model and is empty, as `--model "$UNSET"` is, would choose the demo model. --set may.
  void refuse_empty_model() {
    const auto given = out_.origins.find("model.path");
    if (!out_.settings.model.path.empty() || given == out_.origins.end()) return;
    const origin& where = given->second;
    if (where.kind == origin_kind::flag && where.name != "--set")
      complain(fault_kind::bad_value, where, "model.path", "must not be empty; omit it for the demo model");
  }

  void read_password() {
    auto& server = out_.settings.server;
    if (server.password_file.empty() || !server.password.empty()) return;
    const origin where = out_.origins["server.password_file"];
    auto [text, trouble, missing] = read_file(server.password_file);
    text.resize(std::min(text.size(), text.find_first_of("\r\n")));
    if (trouble.empty() && text.empty()) trouble = "starts with an empty line";
    if (!trouble.empty())
      complain(missing ? fault_kind::missing : fault_kind::bad_value, where, "server.password_file",
               server.password_file + " " + trouble);
    server.password = std::move(text);
    out_.origins["server.password"] = where;
  }

  /// Without this check a folder that is missing or cannot be read would be noticed only when a client names a file in
  /// it.
  void look_for_folder(const std::string& key, const std::string& path) {
    std::error_code failed;
    if (path.empty()) return;
    if (!std::filesystem::exists(path, failed) && !failed)
      return complain(fault_kind::missing, out_.origins[key], key, path + " does not exist");
    if (!failed && !std::filesystem::is_directory(path, failed))
      return complain(fault_kind::bad_value, out_.origins[key], key, path + " is not a folder");
    if (::access(path.c_str(), R_OK | X_OK) != 0)
      complain(fault_kind::bad_value, out_.origins[key], key, path + " cannot be read: " + std::strerror(errno));
  }

  /// For a folder that may be missing, since the server makes it.
  void look_for_file_in_place(const std::string& key, const std::string& path) {
    std::error_code failed;
    if (path.empty()) return;
    const auto found = std::filesystem::status(path, failed);
    if (failed == std::errc::not_a_directory)
      complain(fault_kind::bad_value, out_.origins[key], key, path + " is inside of a file");
    else if (std::filesystem::exists(found) && !std::filesystem::is_directory(found))
      complain(fault_kind::bad_value, out_.origins[key], key, path + " is not a folder");
  }

  loaded out_;
};

}  // namespace

std::string to_string(const origin& from) {
  if (from.kind == origin_kind::standard) return "default";
  return from.line > 0 ? from.name + ':' + std::to_string(from.line) : from.name;
}

std::string to_string(const fault& f) {
  std::string line;
  if (f.where.kind != origin_kind::standard) line += to_string(f.where) + ": ";
  if (!f.key.empty() && f.key != f.where.name) line += f.key + ": ";
  return line + f.message;
}

loaded load(const sources& from) { return merger().merge(from); }

}  // namespace skein::config
