#include "config/dump.hpp"

#include <span>

#include "config/keys.hpp"

namespace skein::config {
namespace {

void dump_key(const key& k, const loaded& merged, std::string& out) {
  const auto found = merged.origins.find(k.path);
  const std::string from = to_string(found == merged.origins.end() ? origin{} : found->second);
  const value v = k.get(merged.settings);
  if (k.secret && v != k.standard())
    out += "# " + std::string(k.name()) + ": set, not shown  # " + from + '\n';
  else
    out += std::string(k.name()) + " = " + to_toml(v) + "  # " + from + '\n';
}

void dump_keys(std::span<const key> keys_in_order, const loaded& merged, std::string& out) {
  std::string_view section;
  for (const auto& k : keys_in_order) {
    if (k.section() != section) {
      section = k.section();
      out += (out.empty() ? "[" : "\n[") + std::string(section) + "]\n";
    }
    dump_key(k, merged, out);
  }
}

}  // namespace

std::string dump(const loaded& merged) {
  std::string out;
  dump_keys(keys(), merged, out);
  for (const auto& [name, defaults] : merged.settings.models) dump_keys(model_keys(name), merged, out);
  return out;
}

}  // namespace skein::config
