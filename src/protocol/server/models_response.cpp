#include "protocol/server/models_response.hpp"

#include "protocol/json/json_writer.hpp"

namespace skein::protocol {
namespace {

void write_model(json_writer& out, const model_card& model) {
  out.begin_object().key("id").value(model.id).key("object").value("model");
  out.key("created").value(model.created).key("owned_by").value("skein");
  out.key("root").value(model.parent.empty() ? model.id : model.parent).key("parent");
  model.parent.empty() ? out.null() : out.value(model.parent);
  out.key("status").value(model.status);
  out.key("rwkv").begin_object();
  out.key("version").value(model.version).key("device").value(model.device);
  out.key("weight_type").value(model.weight_type);
  out.key("strategy").value(model.device + ' ' + model.weight_type).key("identity").value(model.identity);
  out.key("layers").value(model.layers).key("embd").value(model.embd).key("vocab").value(model.vocab);
  out.key("parameters").value(model.parameters).key("state_bytes").value(model.state_bytes);
  if (!model.initial_state.empty()) out.key("initial_state").value(model.initial_state);
  out.end_object().end_object();
}

}  // namespace

std::string models_list(std::span<const model_card> models, std::string_view loaded,
                        std::span<const std::string> available) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("list").key("data").begin_array();
  for (const auto& model : models) write_model(out, model);
  out.end_array().key("loaded");
  loaded.empty() ? out.null() : out.value(loaded);
  out.key("available").begin_array();
  for (const auto& id : available) out.value(id);
  out.end_array().end_object();
  return json;
}

std::string models_array(std::span<const model_card> models) {
  std::string json;
  json_writer out(json);
  out.begin_array();
  for (const auto& model : models)
    out.begin_object().key("object").value("models").key("id").value(model.id).end_object();
  out.end_array();
  return json;
}

std::string model_body(const model_card& model) {
  std::string json;
  json_writer out(json);
  write_model(out, model);
  return json;
}

}  // namespace skein::protocol
