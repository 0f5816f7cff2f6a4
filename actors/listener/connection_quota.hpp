#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "actors/connection/http/http.hpp"
#include "actors/connection/http/peer_address.hpp"

namespace skein::listener {

/// Counts connections in total and per address against the limits. Loopback and trusted proxies have no limit per
/// address, since many clients may be behind them.
class connection_quota {
 public:
  explicit connection_quota(const connection::connection_limits& limits)
      : connections_max_(limits.connections_max), per_address_max_(limits.connections_per_address_max) {}

  /// Applies new limits; open connections stay open.
  void change(const connection::connection_limits& limits) {
    connections_max_ = limits.connections_max;
    per_address_max_ = limits.connections_per_address_max;
  }

  /// Counts one more connection of that peer; false, without counting it, if a limit is reached.
  [[nodiscard]] bool admit(const connection::peer_address& peer);
  /// The connection has ended.
  void release(const connection::peer_address& peer);

  [[nodiscard]] std::uint32_t open() const { return open_; }

 private:
  std::uint32_t connections_max_;
  std::uint32_t per_address_max_;
  std::uint32_t open_ = 0;
  std::unordered_map<std::string, std::uint32_t> per_address_;  ///< only addresses that have a limit
};

}  // namespace skein::listener
