#include "actors/persistence/shared/persistence_mailbox.hpp"

#include <utility>

template class skein::bounded_mailbox<skein::persistence::message_in>;

namespace skein::persistence {

message_in::message_in(message_in&&) noexcept = default;
message_in& message_in::operator=(message_in&&) noexcept = default;
message_in::~message_in() = default;

reply::reply(reply&&) noexcept = default;
reply& reply::operator=(reply&&) noexcept = default;
reply::~reply() = default;

}  // namespace skein::persistence
