#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace skein::supervisor {

/// A listening socket that whoever started the process made for it. Its owner closes it.
struct inherited_socket {
  int fd;
  std::string name;  ///< as its maker calls it; empty: it does not
};

/// What sd_listen_fds(3) describes, by the values of its three variables: sockets from descriptor 3 on, if they are for
/// this process. They are not inherited further. Errors: invalid_argument naming the variable or the descriptor, for a
/// number that is none and for what is no listening stream socket.
[[nodiscard]] result<std::vector<inherited_socket>> inherited_sockets(std::string_view listen_pid,
                                                                      std::string_view listen_fds,
                                                                      std::string_view names);
/// Of the environment.
[[nodiscard]] result<std::vector<inherited_socket>> inherited_sockets();

}  // namespace skein::supervisor
