#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "actors/request/answer/answer_state.hpp"
#include "actors/request/generation/answer_so_far.hpp"
#include "actors/request/generation/call_origin.hpp"
#include "actors/request/generation/session_part.hpp"
#include "actors/request/shared/request_register.hpp"
#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"

namespace skein::request {

/// The request of one call between the parser and the device: its initial state, the paused request that it resumes,
/// and the head of its answer. A plain class.
class call_request {
 public:
  /// The parsed request; once.
  void take(protocol::generation_request request, std::optional<paused_request> resumed);
  /// Null before take() and after preparation().
  [[nodiscard]] protocol::generation_request* get() { return request_ ? &*request_ : nullptr; }
  [[nodiscard]] const protocol::generation_request* get() const { return request_ ? &*request_ : nullptr; }

  /// Checks the requested model and chooses the initial state: the one that the request names, or that of the resumed
  /// request, which may have been removed since. The state's defaults apply to fields that the request omits.
  /// Errors: not_found; those of a mixture that does not fit the request.
  [[nodiscard]] result<void> choose_beginning(const loaded_model& model, const service_context& context);
  [[nodiscard]] const std::optional<tuned_state>& beginning() const { return beginning_; }
  [[nodiscard]] state_scope scope(const call_origin& origin) const;

  /// The head of the answer, which gets its id at the first call. `turn`: of the session; null: none.
  [[nodiscard]] const protocol::answer_head& head(const protocol::generation_request& request,
                                                  const call_origin& origin, const session_turn* turn);
  /// For responses. `answer`: null until there is one; `begun`: a prompt had a slot.
  [[nodiscard]] answer_so_far so_far(const answer_state* answer, bool begun) const;

  /// The text that a session's turn feeds, or the answer that it continues.
  void feed(protocol::fed_text text, const session_turn& turn);
  /// Whether preparation() takes too long for an io thread: a long text, or a grammar to compile.
  [[nodiscard]] bool takes_long(const loaded_model& model, const service_context& context) const;
  /// Work that prepares the request, on any thread; it takes the request.
  [[nodiscard]] std::function<result<prepared_call>()> preparation(std::shared_ptr<const service_context> context,
                                                                   model_ref model, std::stop_token gone);
  /// Completes what preparation() could not know. Returns the bytes that the call holds from here on.
  [[nodiscard]] std::size_t complete(prepared_call& call, const session_turn* turn,
                                     const config::pause_settings& limits) const;

  /// The request that this one resumes; null: none.
  [[nodiscard]] const paused_request* resumed() const { return resumed_ ? &*resumed_ : nullptr; }
  /// Puts an answer that ends here into the register, from where it can be resumed. `was`: the call's entry.
  void keep_paused(const answer_state& answer, std::shared_ptr<const running_request> was, const served_model& model,
                   const service_context& context) const;
  /// A resumed answer that does not finish goes back to the register, and can be resumed again.
  void give_back_resumed(const service_context& context);

 private:
  std::optional<protocol::generation_request> request_;
  std::shared_ptr<const protocol::answer_writer> writer_;  // of the request, which preparation() takes
  std::optional<paused_request> resumed_;
  std::optional<tuned_state> beginning_;
  std::optional<protocol::answer_head> head_;
};

}  // namespace skein::request
