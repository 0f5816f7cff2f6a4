#pragma once
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/request/service/api_service.hpp"
#include "tests/actors/hand_run_pool.hpp"
#include "tests/actors/response_recorder.hpp"

namespace skein::test {

using namespace request;

/// One io thread's service with the test in the place of everything else.
struct service_bench {
  service_bench() {
    model->served.names = {"tiny", "rwkv7"};
    model->served.card.id = "tiny";
    model->served.vocabulary = tokenizer::vocabulary::bytes();
    model->served.vocab = 256;
    model->devices.add(inbox, &counters);
    context->models->put(model, true);
    context->connections = &connections;
    context->persistence = &questions;
    context->logins = &logins;
    context->time = &time;
    context->ready = true;
    context->run_long = [this](const auto&, std::function<void()> work) { return pool.take(std::move(work)); };
  }

  void send(const std::string& method, const std::string& target, const std::string& body = "",
            connection::header_list fields = {}) {
    connection::request_head head;
    head.method = method;
    const auto question = target.find('?');
    head.raw_path = head.path = target.substr(0, question);
    if (question != std::string::npos) head.query = target.substr(question + 1);
    head.fields = std::move(fields);
    head.remote_address = "127.0.0.1";
    out = std::make_shared<response_recorder>();
    call = service.accept(head, out);
    if (call) call->body(body);
  }
  /// The one question that was asked.
  template <typename Message>
  Message asked() {
    std::vector<persistence::message_in> messages;
    questions.drain(messages);
    BOOST_REQUIRE_EQUAL(messages.size(), 1u);
    BOOST_REQUIRE(std::holds_alternative<Message>(messages[0]));
    return std::get<Message>(std::move(messages[0]));
  }
  void answer(persistence::return_address to, persistence::answer_body body) {
    reply(persistence::answer{to, std::move(body)});
  }
  void reply(persistence::reply r) {
    std::vector<persistence::reply> replies;
    replies.push_back(std::move(r));
    hub.dispatch(std::move(replies));
  }
  void refused(const std::string& param) {
    BOOST_TEST_CONTEXT(out->text) {
      BOOST_TEST(out->status == 400u);
      BOOST_TEST(out->has("\"param\":\"" + param + "\""));
      BOOST_TEST(questions.size() == 0u);
    }
  }

  std::shared_ptr<service_context> context = std::make_shared<service_context>();
  device::mailbox inbox{10, 10};
  persistence::mailbox questions{10, 10};
  device::device_counters counters;
  connection::connection_counts connections;
  std::shared_ptr<loaded_model> model = std::make_shared<loaded_model>();
  login_guard logins{{.login_failures_max = 5}};
  fake_clock time;
  request_hub hub{0, &questions};
  hand_run_pool pool;
  api_service service{context, hub, [this](std::function<void()> w) { pool.posted.push_back(std::move(w)); }};
  std::shared_ptr<response_recorder> out;
  std::unique_ptr<connection::http_call> call;
};

inline persistence::listed_session listed(const std::string& id, persistence::tier fastest) {
  persistence::listed_session s;
  s.record.key.id = id;
  s.record.head = s.record.last_version = 3;
  s.record.versions = 3;
  s.record.used_ms = 1769000000120;
  s.record.total_tokens = 44;
  s.record.model_identity = "abc";
  s.fastest = fastest;
  s.state_bytes = 1024;
  return s;
}

}  // namespace skein::test
