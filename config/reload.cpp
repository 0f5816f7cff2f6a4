#include "config/reload.hpp"

#include <algorithm>
#include <set>

#include "config/keys.hpp"

namespace skein::config {
namespace {

/// All settings of models are live; those of a model whose section was removed return to their defaults.
std::set<std::string> changed_models(const config& running, const config& fresh) {
  std::set<std::string> names, changed;
  for (const auto* c : {&running, &fresh})
    for (const auto& [name, defaults] : c->models) names.insert(name);
  for (const auto& name : names)
    for (const auto& k : model_keys(name))
      if (k.get(running) != k.get(fresh)) changed.insert("models." + name);
  return changed;
}

}  // namespace

reloaded take_live(const config& running, const config& fresh) {
  reloaded to{running, {}, {}};
  for (const auto& k : keys()) {
    if (k.get(running) == k.get(fresh)) continue;
    (k.live ? to.changed : to.need_restart).push_back(k.path);
    if (k.live) k.set(to.settings, k.get(fresh));
  }
  for (const auto& model : changed_models(running, fresh)) to.changed.push_back(model);
  to.settings.models = fresh.models;
  return to;
}

}  // namespace skein::config
