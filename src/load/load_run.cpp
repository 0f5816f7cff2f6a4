#include "load/load_run.hpp"

#include <sys/resource.h>
#include <sys/un.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>

#include "load/answer_reader.hpp"

namespace skein::load {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::use_awaitable;
using protocol_type = asio::generic::stream_protocol;
using stream = beast::basic_stream<protocol_type>;
using time_point = std::chrono::steady_clock::time_point;

double seconds_since(time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Every connection needs a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

using address_result = result<protocol_type::endpoint>;

/// Converts explicitly, because endpoints have a constructor from any type.
address_result no_address(error_kind kind, std::string message) {
  return {boost::system::in_place_error, error{kind, std::move(message), {}}};
}

address_result address_of(const load_target& target, asio::io_context& io) {
  if (!target.unix_socket.empty()) {
    if (target.unix_socket.size() >= sizeof(sockaddr_un::sun_path))
      return no_address(error_kind::invalid_argument, "unix-socket: the path is too long");
    return protocol_type::endpoint(asio::local::stream_protocol::endpoint(target.unix_socket));
  }
  boost::system::error_code failed;
  const auto found = asio::ip::tcp::resolver(io).resolve(target.host, target.port, failed);
  if (failed || found.empty())
    return no_address(error_kind::unavailable, "url: cannot resolve " + target.host + ": " + failed.message());
  return protocol_type::endpoint(found.begin()->endpoint());
}

http::request<http::string_body> request_of(const load_target& target, std::string body) {
  http::request<http::string_body> request(http::verb::post, path_of(target), 11, std::move(body));
  request.set(http::field::host, target.unix_socket.empty() ? target.host + ':' + target.port : "localhost");
  request.set(http::field::content_type, "application/json");
  if (!target.password.empty()) request.set(http::field::authorization, "Bearer " + target.password);
  request.keep_alive(false);
  request.prepare_payload();
  return request;
}

/// State of one run, shared by its coroutines on one thread.
class load_run {
 public:
  load_run(asio::io_context& io, const load_target& target, protocol_type::endpoint address,
           const std::vector<planned_request>& plan, const run_options& options)
      : io_(io), target_(target), address_(std::move(address)), plan_(plan), options_(options), outcomes_(plan.size()) {
    turn_.expires_at(time_point::max());
  }

  /// Starts a coroutine for each request when it is due.
  asio::awaitable<void> send_all() {
    asio::steady_timer due(io_);
    for (std::size_t i = 0; i < plan_.size(); ++i) {
      due.expires_at(begin_ + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                  std::chrono::duration<double>(plan_[i].due_s)));
      co_await due.async_wait(use_awaitable);
      while (options_.concurrency > 0 && running_ >= options_.concurrency) co_await wait_for_turn();
      most_ = std::max(most_, ++running_);
      asio::co_spawn(io_, send(i), asio::detached);
    }
  }

  [[nodiscard]] load_figures figures() const { return figures_of(outcomes_, last_s_, most_); }

 private:
  asio::awaitable<void> wait_for_turn() {
    boost::system::error_code woken;
    co_await turn_.async_wait(asio::redirect_error(use_awaitable, woken));
  }

  asio::awaitable<void> send(std::size_t i) {
    request_outcome& outcome = outcomes_[i];
    try {
      co_await exchange(i, outcome);
    } catch (const boost::system::system_error& broken) {
      outcome.failure = broken.code().message();  // what() would include a source location of Asio
    } catch (const std::exception& broken) {
      outcome.failure = broken.what();
    }
    last_s_ = seconds_since(begin_);
    --running_;
    turn_.cancel();
  }

  asio::awaitable<void> exchange(std::size_t i, request_outcome& outcome) {
    const auto request = request_of(target_, body_of(target_, plan_[i], i));
    stream to(io_);
    to.expires_after(options_.timeout);
    const time_point sent = std::chrono::steady_clock::now();
    co_await to.async_connect(address_, use_awaitable);
    co_await http::async_write(to, request, use_awaitable);

    beast::flat_buffer buffer;
    http::response_parser<http::string_body> answer;
    answer.body_limit(boost::none);
    co_await http::async_read_header(to, buffer, answer, use_awaitable);
    if (answer.get().result_int() != 200) {
      outcome.failure = "status " + std::to_string(answer.get().result_int());
      co_return;
    }
    answer_reader reader;
    while (!answer.is_done()) {
      co_await http::async_read_some(to, buffer, answer, use_awaitable);
      const std::uint32_t pieces = reader.read(answer.get().body());
      answer.get().body().clear();
      outcome.text_s.insert(outcome.text_s.end(), pieces, seconds_since(sent));
    }
    outcome.input_tokens = reader.input_tokens();
    outcome.output_tokens = reader.output_tokens();
    outcome.failure = !reader.failure().empty() ? reader.failure()
                      : reader.done()           ? ""
                                                : "the stream ended without [DONE]";
  }

  asio::io_context& io_;
  const load_target& target_;
  const protocol_type::endpoint address_;
  const std::vector<planned_request>& plan_;
  const run_options& options_;
  const time_point begin_ = std::chrono::steady_clock::now();
  std::vector<request_outcome> outcomes_;
  asio::steady_timer turn_{io_};  // cancelled when a request ends
  std::uint64_t running_ = 0, most_ = 0;
  double last_s_ = 0;
};

}  // namespace

result<load_figures> run_load(const load_target& target, const std::vector<planned_request>& plan,
                              const run_options& options) {
  raise_descriptor_limit();
  asio::io_context io(1);
  auto address = address_of(target, io);
  if (!address) return address.error();
  load_run run(io, target, *address, plan, options);
  asio::co_spawn(io, run.send_all(), asio::detached);
  io.run();
  return run.figures();
}

}  // namespace skein::load
