#include "actors/supervisor/models/load_settings.hpp"

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "app/data_files.hpp"
#include "model/strategy.hpp"

namespace skein::supervisor {
namespace {

using adapter_list = std::vector<std::string>;

/// The adapters that a client names, as in model.adapters; otherwise those that are configured.
result<adapter_list> adapters_of(const request::model_change& change, const model_catalogue& catalogue,
                                 adapter_list configured) {
  if (change.adapters.empty()) return configured;
  std::string scale;
  if (char digits[32]; change.adapter_scale)
    scale = ':' + std::string(digits, std::to_chars(digits, digits + sizeof digits, *change.adapter_scale).ptr);
  adapter_list named;
  for (const auto& adapter : change.adapters) {
    const auto path = catalogue.adapter(adapter);
    if (!path) return path.error();
    named.push_back(path->string() + scale);
  }
  return named;
}

}  // namespace

result<config::config> load_settings(const request::model_change& change, const model_catalogue& catalogue,
                                     const config::config& server) {
  const auto strategy = model::parse_strategy(change.strategy);
  if (!strategy) return strategy.error();
  const auto plain = model::buildable(*strategy);
  if (!plain) return plain.error();
  const auto chosen = change.by_id ? catalogue.by_id(change.file) : catalogue.by_path(change.file);
  if (!chosen) return chosen.error();

  config::config c = server;
  if (!plain->device.empty()) c.engine.device = plain->device;
  if (!plain->dtype.empty()) c.engine.dtype = plain->dtype;
  if (!plain->dtype.empty() || !plain->weight_format.empty()) c.engine.weight_format = plain->weight_format;
  c.model.path = chosen->path.string();
  auto adapters = adapters_of(change, catalogue, chosen->is_own ? server.model.adapters : adapter_list{});
  if (!adapters) return adapters.error();
  c.model.adapters = std::move(*adapters);
  c.model.name = change.name.empty() ? chosen->id : change.name;
  if (c.model.name != chosen->id) c.model.aliases.push_back(chosen->id);
  const auto own_words = chosen->path.parent_path() / (chosen->id + ".vocab.txt");
  if (!chosen->is_own && cli::is_file(own_words)) c.model.vocab = own_words.string();
  // A model with another name keeps the settings for the name of its file.
  auto preset = c.models.find(c.model.name);
  if (preset == c.models.end()) preset = c.models.find(chosen->id);
  if (preset != c.models.end()) c.models[c.model.name] = config::model_defaults(preset->second);
  return c;
}

}  // namespace skein::supervisor
