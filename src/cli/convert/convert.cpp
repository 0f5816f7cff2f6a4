#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "app/open_model.hpp"
#include "app/progress_bar.hpp"
#include "base/log/log.hpp"
#include "cli/commands.hpp"
#include "cli/convert/tensor_writer.hpp"
#include "cli/output/output_file.hpp"
#include "engine/stages/cpu_engine.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "kernels/weights/model_weights.hpp"
#include "kernels/weights/unmatched_patterns.hpp"
#include "kernels/weights/weight_plan.hpp"
#include "model/nonfinite.hpp"
#include "model/stored_formats.hpp"
#include "model/tensor_lookup.hpp"

namespace skein::cli {
namespace {

namespace fs = std::filesystem;

/// Tells matrices, whose format a plan chooses, from vectors.
struct tensor_kinds {
  struct vector {
    static constexpr bool is_matrix = false;
  };
  struct table {
    static constexpr bool is_matrix = true;
  };
  using matrix = table;
  using stack = table;
};

using format_list = std::map<std::string, kernels::weight_format, std::less<>>;

/// The format of each matrix by its name. With `keeps`, of those alone for which the plan has rules: embeddings and
/// low-rank factors keep their types.
template <template <typename> typename Layer>
format_list formats_of(const kernels::weights_of<kernels::checkpoint_views, Layer>& weights,
                       const kernels::weight_plan& plan, bool keeps) {
  format_list formats;
  const kernels::outer_weights_of<tensor_kinds> outer;
  const Layer<tensor_kinds> kinds;
  std::uint32_t layer = 0;
  bool outside = true;
  const auto add = [&](const kernels::tensor_spec& spec, const tensor_view& view, const auto& kind) {
    if (!view.data || !kind.is_matrix) return;
    if (keeps && (spec.transposed || spec.name == "emb.weight")) return;
    formats.emplace(outside ? std::string(spec.name) : model::block_name(layer, spec.name), plan.of(spec, layer));
  };
  kernels::outer_weights_of<kernels::checkpoint_views>::for_each_tensor(add, weights, outer);
  outside = false;
  for (; layer < weights.layers.size(); ++layer)
    Layer<kernels::checkpoint_views>::for_each_tensor(add, weights.layers[layer], kinds);
  return formats;
}

struct wished_formats {
  format_list formats;  ///< empty: all tensors stay as they are
  std::string dtype;    ///< of a plan with quantised formats, "auto": those of the tensors; else empty
  skein::dtype base = skein::dtype::f32;
};

result<wished_formats> formats_for(const convert_command& what, const opened_model& model) {
  const auto weights = model::bind(model.file, model.info);
  if (!weights) return weights.error();
  if (!model.file.dtype().empty())
    return error{error_kind::unsupported,
                 model.file.path().string() + ": is quantised already; convert the model from which it was made",
                 {}};
  auto kept = what.dtype == "auto" ? model::formats_kept(model.file) : model::stored_formats{};
  const bool keeps = !kept.name.empty();
  if (what.dtype == "auto" && what.weight_format.empty() && !keeps) return wished_formats{};
  const dtype stored = engine::stored_type(model.info);
  const std::string name = keeps ? "auto" : what.dtype == "auto" ? std::string(to_string(stored)) : what.dtype;
  const auto plan = keeps ? kernels::weight_plan::of_file(name, std::move(kept.rules), what.weight_format, stored)
                          : kernels::weight_plan::parse(name, what.weight_format, stored);
  if (!plan) return plan.error();
  if (const auto matched = kernels::refuse_unmatched_patterns(*weights, *plan); !matched) return matched.error();
  return wished_formats{std::visit([&](const auto& of) { return formats_of(of, *plan, keeps); }, *weights),
                        plan->quantised() ? name : "", plan->base()};
}

std::vector<conversion> conversions_of(const model::checkpoint& file, const format_list& formats) {
  std::vector<conversion> all;
  for (const auto& tensor : file.tensors()) {
    conversion& each = all.emplace_back(conversion{&tensor});
    const auto wished = formats.find(tensor.name);
    if (wished != formats.end() && wished->second != kernels::format_of(tensor.view.type)) each.to = wished->second;
  }
  return all;
}

/// What a reader needs to join what was changed (model/forms/converted_tensors.hpp); empty: nothing was.
safetensors_writer::metadata metadata_of(const convert_command& what, const wished_formats& wished,
                                         std::span<const conversion> all) {
  std::vector<const conversion*> changed;
  for (const auto& each : all)
    if (each.to || !each.from->digest.empty()) changed.push_back(&each);
  if (changed.empty()) return {};
  std::vector<std::string> digests(changed.size());
  kernels::cpu::thread_pool(0).run(changed.size(), [&](std::size_t i, std::uint32_t) {
    const auto& from = *changed[i]->from;
    digests[i] = from.digest.empty() ? model::tensor_digest(from.view) : from.digest;
  });
  safetensors_writer::metadata texts{
      {"skein.version", wished.dtype == "auto" || std::ranges::any_of(all, keeps_codes) ? "2" : "1"}};
  if (!wished.dtype.empty()) {
    texts.emplace_back("skein.dtype", wished.dtype);
    texts.emplace_back("skein.weight_format", what.weight_format);
  }
  for (std::size_t i = 0; i < changed.size(); ++i) {
    std::string sizes;
    for (const auto extent : changed[i]->from->view.shape) sizes += (sizes.empty() ? "" : "x") + std::to_string(extent);
    const auto to =
        changed[i]->to.value_or(kernels::format_of(changed[i]->from->view.type).value_or(kernels::weight_format{}));
    const kernels::weight_format plain{to.element, to.quantised() ? kernels::default_group : std::uint16_t{0}};
    texts.emplace_back(changed[i]->from->name, kernels::to_string(plain) + ' ' + std::to_string(to.group) + ' ' +
                                                   std::string(to_string(wished.base)) + ' ' + sizes + ' ' +
                                                   digests[i]);
  }
  return texts;
}

result<void> judge_output(const convert_command& what) {
  if (const auto usable = check_output(what.out, special_files::refuse); !usable) return usable.error();
  std::error_code none;
  if (what.force || !fs::exists(fs::symlink_status(what.out, none))) return {};
  return error{error_kind::conflict, what.out.string() + ": exists; --force replaces it", {}};
}

}  // namespace

result<void> convert(const convert_command& what) {
  if (auto free = judge_output(what); !free) return free.error();
  const auto model = open_model(what.path, what.adapters);
  if (!model) return model.error();
  const auto wished = formats_for(what, *model);
  if (!wished) return wished.error();
  if (!what.allow_nonfinite)
    if (const auto found = model::identify(model->file, "").nonfinite; !found.empty()) {
      if (const auto same = model->file.check_unchanged(); !same) return same.error();
      return model::nonfinite_tensor(model->file, found);
    }

  const auto all = conversions_of(model->file, wished->formats);
  auto texts = metadata_of(what, *wished, all);
  const auto chat = model->file.chat();
  if (chat == model::chat_form::unknown)
    log::warning("the model's chat template is left out: it is not one of RWKV models",
                 {{"file", model->file.path().string()}});
  else if (chat != model::chat_form::none)
    texts.emplace_back("skein.chat_template", to_string(chat));
  auto out = output_file::create(what.out, special_files::refuse);
  if (!out) return out.error();
  auto writer = safetensors_writer::create(out->path(), entries_of(all), texts);
  if (!writer) return writer.error();
  {
    progress_bar bar("converting");
    const auto written =
        write_tensors(all, *writer, [&](std::uint64_t done, std::uint64_t total) { bar.show(done, total); });
    if (const auto same = model->file.check_unchanged(); !same) return same.error();
    if (!written) return written.error();
  }
  if (auto written = writer->finish(); !written) return written.error();
  const auto made = open_model(out->path());  // shows that it can be read
  if (!made) return made.error();
  if (auto placed = out->commit(); !placed) return placed.error();
  std::printf("%s: %zu tensors, %llu bytes\n", what.out.c_str(), all.size(),
              static_cast<unsigned long long>(made->file.file_bytes()));
  return {};
}

}  // namespace skein::cli
