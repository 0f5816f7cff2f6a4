#include "protocol/server/model_request.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <limits>

#include "protocol/requests/lenient_fields.hpp"
#include "protocol/requests/object_reader.hpp"

namespace skein::protocol {
namespace {

constexpr std::size_t model_name_bytes_max = 256;

constexpr double adapter_scale_max = 10'000;
constexpr std::size_t adapters_max = 16;

std::vector<std::string> read_adapter_files(const object_reader& body) {
  constexpr std::string_view name = "adapter_filename";
  const auto value = body.value(name);
  if (!value || !value->is(json_kind::array)) {
    const auto file = body.text(name).value_or("");
    return file.empty() ? std::vector<std::string>() : std::vector{std::string(file)};
  }
  std::vector<std::string> files;
  for (const auto each : value->elements()) {
    const auto file = each.text().value_or("");
    if (file.empty() || files.size() == adapters_max) {
      body.refuse(name, "must be a file, or a list of at most " + std::to_string(adapters_max) + " files");
      return {};
    }
    files.emplace_back(file);
  }
  return files;
}

/// Clients of RWKV-Infer send a scaling of 2.0 with every adapter; as there, it counts for LoRA and DoRA only.
void read_adapter(const object_reader& body, load_model_request& into) {
  const auto mode = body.text("adapter_mode").value_or("");
  const auto scale = lenient_number(body, "adapter_scaling", -adapter_scale_max, adapter_scale_max);
  into.adapters = read_adapter_files(body);
  constexpr std::string_view scaled[] = {"", "lora", "dora"}, others[] = {"pissa", "bone", "bat", "disha", "miss"};
  const bool is_scaled = std::ranges::find(scaled, mode) != std::end(scaled);
  if (!is_scaled && std::ranges::find(others, mode) == std::end(others))
    body.refuse("adapter_mode", "must be lora, dora, pissa, bone, bat, disha or miss");
  if (!mode.empty() && into.adapters.empty()) body.refuse("adapter_mode", "needs adapter_filename");
  if (is_scaled && scale) into.adapter_scale = *scale;
}

void refuse_templates(const object_reader& body) {
  const auto form = body.text("template").value_or("");
  if (!form.empty() && form != "world") body.refuse("template", "must be world");
}

load_model_request read_common(const object_reader& body, std::string_view file, std::string_view strategy) {
  load_model_request request;
  request.file = required_text(body, file);
  request.strategy = body.text(strategy).value_or("");
  request.force = lenient_flag(body, "force").value_or(false);
  return request;
}

}  // namespace

result<load_model_request> parse_load_model_file(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [](const object_reader& body) {
    auto request = read_common(body, "model_filename", "model_strategy");
    request.name = body.text("model_viewname").value_or("");
    if (request.name.size() > model_name_bytes_max)
      body.refuse("model_viewname", "must have at most " + std::to_string(model_name_bytes_max) + " bytes");
    request.defaults.temperature = lenient_number(body, "default_temperature", 0, 1000);
    request.defaults.top_p = lenient_number(body, "default_top_p", 0, 1);
    if (const auto end = body.text("endtoken")) request.defaults.end_text = without_escapes(*end);
    read_adapter(body, request);
    refuse_templates(body);
    return request;
  });
}

result<load_model_request> parse_load_model_id(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits,
                   [](const object_reader& body) { return read_common(body, "model", "strategy"); });
}

result<load_model_request> parse_switch_model(std::string_view text, const request_limits& limits) {
  return parse_load_model_id(text, limits);
}

result<remove_model_request> parse_remove_model(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [](const object_reader& body) {
    const auto name = body.text("model").value_or(body.text("model_viewname").value_or(""));
    return remove_model_request{std::string(name), lenient_flag(body, "force").value_or(false)};
  });
}

result<client_defaults> parse_defaults(std::string_view text, const request_limits& limits) {
  return read_body(or_empty_object(text), limits, [&](const object_reader& body) {
    const auto loose = body.loosely("");
    client_defaults made;
    made.temperature = lenient_number(body, "temperature", 0, 1000);
    made.top_p = lenient_number(body, "top_p", 0, 1);
    made.presence = lenient_number(body, "presence_penalty", -2, 2);
    made.frequency = lenient_number(body, "frequency_penalty", -2, 2);
    made.decay = lenient_number(body, "penalty_decay", 0, 1);
    if (made.decay == 0.0f) body.refuse("penalty_decay", "must be above 0 and at most 1");
    if (const auto count = loose.integer("top_k", 0, std::numeric_limits<std::int32_t>::max()))
      made.top_k = static_cast<std::int32_t>(*count);
    if (const auto count = loose.integer("max_tokens", 0, std::numeric_limits<std::uint32_t>::max()))
      made.max_tokens = std::min(static_cast<std::uint32_t>(*count), limits.max_tokens_max);
    made.penalises_prompt = loose.boolean("global_penalty");
    if (const auto state = body.text("state"); state && !state->empty())
      body.refuse("state", "cannot be set as a default; set state or model in each request");
    return made;
  });
}

std::string without_escapes(std::string_view text) {
  constexpr std::string_view names = "ntr0\\", meanings("\n\t\r\0\\", 5);
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\' || i + 1 == text.size()) {
      out += text[i];
      continue;
    }
    unsigned byte = 0;
    const auto which = names.find(text[i + 1]);
    if (which != std::string_view::npos) {
      out += meanings[which];
      ++i;
    } else if (const char* digits = text.data() + i + 2;
               text[i + 1] == 'x' && i + 3 < text.size() &&
               std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace skein::protocol
