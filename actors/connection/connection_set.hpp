#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <unordered_set>

#include "actors/connection/connection_counts.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/http/peer_address.hpp"
#include "actors/connection/link/stream_socket.hpp"

namespace skein::connection {

class connection;

/// How a connection ended: with everything sent, or early, with a reset.
enum class ending : std::uint8_t { regular, cut };

/// The connections of one io thread and their shared data. Every function runs on that thread. Connections keep
/// themselves and the set alive until they close.
class connection_set : public std::enable_shared_from_this<connection_set> {
 public:
  connection_set(const connection_limits& limits, http_service& service, connection_counts& counts)
      : limits_(limits), service_(service), counts_(counts) {}

  /// Serves a socket of this io thread until it closes, then calls `on_end` once, on this thread. If it throws for lack
  /// of memory, the socket is closed and `on_end` was called.
  void serve(stream_socket socket, peer_address peer, std::uint64_t number, std::function<void(ending)> on_end);

  /// Closes connections that wait for a request; the others close after their current response, which sends Connection:
  /// close.
  void close_idle();
  /// Cuts every connection; running exchanges get gone(why).
  void cut_all(std::string_view why);

  /// Applies new limits, also to open connections.
  void change(const connection_limits& limits) { limits_ = limits; }

  [[nodiscard]] const connection_limits& limits() const { return limits_; }
  [[nodiscard]] http_service& service() { return service_; }
  [[nodiscard]] connection_counts& counts() { return counts_; }
  [[nodiscard]] bool closing() const { return closing_; }
  /// Buffer for the last read of a socket: used by one connection at a time, until it waits again.
  [[nodiscard]] std::array<char, 16 * 1024>& scratch() { return scratch_; }

 private:
  friend class connection;
  void forget(connection* ended) { connections_.erase(ended); }

  connection_limits limits_;
  http_service& service_;
  connection_counts& counts_;
  std::unordered_set<connection*> connections_;
  bool closing_ = false;
  std::array<char, 16 * 1024> scratch_;
};

}  // namespace skein::connection
