#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/request/call/plain_call.hpp"
#include "actors/request/generation/generation_call.hpp"
#include "actors/request/responses/follower_output.hpp"
#include "actors/request/responses/response_runs.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace skein::request {

/// A client's question about an existing response.
struct response_question {
  enum class task : std::uint8_t { tell, stream, cancel, go_on };
  task what = task::tell;
  std::string id;
  protocol::continuation how{};  ///< stream, go_on: after which event to start, and how much to add
};

/// From a path and a query. Errors: invalid_argument naming the field.
[[nodiscard]] result<response_question> response_question_of(response_question::task what, const std::string& id,
                                                             std::string_view query);

/// The reply of a running response, not written yet.
struct told_by_run {
  std::optional<answer_copy> known;             ///< none: the response is in the log, or will be soon
  std::optional<error> refusal = std::nullopt;  ///< instead of an answer
  bool followed = false;                        ///< the run sends the events after the known ones
  std::size_t copied_bytes = 0;
  byte_budget::lease memory = nullptr;  ///< of the copy and of what is written from it
};

/// The outcome of reading a response from the log.
struct told_response {
  std::string text;                                 ///< the JSON or the events to send
  std::optional<protocol::logged_response> parked;  ///< resume this one instead
  std::string model;                                ///< its model
  byte_budget::lease memory;                        ///< of the events, or of those that the resumed one begins with
};

/// GET /v1/responses/{id}, POST .../cancel and .../continue. A running response is copied on its own io thread; others
/// are read from the log. Long ones are written on the worker pool, because they would block the io thread. Asking for
/// the stream of an interrupted response resumes it (generation_call::begin); asking for the stream of one that another
/// connection reads takes it over.
class response_call final : public plain_call, public persistence_client {
 public:
  /// `origin`: for a response that is resumed; its model is chosen then.
  response_call(response_question question, plain_origin plain, call_origin origin,
                std::shared_ptr<const service_context> context, request_hub& hub, poster post, response_runs& runs,
                std::shared_ptr<connection::response_writer> out);
  ~response_call() override;

  void writable() override;
  void gone(std::string_view why, unsigned status) override;
  void on_reply(persistence::reply& r) override;

 private:
  void read(std::string body) override;
  void ask_run(const response_table::visitor& run);
  void ask_log();
  void tell(told_by_run told);
  void tell(persistence::shared_version version);
  void told(result<told_response> told);
  void stream(std::string events);
  void go_on(const protocol::logged_response& logged, std::string_view named);
  template <typename Work, typename Next>
  void write_text(std::size_t bytes, Work work, Next next);
  [[nodiscard]] bool streams() const { return question_.what == response_question::task::stream || goes_on(); }
  [[nodiscard]] bool goes_on() const { return question_.what == response_question::task::go_on; }

  response_question question_;
  call_origin origin_;
  request_hub& hub_;
  poster post_;
  response_runs& runs_;
  std::shared_ptr<connection::response_writer> out_;
  std::shared_ptr<follower_output> follower_;  // gets the events of a running response
  persistence::return_address ticket_;
  std::unique_ptr<connection::http_call> continued_;
  std::string began_with_;     // identity of the tuned state of the response's session; empty: none
  byte_budget::lease memory_;  // of earlier events
  std::shared_ptr<response_call*> self_ = std::make_shared<response_call*>(this);  // for late results
};

}  // namespace skein::request
