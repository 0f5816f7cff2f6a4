#include "protocol/server/control_request.hpp"

#include <utility>

#include "protocol/requests/object_reader.hpp"
#include "protocol/requests/shared_fields.hpp"

namespace skein::protocol {

result<std::string> parse_control(std::string_view text, const request_limits& limits) {
  const bool empty = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return read_body(empty ? "{}" : text, limits, [](const object_reader& body) {
    return std::string(body.text("request_id").value_or(body.text("session_id").value_or("")));
  });
}

result<void> read_resume(std::string_view text, const request_limits& limits, generation_request& request) {
  const auto read = read_body(text, limits, [&](const object_reader& body) {
    sampling::sampling_params& params = request.sampling;
    const sampling::sampling_params was = params;
    const bool classic = was.filters_first;
    sampling_rules rules{.temperature = was.temperature,
                         .top_p = was.top_p,
                         .top_k = was.top_k,
                         .alpha_presence = classic ? was.lasting_penalty : was.first_penalty,
                         .alpha_frequency = was.repeat_penalty,
                         .alpha_decay = was.penalty_decay,
                         .max_tokens = was.max_tokens,
                         .stands_alone = true};
    rules.classic = classic;
    if (body.value("logit_bias")) params.logit_bias.clear();
    read_sampling(body, rules, limits, params);
    if (!body.value("min_p")) params.min_p = was.min_p;
    request.chunk_size = read_chunk_size(body, request.chunk_size, limits);
    generation_request other;
    read_constraint(body, other);
    if (other.constraint)
      body.fault().report(error_kind::unsupported, other.constraint->field,
                          other.constraint->field + " cannot be changed when a request is resumed");
    return true;
  });
  if (!read) return read.error();
  return {};
}

}  // namespace skein::protocol
