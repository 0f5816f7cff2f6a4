#pragma once
#include <cstdint>
#include <string>

namespace skein {

/// A token of the model's vocabulary; 0 is the end of text. Negative: none.
using token_id = std::int32_t;
inline constexpr token_id no_token = -1;
inline constexpr token_id end_of_text = 0;

/// The place of one sequence's state in an engine: 0 .. engine_info::slots - 1.
using slot_id = std::uint32_t;

/// Identifies one generation call; unique within a process.
using request_id = std::uint64_t;

/// The owner of data; "default" if the server has no keys. Every message and record carries it.
using tenant_id = std::string;
inline const char* const default_tenant = "default";

}  // namespace skein
