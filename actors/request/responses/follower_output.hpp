#pragma once
#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "actors/byte_share.hpp"
#include "actors/connection/back_pressure.hpp"
#include "actors/connection/http/http.hpp"
#include "base/error.hpp"

namespace skein::request {

/// The stream of a client that follows a running response, on the client's io thread. The response's events so far may
/// still be being written when the next ones arrive, or the client's network may take them more slowly. Events are kept
/// until it is their turn, in the client's share of the memory.
class follower_output {
 public:
  /// `outbound_bytes_max`: limits.outbound_bytes_max. A client is cut off for new events that are kept as it is for
  /// those in its connection's queue.
  follower_output(std::shared_ptr<connection::response_writer> out, byte_share share, std::size_t outbound_bytes_max)
      : out_(std::move(out)), share_(std::move(share)), outbound_bytes_max_(outbound_bytes_max) {}

  /// Sends the events so far, in pieces, and then those that have arrived since.
  void begin(connection::header_list headers, std::string so_far);
  void write(std::string events);
  void end();
  void abort();
  /// The client is gone.
  void drop();
  /// The connection's queue has room again.
  void writable() { send(); }

  /// An event could not be kept: the stream cannot begin.
  [[nodiscard]] const std::optional<error>& lost() const { return lost_; }

 private:
  struct kept_events {
    std::string text;
    byte_budget::lease memory;
    bool late;  // kept because the client is slow
  };
  void keep(std::string events);
  void send();
  [[nodiscard]] std::string next_piece();

  std::shared_ptr<connection::response_writer> out_;
  byte_share share_;
  const std::size_t outbound_bytes_max_;
  std::deque<kept_events> kept_;
  std::size_t sent_ = 0;        // bytes of the first of these
  std::size_t late_bytes_ = 0;  // of those that are late
  connection::back_pressure pressure_;
  std::optional<error> lost_;
  bool begun_ = false;
  bool over_ = false;  // no event follows
  bool aborted_ = false;
};

}  // namespace skein::request
