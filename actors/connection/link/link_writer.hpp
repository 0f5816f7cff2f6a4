#pragma once
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <cstdint>
#include <string>

#include "actors/byte_hold.hpp"
#include "actors/connection/http/http.hpp"
#include "actors/connection/link/link_deadlines.hpp"
#include "actors/connection/link/link_owner.hpp"
#include "actors/connection/link/outbound_queue.hpp"
#include "actors/connection/link/stream_socket.hpp"

namespace skein::connection {

/// The sending half of a client's socket: queued bytes, written by a chain of completions with at most one write at a
/// time, and their memory.
class link_writer {
 public:
  /// Everything outlives this.
  link_writer(stream_socket& socket, link_deadlines& deadlines, const connection_limits& limits, link_owner& owner)
      : socket_(socket), deadlines_(deadlines), limits_(limits), owner_(owner) {}

  void push(std::string bytes) { queue_.push(std::move(bytes)); }
  /// outbound_queue::push_chunk
  void push_chunk(std::string bytes) { queue_.push_chunk(std::move(bytes)); }
  /// Starts a write of queued bytes unless one is running.
  void flush();

  /// Bytes queued and not yet taken by the socket.
  [[nodiscard]] std::size_t bytes() const { return queue_.bytes(); }
  [[nodiscard]] bool empty() const { return queue_.empty(); }
  /// Nothing is queued and no write is running.
  [[nodiscard]] bool idle() const { return queue_.empty() && phase_ == phase::idle; }

  /// Reserves memory for bytes that will be queued.
  [[nodiscard]] byte_share::outcome reserve(std::size_t bytes) { return hold_.set(queue_.held_bytes() + bytes); }
  /// Accounts for what is queued. False: the share is exceeded.
  [[nodiscard]] bool account() { return hold_.set_anyway(queue_.held_bytes()); }
  /// byte_hold::move_to
  void charge(const byte_share& share) { hold_.move_to(share); }

  /// After the socket was closed: drops the queue, when a running write no longer reads it.
  void close();

 private:
  enum class phase : std::uint8_t {
    idle,
    writing,
    ending,  ///< closed, but a write still reads the queue
    closed,
  };

  void on_written(const boost::system::error_code& ec, std::size_t count);
  void drop();

  stream_socket& socket_;
  link_deadlines& deadlines_;
  const connection_limits& limits_;
  link_owner& owner_;
  outbound_queue queue_;
  byte_hold hold_;
  phase phase_ = phase::idle;
};

}  // namespace skein::connection
