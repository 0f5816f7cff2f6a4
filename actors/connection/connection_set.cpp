#include "actors/connection/connection_set.hpp"

#include <vector>

#include "actors/connection/connection.hpp"

namespace skein::connection {

void connection_set::serve(stream_socket socket, peer_address peer, std::uint64_t number,
                           std::function<void(ending)> on_end) {
  std::shared_ptr<connection> made;
  try {
    made = std::make_shared<connection>(std::move(socket), std::move(peer), number, shared_from_this(), on_end);
    connections_.insert(made.get());
    made->start();
  } catch (...) {
    made ? made->cut("internal error") : on_end(ending::cut);
    throw;
  }
}

void connection_set::close_idle() {
  closing_ = true;
  for (connection* c : connections_) c->wake();
}

void connection_set::cut_all(std::string_view why) {
  closing_ = true;
  std::vector<std::shared_ptr<connection>> all;  // a cut removes the connection from the set
  all.reserve(connections_.size());
  for (connection* c : connections_) all.push_back(c->shared_from_this());
  for (const auto& c : all) c->cut(why);
}

}  // namespace skein::connection
