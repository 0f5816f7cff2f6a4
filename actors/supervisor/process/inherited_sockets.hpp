#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace skein::supervisor {

/// A listening socket inherited from the parent process (socket activation). The caller closes it.
struct inherited_socket {
  int fd;
  std::string name;  ///< name from LISTEN_FDNAMES; empty: none
};

/// The sockets of the protocol of sd_listen_fds(3), by the values of its three variables: descriptors from 3 on, if
/// they are for this process. Sets close-on-exec. Errors: invalid_argument naming the variable or the descriptor, for a
/// malformed number and for a descriptor that is not a listening stream socket.
[[nodiscard]] result<std::vector<inherited_socket>> inherited_sockets(std::string_view listen_pid,
                                                                      std::string_view listen_fds,
                                                                      std::string_view names);
/// The same with the variables of the environment.
[[nodiscard]] result<std::vector<inherited_socket>> inherited_sockets();

}  // namespace skein::supervisor
