#include "actors/request/models/load_tuned_state.hpp"

#include <utility>

#include "model/model_info.hpp"

namespace skein::request {
namespace {

result<std::vector<float>> read_file(const std::string& name, const served_model& model,
                                     const std::string& states_dir) {
  const auto path = path_below(states_dir, name);
  if (!path) return path.error();
  return model.load_state(*path);
}

}  // namespace

result<tuned_state> load_tuned_state(const protocol::load_state_request& wanted, const served_model& model,
                                     const std::string& states_dir) {
  tuned_state made{wanted.name, "", nullptr, wanted.temperature, wanted.top_p};
  for (std::size_t i = 0; i < wanted.files.size(); ++i) {
    auto values = read_file(wanted.files[i], model, states_dir);
    if (!values) {
      const std::string field = wanted.mixture ? "state_filenames[" + std::to_string(i) + "]" : "state_filename";
      return error{values.error().kind, field + " '" + wanted.files[i] + "': " + values.error().message, field};
    }
    if (!wanted.mixture) made.identity = model::state_identity(*values);
    auto shared = std::make_shared<const model::state_value>(model::state_of(model.state, *values));
    if (wanted.mixture)
      made.mixture.push_back({std::move(shared)});
    else
      made.values = std::move(shared);
  }
  if (!wanted.mixture) {
    made.file = wanted.files.front();
    return made;
  }
  if (wanted.with_original) made.mixture.emplace_back();
  if (auto ok = set_weights(made, wanted.weights, "state_gatingweight"); !ok) return ok.error();
  return made;
}

}  // namespace skein::request
