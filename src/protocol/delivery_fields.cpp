#include <algorithm>
#include <limits>

#include "protocol/shared_fields.hpp"

namespace skein::protocol {

std::uint32_t read_chunk_size(const object_reader& body, std::uint32_t otherwise, const request_limits& limits) {
  using int64 = std::numeric_limits<std::int64_t>;
  const auto chunk = body.integer("chunk_size", int64::min(), int64::max()).value_or(otherwise);
  return static_cast<std::uint32_t>(std::clamp<std::int64_t>(chunk, 1, limits.max_tokens_max));
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
  for (const auto name : {"tools", "functions"})  // clients send [] for "none"
    if (const auto list = body.value(name); list && !list->is_empty_array()) body.refuse_unsupported(name);
  for (const auto name : {"tool_choice", "function_call"})
    if (const auto choice = body.value(name); choice && choice->text() != "none") body.refuse_unsupported(name);
  if (const auto format = body.object("response_format"))
    if (format->text("type").value_or("text") != "text") body.refuse_unsupported("response_format");
  if (const auto modalities = body.array("modalities"))
    for (const auto modality : modalities->elements())
      if (modality.text() != "text") body.refuse_unsupported("modalities");
  for (const auto name : {"audio", "prediction", "web_search_options", "guided_json", "guided_regex", "guided_choice",
                          "guided_grammar", "grammar", "json_schema", "bnf_schema"})
    if (body.value(name)) body.refuse_unsupported(name);
}

}  // namespace skein::protocol
