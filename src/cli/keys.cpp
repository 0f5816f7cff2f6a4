#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string>
#include <utility>

#include "access/api_key.hpp"
#include "app/small_file.hpp"
#include "cli/commands.hpp"

namespace skein::cli {
namespace {

using access::api_key;

result<std::vector<api_key>> read_keys(const std::filesystem::path& file) {
  const auto text = read_small_file(file);
  if (!text) return text.error();
  return access::parse_keys(*text, file.string());
}

/// Appends the line in one write. A new file is accessible to its owner only.
result<void> append_line(const std::filesystem::path& file, std::string line) {
  const auto trouble = [&] {
    const auto kind = errno == EACCES || errno == EPERM || errno == EROFS ? error_kind::forbidden : error_kind::io;
    return error{kind, "cannot write to " + file.string() + ": " + std::strerror(errno), ""};
  };
  const int fd = ::open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0) return trouble();
  line.insert(0, "\n").append("\n");  // the last line may have no newline
  const auto written = ::write(fd, line.data(), line.size());
  const bool whole = written == static_cast<ssize_t>(line.size());
  if (!whole && written >= 0) errno = ENOSPC;
  result<void> outcome = whole ? result<void>() : trouble();
  if (::close(fd) != 0 && outcome) outcome = trouble();
  return outcome;
}

result<api_key> finished(const keys_command& what, const std::string& secret) {
  api_key key = what.key;
  for (const auto& name : {key.name, key.tenant.empty() ? key.name : key.tenant})
    if (const auto no = access::new_name_complaint(name); !no.empty())
      return error{error_kind::invalid_argument, "name: \"" + name + "\" " + std::string(no), "name"};
  if (key.tenant.empty()) key.tenant = key.name;
  key.hash = access::hash_of(secret);
  return key;
}

result<void> create(const keys_command& what) {
  const auto secret = access::new_secret();
  if (!secret) return secret.error();
  const auto key = finished(what, *secret);
  if (!key) return key.error();
  const std::string line = access::to_line(*key);
  if (!what.file.empty()) {
    if (std::filesystem::exists(what.file)) {
      const auto known = read_keys(what.file);
      if (!known) return known.error();
      for (const auto& each : *known)
        if (each.name == key->name)
          return error{error_kind::invalid_argument,
                       "name: " + what.file.string() + " already has a key named " + key->name, "name"};
    }
    if (auto ok = append_line(what.file, line); !ok) return ok;
  }
  std::printf("%s\n", secret->c_str());
  if (what.file.empty()) std::printf("%s\n", line.c_str());
  return {};
}

result<void> hash(const keys_command& what) {
  std::string secret;
  std::getline(std::cin, secret);
  if (secret.empty()) return error{error_kind::invalid_argument, "stdin contains no secret", ""};
  const auto key = finished(what, secret);
  if (!key) return key.error();
  std::printf("%s\n", access::to_line(*key).c_str());
  return {};
}

/// Leaves out the hashes.
result<void> list(const keys_command& what) {
  const auto keys = read_keys(what.file);
  if (!keys) return keys.error();
  for (const auto& key : *keys) {
    std::string line = access::to_line(key);
    line.erase(key.name.size(), 1 + 2 * key.hash.size());
    std::printf("%s\n", line.c_str());
  }
  return {};
}

}  // namespace

result<void> keys(const keys_command& what) {
  switch (what.what) {
    case keys_command::task::create: return create(what);
    case keys_command::task::hash: return hash(what);
    case keys_command::task::list: break;
  }
  return list(what);
}

}  // namespace skein::cli
