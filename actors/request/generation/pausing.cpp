#include "actors/request/generation/pausing.hpp"

#include <utility>

#include "protocol/server/control_request.hpp"

namespace skein::request {
namespace {

error not_paused() { return {error_kind::not_found, "Paused request not found", "request_id"}; }

}  // namespace

bool may_be_paused(const prepared_call& call, bool resumed, const config::pause_settings& limits) {
  return (call.request.chat || resumed) && call.rows_per_prompt() == 1 && !call.request.sampling.logprobs &&
         limits.requests_max > 0;
}

paused_request pause(const answer_state& answer, std::shared_ptr<const running_request> was,
                     const paused_request* resumed) {
  const prepared_call& call = answer.call();
  const std::vector<token_id>& sampled = answer.kept().sampled;
  paused_request paused;
  paused.was = std::move(was);
  paused.request = call.request;
  auto& params = paused.request.sampling;
  params.max_tokens -= static_cast<std::uint32_t>(answer.usage().completion_tokens);
  params.sampled_before += static_cast<std::uint32_t>(sampled.size());
  paused.tokens = call.prompts.front();
  paused.tokens.insert(paused.tokens.end(), sampled.begin(), sampled.end());
  if (resumed) paused.answered = resumed->answered;
  paused.answered.insert(paused.answered.end(), sampled.begin(), sampled.end());
  paused.form = call.form;
  return paused;
}

result<resumption> read_resumption(const std::string& text, const caller& who, const served_model& model,
                                   const service_context& context) {
  const auto& limits = context.settings.limits;
  const auto id = protocol::parse_control(text, limits);
  if (!id) return id.error();
  if (id->empty()) return error{error_kind::invalid_argument, "Missing request_id parameter", "request_id"};
  auto paused = context.requests->find(*id, who, context.time->now());
  if (!paused) return not_paused();
  protocol::generation_request request = paused->request;
  auto ok = protocol::read_resume(text, limits, request);
  if (ok && paused->model_identity != model.card.identity)
    ok = error{error_kind::conflict, "the paused request belongs to another model", "model"};
  if (!ok) return ok.error();
  request.stream = true;
  request.chat = false;  // its prompt is tokens, not messages
  request.seed_given = true;
  request.prompts.push_back({"", paused->tokens, true});
  return resumption{std::move(request), std::move(*paused)};
}

result<paused_request> take_paused(const paused_request& read, const service_context& context) {
  auto taken = context.requests->take(*read.was, context.time->now());
  if (!taken) return not_paused();  // it was resumed meanwhile
  return std::move(*taken);
}

}  // namespace skein::request
