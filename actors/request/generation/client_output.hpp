#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "actors/connection/http/http.hpp"
#include "base/clock.hpp"

namespace skein::request {

/// The response of one call: a whole one or a stream, which begins with its first event.
class client_output {
 public:
  /// `headers` are those of every response of the exchange.
  client_output(std::shared_ptr<connection::response_writer> out, connection::header_list headers, const clock* time)
      : out_(std::move(out)), headers_(std::move(headers)), time_(time) {}

  [[nodiscard]] const connection::header_list& headers() const { return headers_; }
  void add_header(std::string name, std::string value) { headers_.emplace_back(std::move(name), std::move(value)); }
  void charge(byte_share share) { out_->charge(std::move(share)); }

  /// A whole response with JSON as its body. A response that runs in the background is sent twice: its early body to
  /// its exchange, and the whole one to its followers.
  void respond(unsigned status, std::string json, const connection::header_list& more = {});
  /// The answer of a turn that was committed before, whole or as a stream.
  void respond_again(bool as_stream, std::string text);
  /// Sends status and headers of a stream, unless they are out.
  void begin_stream();
  /// Of a stream that has begun. Without bytes it does nothing.
  void write(std::string bytes);
  /// Writes a comment if the stream, or the request received at `received`, was silent for `interval`.
  void keep_alive(steady_time now, steady_time received, duration interval);
  void end_stream() { out_->end(); }
  void abort() { out_->abort(); }

  [[nodiscard]] bool streaming() const { return sends_ == form::stream; }
  [[nodiscard]] std::size_t queued_bytes() const { return out_->queued_bytes(); }

 private:
  enum class form : std::uint8_t { whole, stream };

  const std::shared_ptr<connection::response_writer> out_;
  connection::header_list headers_;
  const clock* const time_;
  form sends_ = form::whole;
  steady_time last_write_{};  // or when the stream began
};

}  // namespace skein::request
