#include "model/adapters/peft_config.hpp"

#include <simdjson.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "model/files/file_bytes.hpp"
#include "model/mapping/mapped_file.hpp"

namespace skein::model {
namespace {

constexpr std::size_t peft_config_bytes_max = 1u << 20;

/// Reads fields of the configuration. Keeps the first fault.
class field_reader {
 public:
  field_reader(const std::filesystem::path& path, simdjson::dom::object object) : path_(path), object_(object) {}

  /// Empty if it is absent or null.
  [[nodiscard]] std::string_view text(std::string_view name) {
    std::string_view value;
    const auto field = find(name);
    if (field && field->get(value) != simdjson::SUCCESS) fail(error_kind::bad_file, name, "is not a text");
    return value;
  }
  [[nodiscard]] bool flag(std::string_view name) {
    bool value = false;
    const auto field = find(name);
    if (field && field->get(value) != simdjson::SUCCESS) fail(error_kind::bad_file, name, "is not true or false");
    return value;
  }
  [[nodiscard]] std::optional<double> number(std::string_view name) {
    double value = 0;
    const auto field = find(name);
    if (!field) return std::nullopt;
    if (field->get(value) != simdjson::SUCCESS || !std::isfinite(value))
      fail(error_kind::bad_file, name, "is not a number");
    return value;
  }
  /// Whether it is an object or a list with at least one entry.
  [[nodiscard]] bool filled(std::string_view name) {
    const auto field = find(name);
    simdjson::dom::object object;
    simdjson::dom::array array;
    if (!field) return false;
    if (field->get(object) == simdjson::SUCCESS) return object.size() > 0;
    return field->get(array) == simdjson::SUCCESS && array.size() > 0;
  }
  /// The value of a field that is a text or a boolean; empty if it is absent.
  [[nodiscard]] std::string word(std::string_view name) {
    const auto field = find(name);
    bool value = false;
    if (field && field->get(value) == simdjson::SUCCESS) return value ? "true" : "false";
    return std::string(text(name));
  }
  void refuse(std::string_view name, const std::string& why) { fail(error_kind::unsupported, name, why); }
  [[nodiscard]] const std::optional<error>& fault() const { return fault_; }

 private:
  [[nodiscard]] std::optional<simdjson::dom::element> find(std::string_view name) const {
    simdjson::dom::element field;
    if (object_[name].get(field) != simdjson::SUCCESS || field.is_null()) return std::nullopt;
    return field;
  }
  void fail(error_kind kind, std::string_view name, const std::string& why) {
    if (!fault_) fault_ = error{kind, path_.string() + ": " + std::string(name) + " " + why, {}};
  }

  const std::filesystem::path& path_;
  simdjson::dom::object object_;
  std::optional<error> fault_;
};

void read_lora(field_reader& fields, peft_config& into) {
  into.root_of_rank = fields.flag("use_rslora");
  into.dora = fields.flag("use_dora");
  into.rank_varies = fields.filled("rank_pattern");
  const auto alpha = fields.number("lora_alpha"), rank = fields.number("r");
  if (!alpha) fields.refuse("lora_alpha", "is missing");
  if (rank && (*rank < 1 || *rank > 1e6 || *rank != std::floor(*rank))) fields.refuse("r", "is not a rank");
  into.alpha = alpha.value_or(0);
  into.rank = static_cast<std::int64_t>(rank.value_or(0));
  if (fields.filled("alpha_pattern")) fields.refuse("alpha_pattern", "is not supported");
  if (fields.flag("fan_in_fan_out")) fields.refuse("fan_in_fan_out", "is not supported");
  if (fields.filled("layer_replication")) fields.refuse("layer_replication", "is not supported");
  // The others changed the base model when the training began, which the adapter alone does not tell.
  const std::string start = fields.word("init_lora_weights");
  for (const std::string_view known : {"", "true", "false", "gaussian", "eva", "orthogonal"})
    if (start == known) return;
  fields.refuse("init_lora_weights",
                "is " + printable(start) + ": such an adapter fits a changed base model; convert it to LoRA with PEFT");
}

void read_miss(field_reader& fields, peft_config& into) {
  into.type = peft_config::method::miss;
  const std::string start = fields.word("init_weights");
  into.mini = start == "mini";
  if (start != "" && start != "true" && start != "false" && start != "bat" && start != "mini")
    fields.refuse("init_weights", "is " + printable(start) + "; accepted: true, false, \"bat\", \"mini\"");
}

}  // namespace

result<peft_config> read_peft_config(const std::filesystem::path& path) {
  const auto file = mapped_file::open(path);
  if (!file) return file.error();
  if (file->bytes().size() > peft_config_bytes_max)
    return error{error_kind::bad_file, path.string() + ": a configuration of more than 1 MiB is too long", {}};
  simdjson::dom::parser parser;
  simdjson::dom::object object;
  const simdjson::padded_string text(text_at(file->bytes(), 0, file->bytes().size()));
  if (const auto trouble = parser.parse(text).get(object); trouble != simdjson::SUCCESS)
    return error{error_kind::bad_file,
                 path.string() + ": is not a JSON object: " + std::string(simdjson::error_message(trouble)),
                 {}};
  field_reader fields(path, object);
  peft_config config;
  const std::string type(fields.text("peft_type"));
  if (type == "LORA")
    read_lora(fields, config);
  else if (type == "MISS" || type == "BONE")
    read_miss(fields, config);
  else
    fields.refuse("peft_type", "is " + printable(type) + "; accepted: LORA, MISS, BONE");
  if (fields.fault()) return *fields.fault();
  return config;
}

}  // namespace skein::model
