#pragma once
#include <cstdint>

namespace skein::grammar {

/// Which rules a schema follows. `unknown`: it has no $schema.
enum class dialect : std::uint8_t { unknown, draft4, draft6, draft7, draft2019, draft2020 };

/// What `format` means. `automatic`: an assertion where `type` says that the value is a string, and refused elsewhere,
/// because validators disagree.
enum class format_rule : std::uint8_t { automatic, asserted, annotation };

}  // namespace skein::grammar
