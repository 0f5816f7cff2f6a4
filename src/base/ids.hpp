#pragma once
#include <cstdint>
#include <string>

namespace skein {

/// A token of the model's vocabulary; 0 is the end of text. Negative: none.
using token_id = std::int32_t;
inline constexpr token_id no_token = -1;
inline constexpr token_id end_of_text = 0;

/// A place for one sequence's state in an engine: 0 .. engine_info::slots - 1.
using slot_id = std::uint32_t;

/// One generation call, unique in the life of the process.
using request_id = std::uint64_t;

/// Whose data this is; "default" until keys exist. Travels with every message and record.
using tenant_id = std::string;
inline const char* const default_tenant = "default";

}  // namespace skein
