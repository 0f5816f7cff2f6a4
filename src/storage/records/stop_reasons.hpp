#pragma once
#include <string_view>

/// Values of version_record::stop_reason that more than one place must know.
namespace skein::storage {

/// The answer was running when the server died: its client had no ending event.
inline constexpr std::string_view cut_by_crash = "crash";

}  // namespace skein::storage
