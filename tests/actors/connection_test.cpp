// Shows what a client sees of a connection, and what a service hears, over real loopback sockets: framing, keep-alive,
// deadlines, hang-ups in each phase, slow readers. The service is a toy; the client decides every byte.
#include <malloc.h>

#include <boost/test/unit_test.hpp>
#include <random>
#include <thread>

#include "tests/actors/toy_server.hpp"
#include "tests/support/http_client.hpp"

namespace skein::test {
namespace {

using connection::connection_limits;
using std::chrono::milliseconds;

// ---- what comes back ----

BOOST_AUTO_TEST_CASE(one_connection_serves_many_requests) {
  toy_server server;
  http_client client(server.port());
  for (int i = 0; i < 3; ++i) {
    client.request("GET", "/hello");
    const auto response = client.read_response();
    BOOST_REQUIRE(response);
    BOOST_TEST(response->status == 200u);
    BOOST_TEST(response->body == "hello");
    BOOST_TEST(response->header("content-length") == "5");
    BOOST_TEST(response->header("content-type") == "text/plain");
    BOOST_TEST(response->header("date").ends_with(" GMT"));
    BOOST_TEST(response->header("connection").empty());
  }
  client.request("POST", "/echo", "some body");
  BOOST_TEST(client.read_response()->body == "some body");
  BOOST_TEST(server.door().counts().accepted.load() == 1u);
  BOOST_TEST(server.door().counts().requests.load() == 4u);
  BOOST_TEST(eventually([&] { return server.seen().calls == 0; }));
}

BOOST_AUTO_TEST_CASE(the_head_reaches_the_service) {
  toy_server server;
  http_client client(server.port());
  client.request("GET", "/hello?a=%41", "", "X-Thing: One\r\n");
  BOOST_TEST(client.read_response()->status == 200u);
  const auto head = server.seen().heads().at(0);
  BOOST_TEST(head.method == "GET");
  BOOST_TEST(head.path == "/hello");
  BOOST_TEST(head.query == "a=%41");
  BOOST_TEST(head.field("x-thing") == "One");
  BOOST_TEST(head.remote_address == "127.0.0.1");
  BOOST_TEST(head.loopback);
  BOOST_TEST(head.connection_number == 1u);
  BOOST_TEST((head.received > steady_time{}));
}

BOOST_AUTO_TEST_CASE(a_trusted_proxy_names_the_client) {
  connection_limits limits;
  limits.trusted_proxies = {"127.0.0.1"};
  toy_server server(limits);
  http_client client(server.port());
  client.request("GET", "/hello", "", "X-Forwarded-For: 6.6.6.6, 9.9.9.9\r\n");
  BOOST_TEST(client.read_response()->status == 200u);
  BOOST_TEST(server.seen().heads().at(0).remote_address == "9.9.9.9");
}

BOOST_AUTO_TEST_CASE(pipelined_requests_are_answered_in_order) {
  toy_server server;
  http_client client(server.port());
  std::string bytes;
  for (int i = 0; i < 50; ++i) {
    const std::string body = "number " + std::to_string(i);
    bytes += "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    if (i % 7 == 0) bytes += "\r\n";  // as old clients do
  }
  client.send(bytes);
  for (int i = 0; i < 50; ++i) BOOST_TEST(client.read_response()->body == "number " + std::to_string(i));
}

BOOST_AUTO_TEST_CASE(bytes_may_come_one_by_one) {
  toy_server server;
  http_client client(server.port());
  for (const char c : std::string("POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                                  "3\r\nabc\r\n2;x\r\nde\r\n0\r\nA: b\r\n\r\n"))
    client.send(std::string_view(&c, 1));
  BOOST_TEST(client.read_response()->body == "abcde");
}

BOOST_AUTO_TEST_CASE(head_gets_the_headers_of_get) {
  toy_server server;
  http_client client(server.port());
  client.request("HEAD", "/hello");
  const auto head = client.read_response(true);
  BOOST_TEST(head->status == 200u);
  BOOST_TEST(head->header("content-length") == "5");
  client.request("HEAD", "/stream?3");
  BOOST_TEST(client.read_response(true)->header("transfer-encoding") == "chunked");
  client.request("GET", "/hello");
  BOOST_TEST(client.read_response()->body == "hello");
}

BOOST_AUTO_TEST_CASE(statuses_without_a_body_have_no_length) {
  toy_server server;
  http_client client(server.port());
  client.request("DELETE", "/nothing");
  const auto response = client.read_response();
  BOOST_TEST(response->status == 204u);
  BOOST_TEST(response->header("content-length").empty());
  client.request("GET", "/hello");
  BOOST_TEST(client.read_response()->status == 200u);
}

BOOST_AUTO_TEST_CASE(a_stream_is_chunked_and_the_connection_stays_open) {
  toy_server server;
  http_client client(server.port());
  for (int round = 0; round < 2; ++round) {
    client.request("GET", "/stream?100");
    const auto head = client.read_head();
    BOOST_TEST(head->header("transfer-encoding") == "chunked");
    BOOST_TEST(head->header("content-type") == "text/event-stream");
    for (int i = 0; i < 100; ++i) BOOST_TEST(client.read_event()->data == std::to_string(i));
    BOOST_TEST(!client.read_event());
  }
}

BOOST_AUTO_TEST_CASE(http_1_0_gets_what_it_understands) {
  toy_server server;
  http_client once(server.port());
  once.send("GET /stream?2 HTTP/1.0\r\n\r\n");
  const auto streamed = once.read_response();
  BOOST_TEST(streamed->header("transfer-encoding").empty());
  BOOST_TEST(streamed->header("connection") == "close");
  BOOST_TEST(streamed->body == "data: 0\n\ndata: 1\n\n");

  http_client kept(server.port());
  for (int i = 0; i < 2; ++i) {
    kept.send("GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    BOOST_TEST(kept.read_response()->header("connection") == "keep-alive");
  }
  kept.send("GET /hello HTTP/1.0\r\n\r\n");
  BOOST_TEST(kept.read_response()->body == "hello");
  BOOST_TEST(kept.closed_by_server());
}

BOOST_AUTO_TEST_CASE(close_and_the_request_limit_end_the_connection) {
  connection_limits limits;
  limits.requests_per_connection_max = 2;
  toy_server server(limits);
  http_client asked(server.port());
  asked.request("GET", "/hello", "", "Connection: close\r\n");
  BOOST_TEST(asked.read_response()->header("connection") == "close");
  BOOST_TEST(asked.closed_by_server());

  http_client counted(server.port());
  counted.request("GET", "/hello");
  BOOST_TEST(counted.read_response()->header("connection").empty());
  counted.request("GET", "/hello");
  BOOST_TEST(counted.read_response()->header("connection") == "close");
  BOOST_TEST(counted.closed_by_server());
}

BOOST_AUTO_TEST_CASE(a_failing_service_is_an_error_500) {
  toy_server server;
  for (const char* target : {"/throw", "/throw-head", "/silent"}) BOOST_TEST_CONTEXT(target) {
      http_client client(server.port());
      client.request("POST", target, "x");
      BOOST_TEST(client.read_response()->status == 500u);
      BOOST_TEST(client.closed_by_server());
    }
  BOOST_TEST(server.seen().calls == 0);
}

// ---- deadlines ----

BOOST_AUTO_TEST_CASE(a_header_has_a_deadline) {
  connection_limits limits;
  limits.header_timeout_ms = 100;
  toy_server server(limits);
  http_client slow(server.port());
  slow.send("GET /hello HT");
  BOOST_TEST(slow.read_response()->status == 408u);
  BOOST_TEST(slow.closed_by_server());
  http_client silent(server.port());
  BOOST_TEST(silent.closed_by_server());
  BOOST_TEST(server.seen().heads().empty());
}

BOOST_AUTO_TEST_CASE(an_idle_connection_is_closed) {
  connection_limits limits;
  limits.idle_timeout_ms = 100;
  toy_server server(limits);
  http_client client(server.port());
  client.request("GET", "/hello");
  BOOST_TEST(client.read_response()->status == 200u);
  BOOST_TEST(client.closed_by_server());
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
}

BOOST_AUTO_TEST_CASE(a_slow_body_is_given_up) {
  connection_limits limits;
  limits.body_timeout_ms = 100;
  toy_server server(limits);
  http_client client(server.port());
  client.request("POST", "/echo", "", "Content-Length: 100\r\n");
  client.send("some");
  BOOST_TEST(client.read_response()->status == 408u);
  BOOST_TEST(client.closed_by_server());
  BOOST_TEST(server.seen().gone().size() == 1u);
  BOOST_TEST(server.seen().calls == 0);
}

// ---- hang-ups ----

BOOST_AUTO_TEST_CASE(a_hang_up_is_noticed_in_each_phase) {
  const char* requests[] = {
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",  // while the body comes
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe",
      "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n",                                        // while the answer is awaited
      "GET /wait-stream HTTP/1.1\r\nHost: a\r\n\r\n",                                 // while it is streamed
      "GET /wait HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n",  // with a request sent ahead
  };
  for (const char* request : requests)
    for (const bool orderly : {true, false}) BOOST_TEST_CONTEXT(request << " orderly: " << orderly) {
        toy_server server;
        http_client client(server.port());
        client.send(request);
        BOOST_REQUIRE(eventually([&] { return server.seen().heads().size() == 1; }));
        BOOST_TEST(server.seen().gone().empty());
        if (orderly)
          client.close();
        else
          client.reset();
        BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
        BOOST_TEST((server.seen().gone() == std::vector<std::string>{"client closed"}));
        BOOST_TEST(server.seen().gone_status() == connection::client_gone);
        BOOST_TEST(server.seen().calls == 0);
      }
}

BOOST_AUTO_TEST_CASE(a_reset_is_noticed_behind_a_full_buffer) {
  toy_server server;
  http_client client(server.port());
  client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + std::string(200'000, 'x'));
  BOOST_REQUIRE(eventually([&] { return server.seen().heads().size() == 1; }));
  client.reset();
  BOOST_TEST(eventually([&] { return server.seen().gone().size() == 1; }));
}

BOOST_AUTO_TEST_CASE(a_request_sent_ahead_is_served_in_full) {
  toy_server server;
  http_client client(server.port());
  client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  client.send("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 200000\r\n\r\n" + std::string(200'000, 'x'));
  BOOST_REQUIRE(eventually([&] { return server.seen().heads().size() == 1; }));
  server.run_on_lane([&] { server.seen().last_writer()->respond(200, {}, "late"); });
  BOOST_TEST(client.read_response()->body == "late");
  BOOST_TEST(client.read_response()->body.size() == 200'000u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_queued_outlives_the_end_of_requests) {
  toy_server server;
  http_client client(server.port());
  client.request("GET", "/hello");
  client.shutdown_send();
  BOOST_TEST(client.read_response()->body == "hello");
  BOOST_TEST(client.closed_by_server());
}

BOOST_AUTO_TEST_CASE(a_writer_may_outlive_its_connection) {
  toy_server server;
  {
    http_client client(server.port());
    client.request("GET", "/wait-stream");
    BOOST_TEST(client.read_head()->status == 200u);
  }
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
  server.run_on_lane([&] {
    const auto out = server.seen().last_writer();
    out->write("late");
    out->end();
    out->abort();
    out->respond(200, {}, "late");
    BOOST_TEST(out->queued_bytes() == 0u);
  });
}

BOOST_AUTO_TEST_CASE(calls_that_do_not_fit_the_phase_of_a_response_are_dropped) {
  toy_server server;
  http_client client(server.port());
  for (int i = 0; i < 2; ++i) {
    client.request("POST", "/misplaced?2", "x");
    const auto response = client.read_response();
    BOOST_REQUIRE(response);
    BOOST_TEST(response->body == "data: 0\n\ndata: 1\n\n");
  }
  BOOST_TEST(server.seen().gone().empty());
}

BOOST_AUTO_TEST_CASE(an_abort_is_no_end) {
  toy_server server;
  for (const char* version : {"1.1", "1.0"}) BOOST_TEST_CONTEXT(version) {
      http_client client(server.port());
      client.send("GET /abort HTTP/" + std::string(version) + "\r\nHost: a\r\n\r\n");
      const std::string got = client.read_to_end();
      BOOST_TEST(got.find("0\r\n\r\n") == std::string::npos);
    }
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
  BOOST_TEST((server.seen().gone() == std::vector<std::string>{"aborted", "aborted"}));
}

BOOST_AUTO_TEST_CASE(random_hang_ups_leave_nothing_behind) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  toy_server server({}, 2);
  for (int i = 0; i < 2; ++i) {  // each io thread opens its epoll with its first socket
    http_client warm(server.port());
    warm.request("GET", "/hello");
    BOOST_TEST(warm.read_response()->status == 200u);
  }
  BOOST_REQUIRE(eventually([&] { return server.door().counts().open == 0; }));
  const std::size_t before = open_descriptors();
  const std::string requests[] = {
      "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n0123456789",
      "POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
      "GET /stream?100 HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /wait HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /wait-stream HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /flood?100000000 HTTP/1.1\r\nHost: a\r\n\r\n",
      "GET /hello HTTP/1.1\r\n\r\n",
  };
  std::vector<http_client> held;
  for (int i = 0; i < 200; ++i) {
    http_client client(server.port());
    const std::string& request = requests[random() % std::size(requests)];
    client.send(std::string_view(request).substr(0, random() % (request.size() + 1)));
    if (random() % 3 == 0) client.reset();
    if (random() % 2 == 0) held.push_back(std::move(client));
    if (random() % 4 == 0 && !held.empty()) held.pop_back();
  }
  held.clear();
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
  BOOST_TEST(eventually([&] { return open_descriptors() == before; }));
  BOOST_TEST(server.seen().calls == 0);
  http_client after(server.port());
  after.request("GET", "/hello");
  BOOST_TEST(after.read_response()->status == 200u);
}

// ---- slow readers ----

BOOST_AUTO_TEST_CASE(a_quiet_stream_costs_little_memory) {
  constexpr std::size_t count = 200;
  toy_server server;
  const std::size_t before = mallinfo2().uordblks;  // 0 under sanitizers, which replace malloc
  std::vector<http_client> clients;
  for (std::size_t i = 0; i < count; ++i) {
    clients.emplace_back(server.port());
    clients.back().request("POST", "/wait-stream", std::string(20'000, 'x'),
                           "X-Long: " + std::string(4000, 'y') + "\r\n");
    BOOST_TEST(clients.back().read_head()->status == 200u);
  }
  // The toy's ledger keeps each head and body.
  const std::size_t kept_by_test = count * (20'000 + 4'000);
  const std::size_t each = (mallinfo2().uordblks - before - kept_by_test) / count;
  BOOST_TEST_MESSAGE("bytes of a quiet stream: " << each);
  if (before > 0) BOOST_TEST(each < 16 * 1024u);
}

BOOST_AUTO_TEST_CASE(a_slow_reader_is_waited_for) {
  connection_limits limits;
  limits.outbound_bytes_max = 64 * 1024;
  toy_server server(limits);
  constexpr std::size_t total = 30'000'000;
  http_client client(server.port());
  client.request("GET", "/flood?" + std::to_string(total));

  // The stream fills the kernel's buffers and its own queue, and rests there.
  std::size_t last = 0;
  int unchanged = 0;
  BOOST_REQUIRE(eventually([&] {
    unchanged = server.seen().produced == last ? unchanged + 1 : 0;
    last = server.seen().produced;
    return last > 0 && unchanged > 50;
  }));
  BOOST_TEST(last < total);
  server.run_on_lane([&] { BOOST_TEST(server.seen().last_writer()->queued_bytes() >= limits.outbound_bytes_max / 2); });

  BOOST_TEST(client.read_head()->status == 200u);
  BOOST_TEST(client.read_body()->size() == total);
  BOOST_TEST(server.seen().writable > 0);
  BOOST_TEST(server.seen().queued_most > limits.outbound_bytes_max);
  BOOST_TEST(server.seen().queued_most <= limits.outbound_bytes_max + 2000);  // one piece more
  client.request("GET", "/hello");
  BOOST_TEST(client.read_response()->status == 200u);
}

BOOST_AUTO_TEST_CASE(a_reader_that_stopped_is_cut) {
  connection_limits limits;
  limits.outbound_bytes_max = 64 * 1024;
  limits.write_timeout_ms = 200;
  toy_server server(limits);
  http_client client(server.port());
  client.request("GET", "/flood?100000000");
  BOOST_TEST(eventually([&] { return server.seen().gone().size() == 1; }));
  BOOST_TEST((server.seen().gone() == std::vector<std::string>{"slow_consumer"}));
  BOOST_TEST(server.seen().produced < 100'000'000u);
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
}

BOOST_AUTO_TEST_CASE(a_quiet_stream_is_not_slow) {
  connection_limits limits;
  limits.header_timeout_ms = limits.body_timeout_ms = limits.idle_timeout_ms = limits.write_timeout_ms = 100;
  toy_server server(limits);
  http_client client(server.port());
  client.request("GET", "/wait-stream");
  BOOST_TEST(client.read_head()->status == 200u);
  std::this_thread::sleep_for(milliseconds(300));
  BOOST_TEST(server.seen().gone().empty());
  server.run_on_lane([&] { server.seen().last_writer()->write("data: still here\n\n"); });
  BOOST_TEST(client.read_event()->data == "still here");
}

BOOST_AUTO_TEST_CASE(a_burst_is_no_fault_of_the_reader) {
  connection_limits limits;
  limits.outbound_bytes_max = 16 * 1024;
  toy_server server(limits);
  http_client client(server.port());
  const std::size_t burst = 1024 * limits.outbound_bytes_max;  // more than the system buffers
  client.request("GET", "/burst?" + std::to_string(burst));
  BOOST_TEST(client.read_head()->status == 200u);
  BOOST_TEST(client.read_body()->size() == burst);
  BOOST_TEST(server.seen().gone().empty());
}

BOOST_AUTO_TEST_CASE(a_service_that_ignores_the_queue_is_cut) {
  connection_limits limits;
  limits.outbound_bytes_max = 16 * 1024;
  toy_server server(limits);
  http_client client(server.port());
  client.request("GET", "/overrun");
  BOOST_TEST(eventually([&] { return server.seen().gone().size() == 1; }));
  BOOST_TEST(server.seen().gone().at(0) == "slow_consumer");
}

}  // namespace
}  // namespace skein::test
