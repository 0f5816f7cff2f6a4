#include "actors/supervisor/models/open_states.hpp"

#include <string>
#include <utility>

#include "actors/request/models/load_tuned_state.hpp"
#include "base/log/log.hpp"

namespace skein::supervisor {
namespace {

/// One entry of model.tuned_states, NAME=FILE.
result<void> open_state(const config::config& c, const std::string& named, opened_engine& to) {
  if (!to.model.load_state) return error{error_kind::unsupported, "the model does not support tuned states", ""};
  if (to.states.size() >= c.model.tuned_states_max)
    return error{error_kind::overloaded, "there are more entries than model.tuned_states_max allows", ""};
  const auto sign = named.find('=');
  protocol::load_state_request wanted;
  wanted.name = named.substr(0, sign);
  wanted.files = {named.substr(sign + 1)};
  auto state = request::load_tuned_state(wanted, to.model, c.model.states_dir);
  if (!state) return state.error();
  to.states.push_back(std::move(*state));
  return {};
}

}  // namespace

result<void> open_states(const config::config& c, opened_engine& to) {
  for (const std::string& named : c.model.tuned_states)
    if (const auto ok = open_state(c, named, to); !ok)
      return error{ok.error().kind, "model.tuned_states: " + named + ": " + ok.error().message, "model.tuned_states"};
  return {};
}

void open_fitting_states(const config::config& c, opened_engine& to) {
  for (const std::string& named : c.model.tuned_states)
    if (const auto ok = open_state(c, named, to); !ok)
      log::info("a tuned state was skipped", {{"state", named}, {"why", ok.error().message}});
}

}  // namespace skein::supervisor
