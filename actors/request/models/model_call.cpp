#include "actors/request/models/model_call.hpp"

#include <string_view>
#include <utility>

#include "actors/request/call/awaited_model.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/server/model_request.hpp"

namespace skein::request {
namespace {

/// Renames the field in an error about the strategy to that of /loadmodel.
error in_words_of(model_call::form form, error why) {
  constexpr std::string_view there = "model_", field = "model_strategy";
  if (form == model_call::form::load_file || why.field != field) return why;
  if (why.message.starts_with(field)) why.message.erase(0, there.size());
  why.field.erase(0, there.size());
  return why;
}

}  // namespace

model_call::model_call(form what, plain_origin origin, std::shared_ptr<const service_context> context,
                       std::function<void(std::function<void()>)> post,
                       std::shared_ptr<connection::response_writer> out)
    : plain_call(std::move(origin), std::move(context), std::move(out)), form_(what), post_(std::move(post)) {}

void model_call::set_defaults(const std::string& body) {
  const auto newer = protocol::parse_defaults(body, context().settings.limits);
  if (!newer) return refuse(newer.error());
  const model_ref model = context().models->current();
  if (!model) return refuse(no_model(origin().errors));
  model->change_defaults(*newer);
  done(model->id());
}

void model_call::read(std::string body) {
  if (form_ == form::set_defaults) return set_defaults(body);
  auto change = parse(body);
  if (!change) return refuse(change.error());
  if (context().draining) return refuse({error_kind::unavailable, "the server is shutting down", ""});
  if (!context().change_model) return refuse({error_kind::unsupported, "this server's model cannot be changed", ""});
  context().change_model(std::move(*change),
                         [post = post_, self = std::weak_ptr(self_)](const result<std::string>& outcome) {
                           post([self, outcome] {
                             if (const auto call = self.lock()) (*call)->done(outcome);
                           });
                         });
}

result<model_change> model_call::parse(const std::string& body) const {
  const auto& limits = context().settings.limits;
  model_change change;
  if (form_ == form::remove) {
    auto asked = protocol::parse_remove_model(body, limits);
    if (!asked) return asked.error();
    change.what = model_change::task::unload;
    change.file = std::move(asked->model);
    change.force = asked->force;
    return change;
  }
  auto asked = form_ == form::load_file ? protocol::parse_load_model_file(body, limits)
               : form_ == form::load_id ? protocol::parse_load_model_id(body, limits)
                                        : protocol::parse_switch_model(body, limits);
  if (!asked) return asked.error();
  change.file = std::move(asked->file);
  change.by_id = form_ == form::load_id;
  change.name = std::move(asked->name);
  change.adapters = std::move(asked->adapters);
  change.adapter_scale = asked->adapter_scale;
  change.strategy = std::move(asked->strategy);
  change.defaults = std::move(asked->defaults);
  change.force = asked->force;
  return change;
}

void model_call::done(const result<std::string>& outcome) {
  guarded([&] {
    if (!outcome) return refuse(in_words_of(form_, outcome.error()));
    if (form_ == form::load_file || form_ == form::remove) return answer(200, R"({"status":"success"})");
    if (form_ != form::load_id) return answer(200, R"("success")");
    std::string body;
    protocol::json_writer(body)
        .begin_object()
        .key("object")
        .value("model")
        .key("id")
        .value(*outcome)
        .key("loaded")
        .value(true)
        .end_object();
    answer(200, std::move(body));
  });
}

}  // namespace skein::request
