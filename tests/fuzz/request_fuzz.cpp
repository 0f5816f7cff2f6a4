// Any bytes as the body of every generating route: refused with a reason, or a request within the limits that can be
// put into a prompt.
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/chat/chat_template.hpp"
#include "protocol/requests/dialect.hpp"

namespace {

using namespace skein;
namespace dialects = protocol::dialects;

const protocol::dialect* const all[] = {
    &dialects::chat_or_batch, &dialects::chat,
    &dialects::text_or_chat,  &dialects::completions,
    &dialects::state,         &dialects::multi_state,
    &dialects::batch_v2,      &dialects::batch_v3,
    &dialects::big_batch,     &dialects::single_events,
    &dialects::fill_in,       &dialects::translate,
    &dialects::infer_chat,    &dialects::infer_completions,
    &dialects::ai_chat,       &dialects::ai_completions,
    &dialects::ai_choices,    &dialects::spoken_chat,
    &dialects::infill,        &dialects::responses,
};

void try_as(const protocol::dialect& spoken, std::string_view body) {
  protocol::request_limits limits;
  limits.tells_ignored = true;
  const auto [as, request, refusal, ignored] = protocol::read_request(body, spoken, {}, limits);
  check(as != nullptr, "a refusal has a style");
  for (const char c : protocol::ignored_fields_header(ignored)) check(c >= ' ' && c < 0x7f, "a header is printable");
  if (!request) return check(!request.error().message.empty(), "a refusal has a reason");
  check(request->writer != nullptr);
  check(request->n >= 1 && request->n <= limits.n_max);
  check(request->best_of >= request->n);
  check(request->prompts.size() * request->best_of <= limits.prompts_max);
  check(request->sampling.max_tokens <= limits.max_tokens_max);
  check(request->stop.size() <= limits.stops_max + 8, "the client's and the dialect's");
  if (request->chat && !request->messages.empty())
    (void)protocol::render_chat(request->messages, request->think, request->style);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const auto* dialect : all) try_as(*dialect, body);
  return 0;
}
