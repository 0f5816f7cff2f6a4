#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>

#include "actors/connection/http.hpp"
#include "actors/connection/peer_address.hpp"

namespace skein::listener {

/// How many connections there are, in all and for each address, against the limits. This machine and trusted proxies
/// have no limit of their own: many clients may be behind them.
class connection_quota {
 public:
  explicit connection_quota(const connection::connection_limits& limits)
      : connections_max_(limits.connections_max), per_address_max_(limits.connections_per_address_max) {}

  /// From now on these limits count; nobody is turned away for them who is here.
  void change(const connection::connection_limits& limits) {
    connections_max_ = limits.connections_max;
    per_address_max_ = limits.connections_per_address_max;
  }

  /// Counts one more connection of that peer; false, and nothing counted, when that is too many.
  [[nodiscard]] bool admit(const connection::peer_address& peer);
  /// The connection is over.
  void release(const connection::peer_address& peer);

  [[nodiscard]] std::uint32_t open() const { return open_; }

 private:
  std::uint32_t connections_max_;
  std::uint32_t per_address_max_;
  std::uint32_t open_ = 0;
  std::unordered_map<std::string, std::uint32_t> per_address_;  ///< addresses that have a limit
};

}  // namespace skein::listener
