#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "actors/connection/http/http.hpp"
#include "actors/request/shared/request_metrics.hpp"
#include "base/clock.hpp"
#include "protocol/json/http_error.hpp"

namespace skein::request {

/// Facts of an exchange that are known at its start.
struct exchange_facts {
  std::string_view route;  ///< as in the table of routes, or "none"; outlives the server
  std::string method, path, request_name, key;
  protocol::error_style errors = protocol::error_style::openai;
  steady_time began{};
  bool quiet = false;  ///< log its line at level debug
};

/// A response_writer that forwards everything, counts the exchange by its status, and writes its line of the access log
/// at the end. A whole answer that does not fit into the memory budget becomes a refusal. Lives on its io thread.
class watched_response final : public connection::response_writer {
 public:
  watched_response(std::shared_ptr<connection::response_writer> out, exchange_facts facts, metrics_shard& counts,
                   std::atomic<std::uint32_t>* streams, const clock& time);
  ~watched_response() override;

  void respond(unsigned status, connection::header_list headers, std::string body) override;
  void begin_stream(unsigned status, connection::header_list headers) override;
  void write(std::string bytes) override { out_->write(std::move(bytes)); }
  void end() override { out_->end(); }
  void upgrade(connection::header_list headers) override;
  void send(std::string_view message) override { out_->send(message); }
  void close(std::uint16_t code, std::string_view reason) override { out_->close(code, reason); }
  void abort() override { out_->abort(); }
  void charge(byte_share share) override {
    share_ = share;
    out_->charge(std::move(share));
  }
  [[nodiscard]] byte_share::outcome reserve(std::size_t bytes) override { return out_->reserve(bytes); }
  [[nodiscard]] std::size_t queued_bytes() const override { return out_->queued_bytes(); }
  [[nodiscard]] bool is_full() const override { return out_->is_full(); }

  /// Sets the caller's key, once it is known.
  void set_key(const std::string& name) { facts_.key = name; }
  /// Logs its line at level debug.
  void be_quiet() { facts_.quiet = true; }
  /// Leaves the log line to the call, which knows more.
  void leave_line_to_call() { has_line_ = true; }

 private:
  void add_time(connection::header_list& headers) const;
  void refuse(const error& why, connection::header_list headers);

  const std::shared_ptr<connection::response_writer> out_;
  exchange_facts facts_;
  metrics_shard& counts_;
  std::atomic<std::uint32_t>* const streams_;  // number of current streams; null: not counted
  const clock& time_;
  byte_share share_;  // of the memory budget
  unsigned status_ = connection::client_gone;
  bool streams_now_ = false, has_line_ = false;
};

}  // namespace skein::request
