// Shows what clients over TLS get who read slowly or not at all, and that a relay counts as a connection until its end.
// Real sockets; the service is a toy.
#include <netinet/in.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "actors/listener/listener.hpp"
#include "actors/listener/listening_socket.hpp"
#include "actors/listener/tls_door.hpp"
#include "tests/actors/toy_server.hpp"
#include "tests/support/http_client.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

using connection::connection_limits;

template <auto release>
struct released_by {
  template <typename T>
  void operator()(T* owned) const {
    release(owned);
  }
};

/// A door with a certificate of its own.
std::shared_ptr<const listener::tls_door> make_door(const std::filesystem::path& folder) {
  const std::unique_ptr<EVP_PKEY, released_by<EVP_PKEY_free>> key(EVP_EC_gen("P-256"));
  const std::unique_ptr<X509, released_by<X509_free>> certificate(X509_new());
  X509_set_version(certificate.get(), X509_VERSION_3);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  BOOST_REQUIRE(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);

  const std::string certificate_file = folder / "cert.pem", key_file = folder / "key.pem";
  using file = std::unique_ptr<std::FILE, released_by<std::fclose>>;
  PEM_write_X509(file(std::fopen(certificate_file.c_str(), "w")).get(), certificate.get());
  PEM_write_PrivateKey(file(std::fopen(key_file.c_str(), "w")).get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  auto door = std::make_shared<listener::tls_door>();
  BOOST_REQUIRE(door->load(certificate_file, key_file).has_value());
  return door;
}

enum class stream_end { close_notify, reset, other };

/// A client over TLS that reads only when it is told to. It takes over the socket of the address.
class tls_client {
 public:
  tls_client(const sockaddr* address, socklen_t size)
      : fd_(::socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0)), context_(SSL_CTX_new(TLS_client_method())) {
    const timeval patience{.tv_sec = 20, .tv_usec = 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssl_.reset(SSL_new(context_.get()));
    SSL_set_fd(ssl_.get(), fd_);
    if (::connect(fd_, address, size) != 0 || SSL_connect(ssl_.get()) != 1) throw std::runtime_error("no TLS");
  }
  ~tls_client() { ::close(fd_); }
  tls_client(const tls_client&) = delete;  // owns a socket
  tls_client& operator=(const tls_client&) = delete;

  void send(const std::string& text) {
    BOOST_REQUIRE(SSL_write(ssl_.get(), text.data(), static_cast<int>(text.size())) > 0);
  }
  /// Says that it sends nothing more.
  void end_sending() { SSL_shutdown(ssl_.get()); }
  /// What comes until the end, and how that was.
  std::pair<std::string, stream_end> read_to_end() {
    std::string all, piece(16384, '\0');
    int count = 0;
    while ((count = SSL_read(ssl_.get(), piece.data(), static_cast<int>(piece.size()))) > 0)
      all.append(piece, 0, static_cast<std::size_t>(count));
    const int system = errno, kind = SSL_get_error(ssl_.get(), count);
    if (kind == SSL_ERROR_ZERO_RETURN) return {all, stream_end::close_notify};
    return {all, kind == SSL_ERROR_SYSCALL && system == ECONNRESET ? stream_end::reset : stream_end::other};
  }

 private:
  int fd_;
  std::unique_ptr<SSL_CTX, released_by<SSL_CTX_free>> context_;
  std::unique_ptr<SSL, released_by<SSL_free>> ssl_;
};

/// Accepts TLS on a port, and on a unix socket, whose buffers do not grow.
class tls_server {
 public:
  explicit tls_server(const connection_limits& limits) : server_(limits) {
    const auto door = make_door(folder_.path());
    port_ = server_.door().listen_tls("127.0.0.1", 0, door).value();
    auto made = listener::listen_on_unix(path());
    BOOST_REQUIRE(server_.door().adopt(made->release(), door).has_value());
    server_.run_on_lane([] {});  // the acceptors have all their descriptors
  }

  toy_server* operator->() { return &server_; }

  std::unique_ptr<tls_client> over_tcp() {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return std::make_unique<tls_client>(reinterpret_cast<const sockaddr*>(&address), sizeof address);
  }

  /// A client that has asked for more than its socket holds, but not more than the relay's socket holds too, and reads
  /// nothing. The connection has written the whole response and is closed; the relay still has a part of it.
  std::unique_ptr<tls_client> with_an_unread_answer() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof address.sun_path - 1);
    auto client = std::make_unique<tls_client>(reinterpret_cast<const sockaddr*>(&address), sizeof address);
    client->send("GET /burst?" + std::to_string(answer_bytes) + " HTTP/1.0\r\n\r\n");
    BOOST_REQUIRE(eventually([&] { return server_.seen().heads().size() == 1 && server_.seen().calls == 0; }));
    const std::size_t before = open_descriptors();
    client->end_sending();
    BOOST_REQUIRE(eventually([&] { return open_descriptors() < before; }));
    return client;
  }

  static constexpr std::size_t answer_bytes = 260'000;

 private:
  [[nodiscard]] std::string path() const { return folder_.path() / "tls.sock"; }

  const temporary_folder folder_;
  toy_server server_;
  std::uint16_t port_ = 0;
};

BOOST_AUTO_TEST_CASE(a_relay_keeps_its_place_until_the_client_has_read_the_answer) {
  connection_limits limits;
  limits.connections_max = 1;
  tls_server server(limits);
  const auto slow = server.with_an_unread_answer();
  http_client refused(server->port());
  refused.request("GET", "/hello");
  BOOST_TEST(refused.read_response()->status == 503u);
  BOOST_TEST(server->door().counts().open.load() == 1u);

  const auto [text, end] = slow->read_to_end();
  BOOST_TEST(text.size() - text.find("\r\n\r\n") - 4 == server.answer_bytes);
  BOOST_TEST((end == stream_end::close_notify));
  BOOST_TEST(eventually([&] { return server->door().counts().open == 0; }));
  http_client next(server->port());
  next.request("GET", "/hello");
  BOOST_TEST(next.read_response()->status == 200u);
}

BOOST_AUTO_TEST_CASE(an_answer_that_is_not_read_ends_with_the_write_deadline) {
  connection_limits limits;
  limits.write_timeout_ms = 200;
  tls_server server(limits);
  const std::size_t before = open_descriptors();
  const auto deaf = server.with_an_unread_answer();
  BOOST_TEST(eventually([&] { return server->door().counts().open == 0 && open_descriptors() == before + 1; }));
  const auto [text, end] = deaf->read_to_end();
  BOOST_TEST(text.size() < server.answer_bytes);
  BOOST_TEST((end != stream_end::close_notify));
}

BOOST_AUTO_TEST_CASE(clients_that_stop_reading_are_reset) {
  connection_limits limits;
  limits.write_timeout_ms = 200;
  tls_server server(limits);
  const std::size_t before = open_descriptors();
  std::vector<std::unique_ptr<tls_client>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(server.over_tcp());
    clients.back()->send("GET /flood?100000000 HTTP/1.0\r\n\r\n");
  }
  BOOST_TEST(eventually([&] { return server->seen().gone().size() == clients.size(); }));
  BOOST_TEST(
      eventually([&] { return server->door().counts().open == 0 && open_descriptors() == before + clients.size(); }));
  // Without Content-Length and chunks only the end of the stream tells that the body is incomplete.
  for (const auto& client : clients) BOOST_TEST((client->read_to_end().second == stream_end::reset));
}

BOOST_AUTO_TEST_CASE(an_aborted_answer_comes_as_far_as_it_got) {
  tls_server server({});
  const auto client = server.over_tcp();
  client->send("GET /abort HTTP/1.0\r\n\r\n");
  const auto [text, end] = client->read_to_end();
  BOOST_TEST(text.ends_with("data: half\n\n"));
  BOOST_TEST((end == stream_end::reset));
  BOOST_TEST(eventually([&] { return server->door().counts().open == 0; }));
}

BOOST_AUTO_TEST_CASE(stop_cuts_relays_too) {
  tls_server server({});
  const auto deaf = server.with_an_unread_answer();
  const steady_time start = real_clock().now();
  server->door().stop(start + std::chrono::milliseconds(50));
  BOOST_TEST((real_clock().now() - start < std::chrono::seconds(8)));
  BOOST_TEST(server->door().counts().open.load() == 0u);
  BOOST_TEST((deaf->read_to_end().second != stream_end::close_notify));
}

}  // namespace
}  // namespace skein::test
