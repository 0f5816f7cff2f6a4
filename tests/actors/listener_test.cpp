// Shows how sockets are taken and given up: addresses, unix sockets, limits, running out of descriptors, drain and
// stop. Real sockets on loopback; the service is a toy.
#include "actors/listener/listener.hpp"

#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/system/error_code.hpp>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <optional>
#include <set>

#include "actors/connection/connection.hpp"
#include "actors/listener/connection_quota.hpp"
#include "tests/actors/toy_server.hpp"
#include "tests/support/failing_new.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

using connection::connection_limits;
using connection::peer_address;

steady_time in_seconds(int seconds) { return real_clock().now() + std::chrono::seconds(seconds); }

void expect_hello(http_client client) {
  client.request("GET", "/hello");
  const auto response = client.read_response();
  BOOST_REQUIRE(response);
  BOOST_TEST(response->body == "hello");
}

/// Lowers the limit on descriptors to what is in use and `spare` more, until it goes.
class few_descriptors {
 public:
  explicit few_descriptors(std::size_t spare) {
    getrlimit(RLIMIT_NOFILE, &before_);
    rlimit low = before_;
    low.rlim_cur = highest() + 1 + spare;
    setrlimit(RLIMIT_NOFILE, &low);
  }
  ~few_descriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  few_descriptors(const few_descriptors&) = delete;  // restores once
  few_descriptors& operator=(const few_descriptors&) = delete;

 private:
  /// Fills the gaps below with the highest descriptor, so that the limit counts exactly.
  std::size_t highest() {
    int fd = 0;
    while ((fd = ::dup(0)) >= 0 && static_cast<std::size_t>(fd) >= open_descriptors() + 1) ::close(fd);
    const auto top = static_cast<std::size_t>(fd);
    ::close(fd);
    return top - 1;
  }

  rlimit before_{};
};

BOOST_AUTO_TEST_CASE(lanes_take_turns) {
  toy_server server({}, 3);
  std::vector<http_client> clients;
  for (int i = 0; i < 6; ++i) {
    clients.emplace_back(server.port());
    clients.back().request("GET", "/hello");
    BOOST_TEST(clients.back().read_response()->status == 200u);
  }
  BOOST_TEST(server.door().counts().open.load() == 6u);
  BOOST_TEST(server.door().counts().accepted.load() == 6u);
  std::set<std::uint64_t> numbers;
  for (const auto& head : server.seen().heads()) numbers.insert(head.connection_number);
  BOOST_TEST(numbers.size() == 6u);
}

BOOST_AUTO_TEST_CASE(addresses_and_ports) {
  toy_server server;
  const auto named = server.door().listen_tcp("localhost", 0);
  BOOST_REQUIRE(named.has_value());
  BOOST_TEST(*named > 0);
  expect_hello(http_client(*named));
  if (const auto six = server.door().listen_tcp("[::1]", 0)) {  // there are machines without IPv6
    expect_hello(http_client(*six, "::1"));
    expect_hello(http_client(*named, "::1"));
    const auto dual = server.door().listen_tcp("::", 0);
    BOOST_REQUIRE(dual.has_value());
    expect_hello(http_client(*dual, "127.0.0.1"));
    BOOST_TEST(server.seen().heads().back().remote_address == "127.0.0.1");
    BOOST_TEST(server.seen().heads().back().loopback);
  }
  const auto taken = server.door().listen_tcp("127.0.0.1", server.port());
  BOOST_REQUIRE(taken.has_error());
  BOOST_TEST((taken.error().kind == error_kind::io));
  BOOST_TEST(taken.error().message.find("in use") != std::string::npos);
  BOOST_TEST((server.door().listen_tcp("no such host", 0).error().kind == error_kind::invalid_argument));
}

BOOST_AUTO_TEST_CASE(unix_sockets) {
  const temporary_folder folder;
  const std::string path = folder.path() / "skein.sock";
  {
    toy_server server;
    BOOST_REQUIRE(server.door().listen_unix(path).has_value());
    expect_hello(http_client(path));
    BOOST_TEST(server.seen().heads().back().loopback);
    BOOST_TEST(server.seen().heads().back().remote_address == "unix:" + std::to_string(getuid()));
    toy_server second;
    BOOST_TEST(second.door().listen_unix(path).has_error());
  }
  BOOST_TEST(!std::filesystem::exists(path));
  BOOST_TEST(toy_server().door().listen_unix(std::string(200, 'x')).has_error());
}

BOOST_AUTO_TEST_CASE(an_abandoned_unix_socket_is_replaced_and_a_file_is_not) {
  const temporary_folder folder;
  const std::string path = folder.path() / "skein.sock";
  {
    toy_server server;
    BOOST_REQUIRE(server.door().listen_unix(path).has_value());
    std::filesystem::create_hard_link(path, path + ".left");  // survives the orderly end, as after a crash
  }
  toy_server server;
  BOOST_REQUIRE(server.door().listen_unix(path + ".left").has_value());
  expect_hello(http_client(path + ".left"));
  std::filesystem::create_directory(path);
  BOOST_TEST(server.door().listen_unix(path).has_error());
}

BOOST_AUTO_TEST_CASE(sockets_made_by_others) {
  toy_server server;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  BOOST_TEST(server.door().adopt(fd).has_error());  // does not listen
}

BOOST_AUTO_TEST_CASE(too_many_connections_are_turned_away) {
  connection_limits limits;
  limits.connections_max = 2;
  toy_server server(limits);
  std::vector<http_client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server.port());
    clients.back().request("GET", "/hello");
    BOOST_TEST(clients.back().read_response()->status == 200u);
  }
  http_client third(server.port());
  const auto refused = third.read_response();
  BOOST_REQUIRE(refused);
  BOOST_TEST(refused->status == 503u);
  BOOST_TEST(refused->header("retry-after") == "1");
  BOOST_TEST(third.closed_by_server());
  BOOST_TEST(server.door().counts().refused.load() == 1u);
  clients.pop_back();
  BOOST_TEST(eventually([&] { return server.door().counts().open == 1; }));
  expect_hello(http_client(server.port()));
}

BOOST_AUTO_TEST_CASE(an_address_has_its_share) {
  connection_limits limits;
  limits.connections_max = 6;
  limits.connections_per_address_max = 2;
  listener::connection_quota quota(limits);
  const peer_address stranger{"1.2.3.4", false, false}, other{"1.2.3.5", false, false};
  const peer_address proxy{"10.0.0.1", false, true}, local{"127.0.0.1", true, false};
  BOOST_TEST(quota.admit(stranger));
  BOOST_TEST(quota.admit(stranger));
  BOOST_TEST(!quota.admit(stranger));
  BOOST_TEST(quota.admit(other));
  BOOST_TEST((quota.admit(proxy) && quota.admit(proxy) && quota.admit(proxy)));
  BOOST_TEST(quota.open() == 6u);
  BOOST_TEST(!quota.admit(local));  // the limit in all holds for everyone
  quota.release(stranger);
  BOOST_TEST(quota.admit(stranger));
  BOOST_TEST(!quota.admit(stranger));
}

BOOST_AUTO_TEST_CASE(running_out_of_descriptors_passes) {
  toy_server server;
  http_client first(server.port());
  first.request("GET", "/hello");
  BOOST_TEST(first.read_response()->status == 200u);
  // UBSan looks at a vtable it does not know through a pipe, for which there will be no descriptor: show it this one
  // now.
  BOOST_TEST(!boost::system::error_code(EMFILE, boost::system::system_category()).message().empty());
  std::optional<http_client> waiting;
  {
    const few_descriptors limit(1);
    waiting.emplace(server.port());  // takes the last one; the server finds none for its side
    BOOST_TEST(::dup(0) == -1);
    waiting->request("GET", "/hello");
    first.request("GET", "/hello");  // those who are in are served on
    BOOST_TEST(first.read_response()->status == 200u);
    BOOST_TEST(server.door().counts().accepted.load() == 1u);
  }
  BOOST_TEST(waiting->read_response()->status == 200u);
}

BOOST_AUTO_TEST_CASE(accepting_goes_on_after_a_lack_of_memory) {
  connection_limits limits;
  limits.connections_max = 1;
  toy_server server(limits);
  std::optional<http_client> only(server.port());
  only->request("GET", "/hello");
  BOOST_TEST(only->read_response()->status == 200u);
  std::optional<failing_new> lack;  // of the io thread
  server.run_on_lane([&] { lack.emplace(16); });
  BOOST_TEST(http_client(server.port()).closed_by_server());  // there is no memory for the words of a refusal
  server.run_on_lane([&] { lack.reset(); });
  only.reset();
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
  expect_hello(http_client(server.port()));
}

BOOST_AUTO_TEST_CASE(a_connection_without_memory_gives_up_its_place) {
  toy_server server({}, 2);
  expect_hello(http_client(server.port()));
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
  std::optional<failing_new> lack;  // of the second lane, which is next; not of what tells the first one of the end
  server.run_on_lane([&] { lack.emplace(sizeof(connection::connection)); }, 1);
  BOOST_TEST(http_client(server.port()).closed_by_server());
  BOOST_TEST(eventually([&] { return server.door().counts().open == 0; }));
  server.run_on_lane([&] { lack.reset(); }, 1);
  for (int i = 0; i < 2; ++i) expect_hello(http_client(server.port()));
}

BOOST_AUTO_TEST_CASE(draining_lets_answers_finish) {
  toy_server server({}, 2);
  http_client idle(server.port());
  idle.request("GET", "/hello");
  BOOST_TEST(idle.read_response()->status == 200u);
  http_client busy(server.port());
  busy.request("GET", "/wait");
  BOOST_REQUIRE(eventually([&] { return server.seen().heads().size() == 2; }));

  server.door().stop_accepting();
  server.door().close_idle();
  BOOST_TEST(idle.closed_by_server());
  BOOST_TEST(eventually([&] { return server.door().counts().open == 1; }));
  BOOST_CHECK_THROW(http_client(server.port()), std::runtime_error);
  server.run_on_lane([&] { server.seen().last_writer()->respond(200, {}, "done"); }, 1);
  const auto response = busy.read_response();
  BOOST_TEST(response->body == "done");
  BOOST_TEST(response->header("connection") == "close");
  BOOST_TEST(busy.closed_by_server());
  BOOST_TEST(server.seen().gone().empty());
}

BOOST_AUTO_TEST_CASE(stop_cuts_what_is_left_at_the_deadline) {
  toy_server server({}, 2);
  std::vector<http_client> clients;
  for (std::size_t i = 0; i < 4; ++i) {
    clients.emplace_back(server.port());
    clients.back().request("GET", "/wait-stream");
    BOOST_TEST(clients.back().read_head()->status == 200u);
  }
  server.door().stop(real_clock().now() + std::chrono::milliseconds(50));
  BOOST_TEST(server.door().counts().open.load() == 0u);
  BOOST_TEST((server.seen().gone() == std::vector<std::string>(4, "server stopping")));
  BOOST_TEST(server.seen().calls == 0);
  for (auto& client : clients) BOOST_TEST(!client.read_body());  // broken, not ended
  server.door().stop(in_seconds(10));                            // again: nothing left to do
}

BOOST_AUTO_TEST_CASE(stop_waits_for_the_last_answer) {
  toy_server server;
  http_client client(server.port());
  client.request("GET", "/wait");
  BOOST_REQUIRE(eventually([&] { return server.seen().heads().size() == 1; }));
  server.run_on_lane([&] { server.seen().last_writer()->respond(200, {}, "done"); });
  BOOST_TEST(client.read_response()->body == "done");
  client.close();
  server.door().stop(in_seconds(60));
  BOOST_TEST(server.seen().gone().empty());
}

}  // namespace
}  // namespace skein::test
