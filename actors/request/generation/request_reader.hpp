#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "actors/request/call/call_work.hpp"
#include "actors/request/generation/call_origin.hpp"
#include "actors/request/generation/client_output.hpp"
#include "actors/request/generation/phase.hpp"
#include "actors/request/generation/session_turn.hpp"
#include "actors/request/shared/service_context.hpp"
#include "base/result.hpp"
#include "protocol/json/http_error.hpp"
#include "protocol/requests/body_head.hpp"

namespace skein::request {

/// How far a body has been read.
enum class read_phase : std::uint8_t {
  no_body,
  opening,  ///< its caller and its model are not known
  awaiting_model,
  parsing,
  read,
};

[[nodiscard]] constexpr bool may_follow(read_phase from, read_phase to) {
  using enum read_phase;
  switch (from) {
    case no_body: return to == opening || to == read;
    case opening: return to == awaiting_model || to == parsing;
    case awaiting_model: return to == awaiting_model || to == parsing;  // the model may leave again at once
    case parsing: return to == read;
    case read: return false;
  }
  return false;
}

/// A body as a request.
struct parsed_call {
  protocol::generation_request request;
  std::optional<session_turn> turn;
  std::optional<paused_request> resumed;
};

/// Turns the body of one call into a request: finds the caller and the model that the body names, waits for a model
/// that is being loaded, and parses. Long bodies are read on the worker pool. Afterwards call_origin is complete.
class request_reader {
 public:
  /// The call that it reads for. After refuse() the call is over, and calls the reader no more.
  class client {
   public:
    virtual ~client() = default;
    /// The caller and the model are known. False: the call has been refused.
    [[nodiscard]] virtual bool on_identified() = 0;
    virtual void on_read(parsed_call call) = 0;
    virtual void refuse(const error& why, std::chrono::seconds retry_after) = 0;
  };

  /// The references must outlive this.
  request_reader(call_origin origin, std::shared_ptr<const service_context> context, call_work& work,
                 client_output& output, client& call)
      : origin_(std::move(origin)), context_(std::move(context)), work_(work), output_(output), call_(call) {}

  [[nodiscard]] const call_origin& origin() const { return origin_; }
  /// A refusal in the form of the route and the body. Its text may be the dialect's own.
  [[nodiscard]] protocol::http_error refusal(const error& why, std::chrono::seconds retry_after) const;
  /// As http_call::body_bytes_max and error_body.
  [[nodiscard]] std::uint64_t body_bytes_max() const;
  [[nodiscard]] std::string error_body(unsigned status, std::string_view message) const;
  [[nodiscard]] bool has_body() const { return !phase_.is(read_phase::no_body); }

  /// The whole body, once.
  void read(std::string body);
  /// The call has its request without a body.
  void skip() { phase_.enter(read_phase::read); }
  /// Looks again for an awaited model. The supervisor ticks all calls after it publishes a model.
  void on_tick(steady_time now);

 private:
  /// A body and its head, which is read first.
  struct opened_body {
    std::shared_ptr<const std::string> text;
    protocol::body_head head;
  };
  /// A parsed body; the dialect also defines the form of refusals.
  struct read_body {
    const protocol::dialect* as;
    result<parsed_call> call;
    std::string refusal = {};               ///< see protocol::understood
    std::vector<std::string> ignored = {};  ///< likewise
  };

  void open(std::shared_ptr<const std::string> text);
  void log_in(result<opened_body> body);
  [[nodiscard]] loaded_models::meant meant() const;
  void find_model(std::shared_ptr<const std::string> text);
  void parse(std::shared_ptr<const std::string> text);
  [[nodiscard]] static read_body parsed(const std::string& text, const call_origin& origin,
                                        const service_context& context);
  void understood(result<read_body> body);
  void refuse(const error& why, std::chrono::seconds retry_after = std::chrono::seconds(1)) {
    call_.refuse(why, retry_after);
  }
  template <typename Result>
  void run(std::size_t bytes, std::function<Result()> work, void (request_reader::*next)(Result));

  call_origin origin_;
  const std::shared_ptr<const service_context> context_;
  call_work& work_;
  client_output& output_;
  client& call_;
  checked_phase<read_phase> phase_{read_phase::no_body};
  std::string wanted_;                         // the model that the body names
  std::shared_ptr<const std::string> unread_;  // the body that waits for it
  std::string refusal_;                        // in place of the usual body, if the dialect has its own
};

/// The refusal of long work if the worker pool is full.
[[nodiscard]] error too_much_long_work();

}  // namespace skein::request
