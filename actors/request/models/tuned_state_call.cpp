#include "actors/request/models/tuned_state_call.hpp"

#include <utility>

#include "actors/request/call/awaited_model.hpp"
#include "actors/request/call/long_work.hpp"
#include "actors/request/models/load_tuned_state.hpp"

namespace skein::request {

tuned_state_call::tuned_state_call(task what, plain_origin origin, std::shared_ptr<const service_context> context,
                                   std::function<void(std::function<void()>)> post,
                                   std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)), task_(what), post_(std::move(post)) {}

void tuned_state_call::read(std::string body) {
  auto model = model_at_hand(context(), *origin().who, named_in(body, context()), origin().errors);
  if (!model) return refuse(model.error());
  model_ = std::move(*model);
  if (!model_->served.load_state)
    return refuse({error_kind::unsupported, "this model does not support tuned states", ""});
  const auto& limits = context().settings.limits;
  switch (task_) {
    case task::load: return load(protocol::parse_load_state(body, limits));
    case task::load_mixture: return load(protocol::parse_load_mixture(body, limits));
    case task::set_weights: return set_weights(protocol::parse_set_weights(body, limits));
    case task::remove: return remove(protocol::parse_remove_state(body, limits));
  }
}

void tuned_state_call::load(const result<protocol::load_state_request>& asked) {
  if (!asked) return refuse(asked.error());
  auto work = [context = shared_context(), model = model_, asked = *asked]() -> result<void> {
    auto state = load_tuned_state(asked, model->served, context->settings.model.states_dir);
    if (!state) return state.error();
    return model->tuned.put(std::move(*state), context->settings.model.tuned_states_max);
  };
  auto back = [self = std::weak_ptr(self_)](const result<void>& outcome) {
    if (const auto call = self.lock()) (*call)->done(outcome);
  };
  if (!run_long(context(), {post_, origin().request_name, over(), origin().share}, std::move(work), std::move(back)))
    refuse({error_kind::overloaded, "too many long requests are being processed; try again soon", ""});
}

/// The state's name may also be the one in /models.
void tuned_state_call::set_weights(const result<protocol::load_state_request>& asked) {
  if (!asked) return refuse(asked.error());
  const auto chosen = choose_model(model_->served.names, *model_->tuned.all(), asked->name, "");
  const std::string name = chosen && chosen->state ? chosen->state->name : asked->name;
  done(model_->tuned.change(name, [&](tuned_state& state) {
    if (asked->temperature) state.temperature = asked->temperature;
    if (asked->top_p) state.top_p = asked->top_p;
    return request::set_weights(state, asked->weights, "state_gatingweight");
  }));
}

void tuned_state_call::remove(const result<std::string>& name) {
  if (!name) return refuse(name.error());
  if (name->empty())
    model_->tuned.clear();
  else if (!model_->tuned.remove(*name))
    return refuse({error_kind::not_found, "there is no tuned state '" + *name + "'", "state_viewname"});
  done({});
}

void tuned_state_call::done(const result<void>& outcome) {
  guarded([&] {
    if (!outcome) return refuse(outcome.error());
    answer(200, R"({"status":"success"})");
  });
}

}  // namespace skein::request
