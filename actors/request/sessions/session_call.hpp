#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "actors/request/call/plain_call.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "base/result.hpp"

namespace skein::request {

/// Status, body and type of a response.
struct plain_answer {
  unsigned status = 200;
  std::string body;
  std::string_view type = "application/json";
};

/// A client's question about sessions, and how its answer is written.
struct session_question {
  /// Builds the message, about sessions of that tenant. Errors: invalid_argument naming the field.
  std::function<result<persistence::message_in>(std::string body, persistence::return_address reply,
                                                const tenant_id& whose)>
      ask;
  /// Writes the answer; a long one on the worker pool.
  std::function<result<plain_answer>(persistence::answer_body& answer)> tell;
  /// Replaces refusals by the route's own; may be empty.
  std::function<std::optional<plain_answer>(const error& why)> refuse{};
  bool takes_file = false;            ///< the body is a file of any length
  std::optional<tenant_id> tenant{};  ///< named by the client: its own, or any with the admin right
};

/// Asks the persistence actor one question and sends the client the answer.
class session_call final : public plain_call, public persistence_client {
 public:
  /// `post` runs work on this call's io thread; thread safe.
  session_call(plain_origin origin, session_question question, std::shared_ptr<const service_context> context,
               request_hub& hub, std::function<void(std::function<void()>)> post,
               std::shared_ptr<connection::response_writer> out);
  ~session_call() override;

  [[nodiscard]] std::uint64_t body_bytes_max() const override;
  void on_reply(persistence::reply& r) override;

 private:
  void read(std::string body) override;
  [[nodiscard]] result<tenant_id> whose() const;
  void tell(persistence::answer& a);
  void told(result<plain_answer> answer);

  session_question question_;
  request_hub& hub_;
  std::function<void(std::function<void()>)> post_;
  persistence::return_address ticket_;
  byte_budget::lease answer_memory_;                                             // until the answer itself is counted
  std::shared_ptr<session_call*> self_ = std::make_shared<session_call*>(this);  // for late results
};

}  // namespace skein::request
