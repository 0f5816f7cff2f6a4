#include "actors/supervisor/open_states.hpp"

#include <string>
#include <utility>

#include "actors/request/load_tuned_state.hpp"

namespace skein::supervisor {

result<request::tuned_states::list> open_states(const config::config& c, const request::served_model& model) {
  request::tuned_states all;
  for (const std::string& named : c.model.tuned_states) {
    const auto sign = named.find('=');
    const auto load = [&]() -> result<void> {
      if (!model.load_state) return error{error_kind::unsupported, "this model takes no tuned states", ""};
      protocol::load_state_request wanted;
      wanted.name = named.substr(0, sign);
      wanted.files = {named.substr(sign + 1)};
      auto state = request::load_tuned_state(wanted, model, c.model.states_dir);
      if (!state) return state.error();
      return all.put(std::move(*state), c.model.tuned_states_max);
    };
    if (const auto ok = load(); !ok)
      return error{ok.error().kind, "model.tuned_states: " + named + ": " + ok.error().message, "model.tuned_states"};
  }
  return *all.all();
}

}  // namespace skein::supervisor
