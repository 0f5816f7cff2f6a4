#include "actors/request/responses/response_socket.hpp"

#include <utility>
#include <vector>

#include "actors/connection/websocket/socket_frames.hpp"
#include "protocol/json/http_error.hpp"
#include "protocol/json/json_writer.hpp"
#include "protocol/responses_api/responses_request.hpp"

namespace skein::request {
namespace {

namespace close_code = connection::close_code;

/// {"type":"error","status":400,"error":{...}}: a refusal, whose body is an object.
std::string refusal_message(unsigned status, std::string_view body) {
  std::string json;
  protocol::json_writer out(json);
  out.begin_object().key("type").value("error").key("status").value(status).end_object();
  json.pop_back();
  return json.append(",").append(body.substr(1));
}

}  // namespace

class response_socket::output final : public connection::response_writer {
 public:
  output(std::shared_ptr<connection::response_writer> socket, std::function<void()> over)
      : socket_(std::move(socket)), over_(std::move(over)) {}

  void respond(unsigned status, connection::header_list, std::string body) override {
    if (status >= 400) socket_->send(refusal_message(status, body));
    over_();
  }
  void begin_stream(unsigned, connection::header_list) override {}
  /// `bytes` are whole events; each has one line that begins with "data: ".
  void write(std::string bytes) override {
    constexpr std::string_view mark = "data: ";
    for (std::string_view rest = bytes; !rest.empty();) {
      const std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(line.size() + 1, rest.size()));
      if (!line.starts_with(mark)) continue;
      note(line.substr(mark.size()));
      socket_->send(line.substr(mark.size()));
    }
  }
  void end() override { over_(); }
  void abort() override {
    socket_->close(close_code::internal, "internal error");
    over_();
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return socket_->queued_bytes(); }

  /// The response's id, once an event contained it.
  [[nodiscard]] const std::string& id() const { return id_; }

 private:
  void note(std::string_view json) {
    if (!id_.empty()) return;
    constexpr std::string_view mark = "\"response\":{\"id\":\"";
    const std::size_t at = json.find(mark);
    if (at == std::string_view::npos) return;
    json.remove_prefix(at + mark.size());
    id_ = json.substr(0, json.find('"'));
  }

  std::shared_ptr<connection::response_writer> socket_;
  std::function<void()> over_;
  std::string id_;
};

response_socket::response_socket(start begin, doorkeeper admits, std::shared_ptr<const service_context> context,
                                 poster post, std::shared_ptr<connection::response_writer> out)
    : begin_(std::move(begin)),
      admits_(std::move(admits)),
      context_(std::move(context)),
      post_(std::move(post)),
      out_(std::move(out)) {}

void response_socket::message(std::string text) {
  if (!admits_()) return out_->close(close_code::policy, "the key of this socket is no longer valid");
  const auto read = protocol::read_socket_message(text, context_->settings.limits);
  if (!read) return refuse(read.error());
  if (read->creates) return create(std::move(text));
  cancel(*read->cancels);
}

void response_socket::create(std::string text) {
  if (running_.size() >= context_->settings.limits.socket_requests_max)
    return refuse({error_kind::overloaded, "too many responses are running on this socket", ""});
  const std::uint64_t number = ++last_;
  // `over` is called from inside the call, so the call is destroyed later.
  auto out = std::make_shared<output>(out_, [post = post_, self = std::weak_ptr(self_), number] {
    post([self, number] {
      if (const auto socket = self.lock()) (*socket)->over(number);
    });
  });
  exchange& x = running_[number];
  x.out = out;
  x.call = begin_(out);
  if (x.call) x.call->body(std::move(text));
}

/// A background response is cancelled by its own route.
void response_socket::cancel(const std::string& id) {
  bool known = false;
  for (const auto& [number, x] : running_) {
    if (x.out->id().empty() || (!id.empty() && x.out->id() != id)) continue;
    known = true;
    if (const auto run = context_->responses->find(x.out->id()))
      run([](response_run* found) {
        if (found) found->call->obey(order::stop);
      });
  }
  if (!known) refuse({error_kind::not_found, "no such response is running on this socket", "response_id"});
}

void response_socket::over(std::uint64_t number) {
  running_.erase(number);
  if (context_->draining) leave();
}

void response_socket::refuse(const error& why) {
  const auto no = protocol::to_http(why);
  out_->send(refusal_message(no.status, no.body));
}

void response_socket::writable() {
  for (const auto& [number, x] : running_)
    if (x.call) x.call->writable();
}

void response_socket::leave() {
  if (running_.empty()) out_->close(close_code::restart, "the server is restarting");
}

void response_socket::gone(std::string_view why, unsigned status) {
  for (const auto& [number, x] : running_)
    if (x.call) x.call->gone(why, status);
}

}  // namespace skein::request
