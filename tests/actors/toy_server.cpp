#include "tests/actors/toy_server.hpp"

#include <algorithm>
#include <filesystem>
#include <future>
#include <stdexcept>
#include <thread>

namespace skein::test {
namespace {

using connection::http_call;
using connection::http_service;
using connection::request_head;
using connection::response_writer;

const connection::header_list text{{"Content-Type", "text/plain"}};
const connection::header_list events{{"Content-Type", "text/event-stream"}};

std::size_t number(const std::string& query) { return query.empty() ? 0 : std::stoul(query); }

class toy_call final : public http_call {
 public:
  toy_call(ledger& seen, const request_head& head, std::shared_ptr<response_writer> out, std::size_t outbound_max)
      : seen_(seen), path_(head.path), count_(head.query), out_(std::move(out)), outbound_max_(outbound_max) {
    ++seen_.calls;
  }
  ~toy_call() override { --seen_.calls; }

  [[nodiscard]] std::uint64_t body_bytes_max() const override {
    return path_ == "/small" ? 10 : http_call::body_bytes_max();
  }

  [[nodiscard]] std::string error_body(unsigned, std::string_view message) const override {
    return path_ == "/small" ? "small: " + std::string(message) : "";
  }

  void body(std::string bytes) override {
    seen_.saw_body(bytes);
    if (path_ == "/small") out_->respond(200, text, std::move(bytes));
    if (path_ == "/hello") out_->respond(200, text, "hello");
    if (path_ == "/echo") out_->respond(200, text, std::move(bytes));
    if (path_ == "/nothing") out_->respond(204, {}, "");
    if (path_ == "/throw") throw std::runtime_error("the toy is broken");
    if (path_ == "/wait-stream") out_->begin_stream(200, events);
    if (path_ == "/stream") stream();
    if (path_ == "/misplaced") {
      out_->write("too early");
      out_->end();
      stream();
      stream();
      out_->respond(200, text, "too late");
      out_->write("too late");
    }
    if (path_ == "/abort") {
      out_->begin_stream(200, events);
      out_->write("data: half\n\n");
      out_->abort();
    }
    if (path_ == "/overrun") {
      out_->begin_stream(200, text);
      for (int i = 0; i < 4096; ++i) out_->write(std::string(4096, 'x'));
    }
    if (path_ == "/burst") {
      out_->begin_stream(200, text);
      out_->write(std::string(number(count_), 'b'));
      out_->end();
    }
    if (path_ == "/flood") {
      out_->begin_stream(200, text);
      flood();
    }
  }

  void writable() override {
    ++seen_.writable;
    flood();
  }

  void gone(std::string_view why, unsigned status) override { seen_.saw_gone(why, status); }

 private:
  void stream() {
    out_->begin_stream(200, events);
    for (std::size_t i = 0; i < number(count_); ++i) out_->write("data: " + std::to_string(i) + "\n\n");
    out_->end();
  }

  void flood() {
    while (written_ < number(count_) && out_->queued_bytes() <= outbound_max_) {
      const std::size_t piece = std::min<std::size_t>(1000, number(count_) - written_);
      out_->write(std::string(piece, 'f'));
      written_ += piece;
      seen_.produced += piece;
      seen_.queued_most = std::max(seen_.queued_most.load(), out_->queued_bytes());
    }
    if (written_ == number(count_) && !ended_) {
      ended_ = true;
      out_->end();
    }
  }

  ledger& seen_;
  const std::string path_;
  const std::string count_;
  const std::shared_ptr<response_writer> out_;
  const std::size_t outbound_max_;
  std::size_t written_ = 0;
  bool ended_ = false;
};

class toy_service final : public http_service {
 public:
  toy_service(ledger& seen, std::size_t outbound_max, byte_share share)
      : seen_(seen), outbound_max_(outbound_max), share_(std::move(share)) {}

  std::unique_ptr<http_call> accept(const request_head& head, std::shared_ptr<response_writer> out) override {
    seen_.saw_head(head);
    seen_.keep(out);
    out->charge(share_);
    if (head.path == "/throw-head") throw std::runtime_error("the toy is broken");
    if (head.path == "/silent") return nullptr;
    if (head.path == "/refuse") {
      out->respond(401, {{"WWW-Authenticate", "Bearer"}}, "who are you");
      return nullptr;
    }
    return std::make_unique<toy_call>(seen_, head, std::move(out), outbound_max_);
  }

  std::string error_body(unsigned status, std::string_view message, std::string_view) override {
    return "{\"status\":" + std::to_string(status) + ",\"error\":\"" + std::string(message) + "\"}";
  }

 private:
  ledger& seen_;
  const std::size_t outbound_max_;
  const byte_share share_;
};

}  // namespace

void ledger::saw_head(const request_head& head) {
  const std::lock_guard lock(mutex_);
  heads_.push_back(head);
}

void ledger::saw_body(const std::string& body) {
  const std::lock_guard lock(mutex_);
  bodies_.push_back(body);
}

void ledger::saw_gone(std::string_view why, unsigned status) {
  const std::lock_guard lock(mutex_);
  gone_status_ = status;
  gone_.emplace_back(why);
}

void ledger::keep(std::shared_ptr<response_writer> out) {
  const std::lock_guard lock(mutex_);
  last_writer_ = std::move(out);
}

std::vector<request_head> ledger::heads() const {
  const std::lock_guard lock(mutex_);
  return heads_;
}

std::vector<std::string> ledger::bodies() const {
  const std::lock_guard lock(mutex_);
  return bodies_;
}

std::vector<std::string> ledger::gone() const {
  const std::lock_guard lock(mutex_);
  return gone_;
}

unsigned ledger::gone_status() const {
  const std::lock_guard lock(mutex_);
  return gone_status_;
}

std::shared_ptr<response_writer> ledger::last_writer() const {
  const std::lock_guard lock(mutex_);
  return last_writer_;
}

toy_server::toy_server(const connection::connection_limits& limits, std::size_t lanes, byte_share share) {
  std::vector<listener::io_lane> made;
  for (std::size_t i = 0; i < lanes; ++i) {
    services_.push_back(std::make_unique<toy_service>(seen_, limits.outbound_bytes_max, share));
    threads_.push_back(std::make_unique<connection::io_thread>("io " + std::to_string(i)));
    made.push_back({*threads_.back(), *services_.back()});
  }
  listener_ = std::make_unique<listener::listener>(made, limits);
  port_ = listener_->listen_tcp("127.0.0.1", 0).value();
}

toy_server::~toy_server() {
  listener_.reset();
  threads_.clear();
}

void toy_server::run_on_lane(const std::function<void()>& work, std::size_t lane) {
  std::promise<void> done;
  threads_[lane]->post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

bool eventually(const std::function<bool()>& fact) {
  for (int i = 0; i < 5000; ++i) {
    if (fact()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return false;
}

std::size_t open_descriptors() {
  const auto listing = std::filesystem::directory_iterator("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(listing), end(listing)));
}

}  // namespace skein::test
