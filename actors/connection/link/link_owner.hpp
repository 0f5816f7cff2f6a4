#pragma once
#include <memory>
#include <string_view>

namespace skein::connection {

/// What a client_link reports to, and what keeps it alive.
class link_owner {
 public:
  virtual ~link_owner() = default;
  /// Held by every operation on the socket until it completes.
  [[nodiscard]] virtual std::shared_ptr<void> keep_alive() = 0;
  /// The socket took bytes; the next write, if any, has begun.
  virtual void on_sent() = 0;
  /// Ends the connection immediately with a reset.
  virtual void cut(std::string_view why) = 0;
};

}  // namespace skein::connection
