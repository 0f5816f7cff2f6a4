// Writes small good checkpoints into the folder given: what the checkpoint fuzzer starts from.
#include <filesystem>

#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/forms/form_writers.hpp"

int main(int argc, char** argv) {
  using namespace skein;
  using namespace skein::test;
  if (argc != 2) return 2;
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);

  const kernels::model_dims one_layer{1, 4, 1, 4, 8, 3, 1, 1, 1, 1};
  auto plan = rwkv7_plan(one_layer, dtype::bf16);
  write_file(folder / "one_layer.safetensors", safetensors_of(filled(plan)));
  write_file(folder / "one_layer.pth", pth_of(filled(plan)));
  const auto& forms = forms_of_7();
  for (std::size_t i = 0; i < forms.size(); ++i)
    write_file(folder / ("form_" + std::to_string(i) + ".safetensors"), safetensors_of(forms[i].write(filled(plan))));
  plan.push_back({"blocks.0.att.time_state", dtype::f32, {1, 4, 4}, {}});
  write_file(folder / "tuned.safetensors", safetensors_of(filled(plan)));

  using namespace pickled;
  const std::string shared = storage("HalfStorage", "0", 12);
  const std::string parameter = global("torch._utils", "_rebuild_parameter");
  const std::string items = text("a") + tensor(shared, 0, {2, 3}, {1, 2}) + "q\x01" + text("b") + "h\x01" + text("c") +
                            parameter + tuple({tensor(shared, 6, {6}, {1}), "\x88", ordered_dict()}) + "R";
  const std::string pickle = whole(ordered_dict() + "(" + items + "u" + dict(text("_metadata") + ordered_dict()) + "b");
  write_file(folder / "views.pth", pth_archive(pickle, {{"0", std::string(24, '\1')}}).zip64(true).file());
  return 0;
}
