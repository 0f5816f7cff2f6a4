#include "actors/device/device_mailbox.hpp"

#include <utility>

template class skein::bounded_mailbox<skein::device::message>;

namespace skein::device {

message::message(message&&) noexcept = default;
message& message::operator=(message&&) noexcept = default;
message::~message() = default;

event::event(event&&) noexcept = default;
event& event::operator=(event&&) noexcept = default;
event::~event() = default;

}  // namespace skein::device
