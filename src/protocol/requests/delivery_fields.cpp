#include <algorithm>
#include <limits>
#include <utility>

#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {
namespace {

/// Whether a value means "not requested": "", [] or false; null counts as absent anyway.
bool asks_for_nothing(json_value value) {
  return value.is_empty_array() || value.text() == "" || value.boolean() == false;
}

bool asks_for(const object_reader& body, std::string_view name) {
  const auto value = body.value(name);
  return value && !asks_for_nothing(*value);
}

/// Accepts tools, under their newer and older names, only if the request says that none may be called.
void refuse_tools(const object_reader& body, std::string_view list, std::string_view choice) {
  const auto chosen = body.value(choice);
  const auto how = chosen ? chosen->text() : std::nullopt;
  if (asks_for(body, list) && how != "none") body.refuse_unsupported(list);
  if (asks_for(body, choice) && how != "none" && how != "auto") body.refuse_unsupported(choice);
}

}  // namespace

std::uint32_t read_chunk_size(const object_reader& body, std::uint32_t otherwise, const request_limits& limits) {
  using int64 = std::numeric_limits<std::int64_t>;
  const auto chunk = body.integer("chunk_size", int64::min(), int64::max()).value_or(otherwise);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(chunk, 1, limits.max_tokens_max));
}

void add_prompt(prompt_input prompt, const request_limits& limits, generation_request& out) {
  if (has_all_prompts(out, limits))
    ++out.prompts_left_out;
  else
    out.prompts.push_back(std::move(prompt));
}

void read_delivery(const object_reader& body, const reading& by, generation_request& out) {
  out.model = body.text("model").value_or("");
  if (out.model.empty() && by.as.lenient) out.model = "rwkv7";
  out.user = body.text("user").value_or("");
  out.force_reasoning = body.boolean("force_reasoning").value_or(false);
  out.queue_events = body.boolean("queue_events").value_or(false);

  out.stream = body.boolean("stream").value_or(by.as.streams);
  if (const auto options = body.object("stream_options"))
    out.include_usage = options->boolean("include_usage").value_or(false);
  out.temperature_named = body.value("temperature").has_value();
  out.top_p_named = body.value("top_p").has_value();
  out.chunk_size = read_chunk_size(body, by.as.chunk_size, by.limits);
  out.n = static_cast<std::uint32_t>(body.integer("n", 1, by.limits.n_max).value_or(1));
  out.best_of = out.n;

  if (const auto seed = body.bits("seed")) {
    out.sampling.seed = *seed;
    out.seed_given = true;
  }
}

void refuse_unsupported_fields(const object_reader& body) {
  if (const auto modalities = body.array("modalities"))
    for (const auto modality : modalities->elements())
      if (modality.text() != "text") body.refuse_unsupported("modalities");
  for (const auto name : {"audio", "prediction", "web_search_options"})
    if (asks_for(body, name)) body.refuse_unsupported(name);
}

void refuse_tool_use(const object_reader& body) {
  refuse_tools(body, "tools", "tool_choice");
  refuse_functions(body);
}

void refuse_functions(const object_reader& body) { refuse_tools(body, "functions", "function_call"); }

}  // namespace skein::protocol
