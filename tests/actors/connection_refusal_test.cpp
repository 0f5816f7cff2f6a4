// Shows what a connection refuses, and what a client hears of it: ambiguous and oversized requests get one answer and
// the end, whatever is sent behind them. Real loopback sockets; the service is a toy; the client decides every byte.
#include <boost/test/unit_test.hpp>

#include "tests/actors/toy_server.hpp"
#include "tests/support/http_client.hpp"

namespace skein::test {
namespace {

using connection::connection_limits;

/// The client hears one response of that status, then the end; the service hears nothing.
void expect_one_refusal(toy_server& server, std::string_view bytes, unsigned status) {
  const auto requests = server.door().counts().requests.load();
  http_client client(server.port());
  client.send(bytes);
  const auto response = client.read_response();
  BOOST_REQUIRE(response);
  BOOST_TEST(response->status == status);
  BOOST_TEST(response->header("connection") == "close");
  BOOST_TEST(response->body.starts_with("{\"status\":" + std::to_string(status)));
  BOOST_TEST(client.closed_by_server());
  BOOST_TEST(server.door().counts().requests.load() == requests);
}

BOOST_AUTO_TEST_CASE(ambiguous_requests_get_one_400_and_the_end) {
  toy_server server;
  const std::string second = "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string chunks = "5\r\nhello\r\n0\r\n\r\n";
  const char* fields[] = {
      "Transfer-Encoding: gzip\r\nContent-Length: 5\r\n",
      "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
      "Transfer-Encoding: xchunked\r\n",
      "Transfer-Encoding: identity\r\n",
      "Transfer-Encoding: chunked, identity\r\n",
      "Transfer-Encoding: \"chunked\"\r\n",
      "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
      "Content-Length: 5\r\nContent-Length: 6\r\n",
      "Content-Length: 5, 5\r\n",
      "Content-Length: abc\r\n",
      "Host: b\r\n",
      "X: a\r\n folded\r\n",
  };
  for (const char* field : fields) BOOST_TEST_CONTEXT(field)
  expect_one_refusal(server, "POST /echo HTTP/1.1\r\nHost: a\r\n" + std::string(field) + "\r\n" + chunks + second, 400);
  for (const std::string& bytes : {"GET /hello HTTP/1.1\r\n\r\n" + second,
                                   "POST /echo HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks + second,
                                   "get /hello HTTP/1.1\r\nHost: a\r\n\r\n" + second,
                                   std::string(4096, 'A') + " / HTTP/1.1\r\nHost: a\r\n\r\n" + second,
                                   "GET /../x HTTP/1.1\r\nHost: a\r\n\r\n" + second})
    BOOST_TEST_CONTEXT(bytes) expect_one_refusal(server, bytes, 400);

  std::string many_fields;
  for (int i = 0; i < 1500; ++i) many_fields += "a:\r\n";
  expect_one_refusal(server, "GET / HTTP/1.1\r\nHost: a\r\n" + many_fields + "\r\n" + second, 431);
  expect_one_refusal(server, "GET / HTTP/1.1\r\nHost: a\r\nX: " + std::string(9000, 'x') + "\r\n\r\n" + second, 431);
  expect_one_refusal(server, "GET /" + std::string(9000, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n" + second, 414);
  expect_one_refusal(server, "BREW / HTTP/1.1\r\nHost: a\r\n\r\n" + second, 501);
  expect_one_refusal(server, "POST / HTTP/1.1\r\nHost: a\r\nExpect: tea\r\nContent-Length: 1\r\n\r\n", 417);
  BOOST_TEST(server.seen().heads().empty());
}

BOOST_AUTO_TEST_CASE(empty_lines_before_a_request_have_the_limit_of_a_header) {
  connection_limits limits;
  limits.header_bytes_max = 1000;
  toy_server server(limits);
  std::string allowed;
  for (int i = 0; i < 500; ++i) allowed += "\r\n";
  http_client client(server.port());
  for (int i = 0; i < 2; ++i) {  // of each request, not of the connection
    client.send(allowed + "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
    BOOST_TEST(client.read_response()->body == "hello");
  }
  expect_one_refusal(server, allowed + "\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n", 400);
  std::string flood;
  for (int i = 0; i < 1000; ++i) flood += allowed;
  expect_one_refusal(server, flood, 400);  // in many reads, in a time that grows with its bytes only
}

BOOST_AUTO_TEST_CASE(a_refusal_waits_for_the_answers_before_it) {
  toy_server server;
  http_client client(server.port());
  client.send(
      "GET /hello HTTP/1.1\r\nHost: a\r\n\r\nGET /hello HTTP/1.1\r\n\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  BOOST_TEST(client.read_response()->status == 200u);
  BOOST_TEST(client.read_response()->status == 400u);
  BOOST_TEST(client.closed_by_server());
}

BOOST_AUTO_TEST_CASE(trailers_are_ignored) {
  toy_server server;
  http_client client(server.port());
  client.request("POST", "/echo", "", "Transfer-Encoding: chunked\r\n");
  client.send("2\r\nhi\r\n0\r\nAuthorization: Bearer root\r\nX-Session: 1\r\nConnection: close\r\n\r\n");
  BOOST_TEST(client.read_response()->body == "hi");
  const auto head = server.seen().heads().at(0);
  BOOST_TEST(head.field("authorization").empty());
  BOOST_TEST(head.field("x-session").empty());
  client.request("GET", "/hello");  // the Connection of the trailer did not count either
  BOOST_TEST(client.read_response()->body == "hello");
}

BOOST_AUTO_TEST_CASE(malformed_chunks_end_the_exchange) {
  toy_server server;
  http_client client(server.port());
  client.request("POST", "/echo", "", "Transfer-Encoding: chunked\r\n");
  client.send("zz\r\nGET /hello HTTP/1.1\r\nHost: a\r\n\r\n");
  BOOST_TEST(client.read_response()->status == 400u);
  BOOST_TEST(client.closed_by_server());
  BOOST_TEST(server.seen().bodies().empty());
  BOOST_TEST(server.seen().gone().size() == 1u);
  BOOST_TEST(server.seen().calls == 0);
}

BOOST_AUTO_TEST_CASE(a_body_above_the_limit_is_refused_unread) {
  connection_limits limits;
  limits.body_bytes_max = 1000;
  limits.request_wire_bytes_max = 2000;
  toy_server server(limits);
  expect_one_refusal(server, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413);

  http_client announced(server.port());  // nothing of the chunk is sent
  announced.request("POST", "/echo", "", "Transfer-Encoding: chunked\r\n");
  announced.send("3e9\r\n");
  BOOST_TEST(announced.read_response()->status == 413u);
  BOOST_TEST(server.seen().gone_status() == 413u);  // what the log says is what the client heard
  BOOST_TEST(announced.closed_by_server());

  http_client wordy(server.port());
  wordy.request("POST", "/echo", "", "Transfer-Encoding: chunked\r\n");
  for (int i = 0; i < 1000; ++i) wordy.send("1;padding\r\nx\r\n");  // is read away, so that the response survives
  BOOST_TEST(wordy.read_response()->status == 413u);
  BOOST_TEST(server.seen().bodies().empty());
}

BOOST_AUTO_TEST_CASE(a_call_may_want_a_shorter_body_than_the_connection_allows) {
  toy_server server;
  http_client client(server.port());
  client.request("POST", "/small", "0123456789");
  BOOST_TEST(client.read_response()->body == "0123456789");
  client.request("POST", "/small", "0123456789+");
  const auto refusal = client.read_response();
  BOOST_TEST(refusal->status == 413u);
  BOOST_TEST(refusal->body == "small: the body is larger than 10 bytes");
  BOOST_TEST(client.closed_by_server());

  http_client chunked(server.port());
  chunked.request("POST", "/small", "", "Transfer-Encoding: chunked\r\n");
  chunked.send("6\r\n012345\r\n5\r\n");
  BOOST_TEST(chunked.read_response()->status == 413u);
  BOOST_TEST(chunked.closed_by_server());
  BOOST_TEST(server.seen().bodies().size() == 1u);
  BOOST_TEST(server.seen().calls == 0);

  http_client patient(server.port());
  patient.request("POST", "/small", "", "Content-Length: 11\r\nExpect: 100-continue\r\n");
  BOOST_TEST(patient.read_response()->status == 413u);  // and no 100 before it
}

BOOST_AUTO_TEST_CASE(a_service_may_refuse_before_the_body) {
  toy_server server;
  http_client client(server.port());
  client.request("POST", "/refuse", "", "Content-Length: 1000000\r\nExpect: 100-continue\r\n");
  const auto response = client.read_response();  // no 100 before it
  BOOST_TEST(response->status == 401u);
  BOOST_TEST(response->body == "who are you");
  BOOST_TEST(response->header("connection") == "close");
  BOOST_TEST(client.closed_by_server());

  http_client eager(server.port());  // sends it all without waiting and still reads the answer
  eager.request("POST", "/refuse", std::string(1'000'000, 'x'));
  BOOST_TEST(eager.read_response()->status == 401u);

  http_client bodiless(server.port());  // nothing was left unread, so the connection may go on
  bodiless.request("GET", "/refuse");
  BOOST_TEST(bodiless.read_response()->status == 401u);
  bodiless.request("GET", "/hello");
  BOOST_TEST(bodiless.read_response()->status == 200u);
}

BOOST_AUTO_TEST_CASE(continue_comes_after_acceptance) {
  toy_server server;
  http_client client(server.port());
  client.request("POST", "/echo", "", "Content-Length: 3\r\nExpect: 100-continue\r\n");
  BOOST_TEST(client.read_response()->status == 100u);
  BOOST_TEST(server.seen().heads().size() == 1u);
  client.send("abc");
  BOOST_TEST(client.read_response()->body == "abc");
}

byte_share share_of(byte_budget& budget, std::size_t own_most, std::size_t all_most) {
  return {{budget.of("client"), own_most}, {}, {budget.all(), all_most}};
}

BOOST_AUTO_TEST_CASE(a_body_counts_as_it_arrives_and_is_refused_where_there_is_no_room) {
  byte_budget budget;
  toy_server server({}, 1, share_of(budget, 100'000, 150'000));
  http_client never(server.port());
  never.request("POST", "/echo", "", "Content-Length: 100001\r\nExpect: 100-continue\r\n");
  BOOST_TEST(never.read_response()->status == 413u);  // unread

  const std::string chunk = "ea60\r\n" + std::string(60'000, 'x') + "\r\n";
  const auto chunked = [&](http_client& client) {
    client.request("POST", "/echo", "", "Transfer-Encoding: chunked\r\n");
    client.send(chunk);
  };
  http_client slow(server.port());
  chunked(slow);
  BOOST_TEST(eventually([&] { return budget.held() >= 60'000; }));
  http_client second(server.port());
  chunked(second);
  const auto refused = second.read_response();
  BOOST_TEST(refused->status == 429u);
  BOOST_TEST(refused->header("retry-after") == "1");
  BOOST_TEST(refused->body.find("queue.key_bytes_max") != std::string::npos);
  BOOST_TEST(second.closed_by_server());

  const byte_share other{{budget.of("other"), 200'000}, {}, {budget.all(), 200'000}};
  other.take_anyway(85'000);
  http_client third(server.port());
  third.request("POST", "/echo", std::string(20'000, 'x'));
  BOOST_TEST(third.read_response()->status == 503u);
  other.give_back(85'000);

  slow.send("0\r\n\r\n");
  BOOST_TEST(slow.read_response()->body.size() == 60'000u);
  http_client gone(server.port());
  chunked(gone);
  BOOST_TEST(eventually([&] { return budget.held() >= 60'000; }));
  gone.close();
  BOOST_TEST(eventually([&] { return budget.held() == 0; }));
}

BOOST_AUTO_TEST_CASE(what_a_reader_does_not_take_counts_until_it_does) {
  byte_budget budget;
  toy_server server({}, 1, share_of(budget, 40'000, 1 << 20));  // less than outbound_bytes_max
  http_client slow(server.port());
  slow.request("GET", "/flood?20000000");
  BOOST_TEST(eventually([&] { return budget.held() >= 20'000; }));
  BOOST_TEST(budget.held() <= 50'000u);
  BOOST_TEST(server.seen().produced < 20'000'000u);
  BOOST_TEST(slow.read_response()->body.size() == 20'000'000u);  // it pauses and goes on
  BOOST_TEST(eventually([&] { return budget.held() == 0; }));

  http_client flooded(server.port());  // one piece that has no room
  flooded.request("GET", "/burst?8000000");
  BOOST_TEST(eventually([&] { return server.seen().gone().size() == 1; }));
  BOOST_TEST(server.seen().gone().back() == "out of memory");
  BOOST_TEST(eventually([&] { return budget.held() == 0; }));
}

}  // namespace
}  // namespace skein::test
