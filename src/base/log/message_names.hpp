#pragma once
#include <string_view>

namespace skein::log {

/// The wording from which the MESSAGE_ID of a log message is computed: the message itself, or its first wording if it
/// was reworded since. Rules of operators that match a MESSAGE_ID survive a new wording.
[[nodiscard]] std::string_view first_wording(std::string_view message);

}  // namespace skein::log
