#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein::test {

/// A response as a client sees it; names of headers in lower case, chunks put together.
struct http_response {
  unsigned status = 0;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The first header of that lower-case name, or empty.
  [[nodiscard]] std::string header(std::string_view name) const;
};

/// One event of a text/event-stream.
struct server_event {
  std::string name;  ///< of its "event:" line, or empty
  std::string data;  ///< its "data:" lines
};

/// A client on a plain socket, so that tests decide every byte and every hang-up. Each wait has a deadline of some
/// seconds and throws std::runtime_error when it passes: a hanging server is a failed test, not a hanging one.
class http_client {
 public:
  explicit http_client(std::uint16_t port, const std::string& address = "127.0.0.1");
  explicit http_client(const std::string& unix_path);
  ~http_client();
  http_client(http_client&& other) noexcept;
  http_client& operator=(http_client&&) = delete;

  /// Sends these bytes; false when the server has closed.
  bool send(std::string_view bytes);
  /// Sends a whole HTTP/1.1 request with Host, and with Content-Length if there is a body.
  bool request(std::string_view method, std::string_view target, std::string_view body = "",
               std::string_view more_headers = "");

  /// The next whole response, "100 Continue" included; nothing when the server closed before its end. `to_head`: the
  /// request was HEAD, so no body follows.
  std::optional<http_response> read_response(bool to_head = false);
  /// Status and headers only; read_event or read_body then take the body.
  std::optional<http_response> read_head();
  /// The next event of the body; nothing at its end.
  std::optional<server_event> read_event();
  /// The rest of the body; nothing when it broke off.
  std::optional<std::string> read_body();
  /// Everything as it comes, until the server closes.
  std::string read_to_end();
  /// Waits for the server to close; false when it sent something instead.
  bool closed_by_server();

  void shutdown_send();
  void close();
  /// Closes with a reset instead of an orderly end.
  void reset();

 private:
  enum class framing { none, sized, chunked, until_close };

  bool fill();
  bool fill_body();
  std::optional<std::string> take_line();

  int fd_ = -1;
  std::string received_;  ///< and not yet parsed
  std::string body_;      ///< parsed and not yet taken
  framing framing_ = framing::none;
  std::size_t remaining_ = 0;  ///< of a sized body
  bool body_ended_ = true;
};

}  // namespace skein::test
