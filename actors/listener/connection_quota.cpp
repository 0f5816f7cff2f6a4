#include "actors/listener/connection_quota.hpp"

#include "base/check.hpp"

namespace skein::listener {

bool connection_quota::admit(const connection::peer_address& peer) {
  if (open_ >= limits_.connections_max) return false;
  if (!peer.loopback && !peer.trusted) {
    std::uint32_t& count = per_address_[peer.text];
    if (count >= limits_.connections_per_address_max) return false;  // never a new entry: the limit is at least 1
    ++count;
  }
  ++open_;
  return true;
}

void connection_quota::release(const connection::peer_address& peer) {
  check(open_ > 0);
  --open_;
  if (peer.loopback || peer.trusted) return;
  const auto found = per_address_.find(peer.text);
  check(found != per_address_.end());
  if (--found->second == 0) per_address_.erase(found);
}

}  // namespace skein::listener
