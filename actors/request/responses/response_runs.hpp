#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "actors/connection/http/http.hpp"
#include "actors/request/generation/generation_call.hpp"
#include "actors/request/responses/follower_output.hpp"
#include "actors/request/shared/response_table.hpp"

/// Running responses: their readers, and how others find them. A response with `background` runs on with any number of
/// readers, or none; other responses belong to the connection that asked for them.
namespace skein::request {

/// Runs work on an io thread; thread safe.
using poster = std::function<void(std::function<void()>)>;

/// The output of a running response: to the exchange that asked, and to its followers. Lives on the response's io
/// thread.
class run_output final : public connection::response_writer {
 public:
  explicit run_output(std::shared_ptr<connection::response_writer> first) : first_(std::move(first)) {}

  void respond(unsigned status, connection::header_list headers, std::string body) override;
  void begin_stream(unsigned status, connection::header_list headers) override;
  void write(std::string bytes) override;
  void end() override;
  void abort() override;
  void charge(byte_share share) override {
    if (first_) first_->charge(std::move(share));
  }
  [[nodiscard]] std::size_t queued_bytes() const override;

  /// A reader on some io thread that has everything written so far.
  struct follower {
    std::shared_ptr<follower_output> out;
    poster post;
    caller_ref who;                        ///< is cut off when its key is revoked
    std::stop_token gone;                  ///< its client has left
    std::optional<std::uint64_t> after{};  ///< skip events up to this number
  };
  void follow(follower reader) { followers_.push_back(std::move(reader)); }
  /// After those that have left are dropped.
  [[nodiscard]] std::size_t followers() {
    drop_lost();
    return followers_.size();
  }
  /// The exchange that asked is gone; output goes only to the followers.
  void drop_first() { first_.reset(); }
  [[nodiscard]] bool over() const { return over_; }
  std::function<void()> on_over;  ///< called from inside the call, after its last output

 private:
  void tell_followers(void (follower_output::*what)());
  void drop_lost();
  void finish();

  std::shared_ptr<connection::response_writer> first_;
  std::vector<follower> followers_;
  bool over_ = false;
};

struct response_run {
  std::shared_ptr<run_output> out;
  std::unique_ptr<generation_call> call;
  bool owned = true;        ///< by an exchange
  std::string id;           ///< in the table; empty: not in the table
  std::uint64_t entry = 0;  ///< its number there
};

/// The responses of one io thread.
class response_runs {
 public:
  response_runs(std::shared_ptr<const service_context> context, request_hub& hub, poster post)
      : context_(std::move(context)), hub_(hub), post_(std::move(post)) {}
  ~response_runs();

  /// A new response, as the call of its exchange.
  [[nodiscard]] std::unique_ptr<connection::http_call> start(call_origin origin,
                                                             std::shared_ptr<connection::response_writer> out);
  /// The same for an interrupted response, whose exchange has no body.
  [[nodiscard]] std::unique_ptr<connection::http_call> go_on(call_origin origin,
                                                             std::shared_ptr<connection::response_writer> out,
                                                             protocol::generation_request request);

 private:
  class exchange;
  [[nodiscard]] response_run* find(std::uint64_t number);
  void end_if_over(std::uint64_t number);

  std::shared_ptr<const service_context> context_;
  request_hub& hub_;
  poster post_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, response_run> runs_;
};

}  // namespace skein::request
