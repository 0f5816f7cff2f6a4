// Any bytes as the settings of a stored response, which a session file may bring in: refused with a reason, or a
// response whose events are numbered in order, and a request within the limits.
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/requests/request_digest.hpp"
#include "protocol/responses_api/response_writer.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace {

using namespace skein;
using namespace skein::protocol;

logged_response turn_with(std::string_view settings, bool unfinished) {
  logged_response turn;
  turn.id = "resp_0123456789abcdef0123456789abcdef0123456789abcdef";
  turn.settings = settings;
  turn.reasoning = "abcd";
  turn.answer = "EFG\n```json\n{\"name\":\"add\",\"arguments\":{\"a\":1}}\n```";
  turn.finish_reason = "length";
  turn.stop_reason = unfinished ? "drain" : "";
  turn.unfinished = unfinished;
  turn.tokens_sampled = 4;
  return turn;
}

void try_to_continue(std::string_view settings, bool unfinished) {
  const request_limits limits;
  const continuation how{{}, true, 7};
  const auto request = go_on_with(turn_with(settings, unfinished), {}, limits, how);
  if (!request) return check(!request.error().message.empty(), "a refusal has a reason");
  const auto& sampling = request->sampling;
  check(sampling.max_tokens <= limits.max_tokens_max);
  check(sampling.stop_ids.size() <= limits.stop_ids_max);
  check(sampling.logit_bias.size() <= limits.logit_bias_max);
  for (const auto& entry : sampling.logit_bias) check(entry.token >= 0 && std::abs(entry.bias) <= 100);
  check(sampling.temperature >= 0 && sampling.temperature <= 1000);
  check(sampling.penalty_decay >= 0 && sampling.penalty_decay <= 1);
  (void)request->writer->begin_event({turn_with("", true).id, "m", "", 1, false}, 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view settings(reinterpret_cast<const char*>(data), size);
  (void)hidden_tokens(settings);
  (void)request_digest(settings);
  (void)request_digest_in(settings);
  (void)reported_usage_in(settings);
  try_to_continue(settings, true);
  try_to_continue(settings, false);
  const auto known = read_logged(turn_with(settings, false));
  if (!known) {
    check(!known.error().message.empty(), "a refusal has a reason");
    return 0;
  }
  const std::string all = response_events(*known, std::nullopt, nullptr);
  const std::string rest = response_events(*known, 3, nullptr);
  check(all.ends_with(rest), "later events depend on the number after which they begin");
  return 0;
}
