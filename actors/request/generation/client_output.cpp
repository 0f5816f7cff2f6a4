#include "actors/request/generation/client_output.hpp"

#include "protocol/responses/sse.hpp"

namespace skein::request {

void client_output::respond(unsigned status, std::string json, const connection::header_list& more) {
  connection::header_list headers = headers_;
  headers.emplace_back("Content-Type", "application/json");
  headers.insert(headers.end(), more.begin(), more.end());
  out_->respond(status, std::move(headers), std::move(json));
}

void client_output::respond_again(bool as_stream, std::string text) {
  add_header("X-Session-State", "continued");
  add_header("Idempotent-Replayed", "true");
  if (!as_stream) return respond(200, std::move(text));
  begin_stream();
  write(std::move(text));
  end_stream();
}

void client_output::begin_stream() {
  if (streaming()) return;
  sends_ = form::stream;
  connection::header_list headers = headers_;
  headers.emplace_back("Content-Type", "text/event-stream; charset=utf-8");
  headers.emplace_back("X-Accel-Buffering", "no");
  out_->begin_stream(200, std::move(headers));
  last_write_ = time_->now();
}

void client_output::write(std::string bytes) {
  if (bytes.empty()) return;
  last_write_ = time_->now();
  out_->write(std::move(bytes));
}

void client_output::keep_alive(steady_time now, steady_time received, duration interval) {
  if (now - (streaming() ? last_write_ : received) < interval) return;
  begin_stream();
  write(std::string(protocol::sse_keep_alive));
}

}  // namespace skein::request
