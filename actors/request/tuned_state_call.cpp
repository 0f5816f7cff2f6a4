#include "actors/request/tuned_state_call.hpp"

#include <utility>
#include <vector>

#include "actors/request/long_work.hpp"
#include "model/model_info.hpp"
#include "protocol/session_request.hpp"

namespace skein::request {

tuned_state_call::tuned_state_call(task what, plain_origin origin, std::shared_ptr<const service_context> context,
                                   std::function<void(std::function<void()>)> post,
                                   std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)),
      task_(what),
      model_(this->context().models->current()),
      post_(std::move(post)) {}

void tuned_state_call::read(std::string body) {
  if (!model_) return refuse({error_kind::unavailable, "no model is loaded", ""});
  if (!model_->served.load_state)
    return refuse({error_kind::unsupported, "this server's model takes no tuned states", ""});
  task_ == task::load ? load(body) : remove(body);
}

void tuned_state_call::load(const std::string& body) {
  const auto request = protocol::parse_load_state(body, context().settings.limits);
  if (!request) return refuse(request.error());
  const auto path = path_below(context().settings.states_dir, request->file);
  if (!path) return refuse(path.error());
  auto work = [context = shared_context(), model = model_, asked = *request, path = *path]() -> result<void> {
    auto values = model->served.load_state(path);
    if (!values) {
      error why = values.error();
      why.field = "state_filename";
      return why;
    }
    tuned_state state{asked.name, model::state_identity(*values), nullptr, asked.temperature, asked.top_p};
    state.values = std::make_shared<const std::vector<float>>(std::move(*values));
    return model->tuned.put(std::move(state), context->settings.tuned_states_max);
  };
  auto back = [self = std::weak_ptr(self_)](const result<void>& outcome) {
    if (const auto call = self.lock()) (*call)->done(outcome);
  };
  if (!run_long(context(), {post_, origin().request_name, over()}, std::move(work), std::move(back)))
    refuse({error_kind::overloaded, "too many long requests are being read; try again soon", ""});
}

void tuned_state_call::remove(const std::string& body) {
  const auto name = protocol::parse_remove_state(body, context().settings.limits);
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
