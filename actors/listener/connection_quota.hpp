#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "actors/connection/http/peer_address.hpp"
#include "config/config.hpp"

namespace skein::listener {

/// Counts connections in total and per address against the limits. Loopback and trusted proxies have no limit per
/// address, since many clients may be behind them.
class connection_quota {
 public:
  explicit connection_quota(const config::limit_settings& limits) : limits_(limits) {}

  /// Applies new limits; open connections stay open.
  void change(const config::limit_settings& limits) { limits_ = limits; }

  /// Counts one more connection of that peer; false, without counting it, if a limit is reached.
  [[nodiscard]] bool admit(const connection::peer_address& peer);
  /// The connection has ended.
  void release(const connection::peer_address& peer);

  [[nodiscard]] std::uint32_t open() const { return open_; }

 private:
  config::limit_settings limits_;
  std::uint32_t open_ = 0;
  std::unordered_map<std::string, std::uint32_t> per_address_;  ///< only addresses that have a limit
};

}  // namespace skein::listener
