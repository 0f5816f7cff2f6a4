#include <cstdio>
#include <map>

#include "app/open_model.hpp"
#include "cli/commands.hpp"
#include "kernels/weights/weight_format.hpp"
#include "model/state_value.hpp"
#include "model/stored_formats.hpp"

namespace skein::cli {
namespace {

void line(const char* name, const std::string& value) { std::printf("%-12s %s\n", name, value.c_str()); }

std::string types_of(const model::checkpoint& file) {
  std::map<std::string, std::uint64_t> elements;
  for (const auto& tensor : file.tensors())
    elements[tensor.view.quantised() ? kernels::to_string(kernels::format_of(tensor.view.codes))
                                     : std::string(to_string(tensor.view.type))] +=
        static_cast<std::uint64_t>(tensor.view.elements());
  std::string text;
  for (const auto& [type, count] : elements)
    text += (text.empty() ? "" : ", ") + type + " (" + std::to_string(count) + " elements)";
  return text;
}

}  // namespace

result<void> inspect(const inspect_command& what) {
  const auto model = open_model(what.path, what.adapters);
  if (!model) return model.error();
  const auto& info = model->info;
  const auto number = [](auto n) { return std::to_string(n); };

  line("file", model->file.path().string());
  line("format", std::string(model->file.format()));
  line("form", model->file.form().empty() ? "original" : std::string(model->file.form()));
  for (const auto& note : model->file.notes()) line("changed", note);
  if (model->file.chat() != model::chat_form::none)
    line("chat", model->file.chat() == model::chat_form::names ? "turns by name (User: ...)"
                 : model->file.chat() == model::chat_form::headings
                     ? "turns by name, with tools below headings"
                     : "turns by name; the model's template is not used");
  line("file_bytes", number(model->file.file_bytes()));
  line("version", std::string(to_string(info.version)));
  line("layers", number(info.layers));
  line("embd", number(info.embd));
  line("att", number(info.att));
  line("ffn", number(info.ffn));
  line("heads", number(info.heads));
  line("head_size", number(info.head_size));
  line("vocab", number(info.vocab));
  if (info.version == model::rwkv_version::v7)
    line("ranks", "w " + number(info.rank_w) + ", a " + number(info.rank_a) + ", v " + number(info.rank_v) + ", g " +
                      number(info.rank_g));
  if (info.version == model::rwkv_version::v6)
    line("ranks", "shift " + number(info.rank_x) + ", decay " + number(info.rank_w));
  line("dtypes", types_of(model->file));
  if (const auto in_file = model::formats_in_file(model->file); !in_file.name.empty()) line("runs_as", in_file.name);
  line("parameters", number(info.parameters));
  line("state_bytes", number(model::state_format(info.state).bytes()));
  line("time_state", info.has_time_state ? "yes" : "no");

  // The identity covers the vocabulary, so it is unknown without one; the rest of the report is still valid.
  const auto vocabulary = open_vocabulary(what.vocab, *model);
  if (vocabulary) {
    line("vocabulary", (*vocabulary)->name());
    line("identity", model::identity(model->file, (*vocabulary)->hash()));
  } else if (what.vocab.empty()) {
    if (const auto foreign = model->file.foreign_vocabulary(); !foreign.empty())
      line("vocabulary", std::string(foreign) + ", which is not supported");
    line("identity", "unknown without a vocabulary; give --vocab");
  } else {
    return vocabulary.error();
  }
  return {};
}

}  // namespace skein::cli
