#pragma once
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "actors/request/call/memory.hpp"
#include "actors/request/generation/generation_call.hpp"
#include "tests/actors/hand_run_pool.hpp"
#include "tests/actors/response_recorder.hpp"

namespace skein::test {

using namespace std::chrono_literals;
using request::call_origin;
using request::generation_call;
using request::login_guard;
using request::request_hub;
using request::service_context;

/// One io thread's worth of request actors with the test in the place of device, clock, workers and client.
struct generation_bench {
  generation_bench() {
    model->served.names = {"tiny", "rwkv7"};
    model->served.vocabulary = tokenizer::vocabulary::bytes();
    model->served.vocab = 256;
    model->served.fingerprint = "skein-test";
    model->devices.add(inbox, &counters);
    context->models->put(model, true);
    context->logins = &logins;
    context->time = &time;
    context->ready = true;
    context->run_long = [this](const auto&, std::function<void()> work) { return pool.take(std::move(work)); };
  }

  /// Sends a body; the call then waits for the device, or has answered.
  void send(const std::string& body, const protocol::dialect& as = protocol::dialects::chat,
            bool authenticated = true) {
    call_origin origin;
    origin.dialect = &as;
    origin.authenticated = authenticated;
    send(body, std::move(origin));
  }
  void send(const std::string& body, call_origin origin) {
    out = std::make_shared<response_recorder>();
    origin.request_name = "req-1";
    origin.client = "127.0.0.1";
    origin.headers = {{"X-Request-Id", "req-1"}};
    origin.received = time.now();
    origin.share = share_of(*context, *origin.who, origin.client, origin.authenticated);
    call = std::make_unique<generation_call>(
        origin, context, hub, [this](std::function<void()> w) { post(std::move(w)); }, out);
    call->body(body);
    read_mailbox();
  }
  void post(std::function<void()> work) {
    if (failing_posts > 0 && failing_posts--) throw std::bad_alloc();
    pool.posted.push_back(std::move(work));
  }
  void read_mailbox() {
    std::vector<device::message> messages;
    inbox.drain(messages);
    for (auto& m : messages) {
      if (auto* s = std::get_if<device::submit>(&m))
        submitted.push_back(std::move(*s));
      else if (auto* c = std::get_if<device::cancel>(&m))
        cancelled.push_back(c->id);
      else if (auto* r = std::get_if<device::cancel_row>(&m))
        cancelled_rows.push_back(r->row);
      else if (std::get_if<device::pause>(&m))
        ++pauses;
      else if (std::get_if<device::resume>(&m))
        ++resumes;
      else if (auto* e = std::get_if<device::settle>(&m))
        settled.push_back(std::move(*e));
    }
  }
  template <typename Event>
  void tell(Event e) {
    std::vector<device::event> events;
    events.emplace_back(std::move(e));
    hub.dispatch(std::move(events));
    read_mailbox();
  }
  void admit(std::size_t which = 0) { tell(device::admitted{submitted.at(which).id, 5us}); }
  /// Tokens of a byte vocabulary, one event each, as the device would number them.
  void say(const std::string& text, std::uint32_t row = 0, std::size_t which = 0) {
    for (const char c : text) {
      device::token t{submitted.at(which).id, row, index++, static_cast<unsigned char>(c), nullptr};
      const auto& params = submitted.at(which).rows.at(row);
      if (params.logprobs) {
        t.logprobs = std::make_unique<sampling::token_logprobs>();
        t.logprobs->logprob = -0.5f;
        t.logprobs->count = params.top_logprobs;
        for (std::uint32_t i = 0; i < params.top_logprobs; ++i)
          t.logprobs->top[i] = {static_cast<token_id>('a' + i), -1.0f};
      }
      tell(std::move(t));
    }
  }
  void finish(device::finish_cause cause, std::uint32_t row = 0, std::size_t which = 0) {
    tell(device::row_finished{submitted.at(which).id, row, cause});
  }
  /// The texts of a stream's deltas, put together.
  [[nodiscard]] std::string streamed(const std::string& key) const {
    std::string all;
    const std::string mark = "\"" + key + "\":\"";
    for (std::size_t at = out->text.find(mark); at != std::string::npos; at = out->text.find(mark, at)) {
      at += mark.size();
      all += out->text.substr(at, out->text.find('"', at) - at);
    }
    return all;
  }
  [[nodiscard]] bool has(const std::string& piece) const { return out->has(piece); }

  std::shared_ptr<service_context> context = std::make_shared<service_context>();
  std::shared_ptr<request::loaded_model> model = std::make_shared<request::loaded_model>();
  device::mailbox inbox{100, 100};
  device::device_counters counters;
  login_guard logins{{.login_failures_max = 5}};
  fake_clock time;
  persistence::mailbox questions{100, 100};
  request_hub hub{3, &questions};
  hand_run_pool pool;
  std::shared_ptr<response_recorder> out;
  std::unique_ptr<generation_call> call;
  std::vector<device::submit> submitted;
  std::vector<request_id> cancelled;
  std::vector<device::settle> settled;
  std::vector<std::uint32_t> cancelled_rows;
  int pauses = 0, resumes = 0, failing_posts = 0;
  std::uint32_t index = 0;
};

}  // namespace skein::test
