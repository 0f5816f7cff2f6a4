#pragma once
#include <cstdint>

namespace skein::grammar {

/// Which rules a schema follows. `unknown`: it has no $schema, or one that is not known.
enum class dialect : std::uint8_t { unknown, draft3, draft4, draft6, draft7, draft2019, draft2020 };

/// What `format` means. `automatic`: an assertion, and of a format that no automaton can decide, a part of it, with a
/// note. Refused if the whole schema is nothing but a format, because validators disagree about it. `asserted`: formats
/// that cannot be decided are refused.
enum class format_rule : std::uint8_t { automatic, asserted, annotation };

}  // namespace skein::grammar
