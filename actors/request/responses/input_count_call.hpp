#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "actors/request/call/plain_call.hpp"
#include "actors/request/responses/response_runs.hpp"
#include "actors/request/shared/request_hub.hpp"
#include "protocol/requests/dialect.hpp"

namespace skein::request {

/// POST /v1/responses/input_tokens: the number of tokens that a response would report as its input, with the opening of
/// its answer. For a response that continues something, the log is asked what it begins after. Long bodies are read and
/// tokenised on the worker pool.
class input_count_call final : public plain_call, public persistence_client {
 public:
  input_count_call(plain_origin origin, std::shared_ptr<const service_context> context, request_hub& hub, poster post,
                   std::shared_ptr<connection::response_writer> out);
  ~input_count_call() override;

  [[nodiscard]] std::uint64_t body_bytes_max() const override;
  void on_reply(persistence::reply& r) override;

 private:
  struct input {
    model_ref model;
    protocol::generation_request request;
    std::vector<std::string> ignored;
  };

  void read(std::string body) override;
  void understood(result<input> in);
  void ask(std::optional<persistence::version_id> version);
  void told(const persistence::session_description& found);
  void count(std::vector<persistence::shared_version> path);
  void tell(std::size_t tokens);
  template <typename Work, typename Next>
  void run(bool is_long, Work work, Next next);

  request_hub& hub_;
  poster post_;
  std::shared_ptr<connection::response_writer> out_;
  bool is_long_ = false;
  std::shared_ptr<const input> input_;
  byte_budget::lease memory_;  // of the body
  persistence::return_address ticket_;
  bool found_turn_ = false;  // the log was asked for the turn before already
  std::shared_ptr<input_count_call*> self_ = std::make_shared<input_count_call*>(this);  // for late results
};

}  // namespace skein::request
