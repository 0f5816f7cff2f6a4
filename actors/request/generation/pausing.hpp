#pragma once
#include <memory>
#include <optional>
#include <string>

#include "actors/request/answer/answer_state.hpp"
#include "actors/request/shared/request_register.hpp"
#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"

/// Chat answers that are paused and resumed.
namespace skein::request {

/// Whether a call without a session can be paused: only single chat answers can. `resumed`: it resumes such an answer.
/// Turns of sessions are continued differently.
[[nodiscard]] bool may_be_paused(const prepared_call& call, bool resumed, const config::pause_settings& limits);

/// What is needed to resume an answer that ends here. `resumed`: the request that it resumed itself; null: none.
[[nodiscard]] paused_request pause(const answer_state& answer, std::shared_ptr<const running_request> was,
                                   const paused_request* resumed);

/// A request that resumes a paused one.
struct resumption {
  protocol::generation_request request;
  paused_request paused;
};
/// The request of a body that names a paused one: streamed like a chat, with the tokens as its prompt. The paused
/// request stays in the register, since the call may be over before it gets the result: this may run on any thread.
/// Errors: not_found; invalid_argument; conflict if it belongs to another model.
[[nodiscard]] result<resumption> read_resumption(const std::string& text, const caller& who, const served_model& model,
                                                 const service_context& context);

/// Takes the paused request that was read. Errors: not_found if it was resumed meanwhile.
[[nodiscard]] result<paused_request> take_paused(const paused_request& read, const service_context& context);

}  // namespace skein::request
