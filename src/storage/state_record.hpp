#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/state_store.hpp"

/// State records without a model: what one says of itself, and the same state for another owner.
namespace skein::storage {

/// A record's fields before its floats, checked against each other and against the checksum.
struct state_contents {
  state_label label;
  state_type type = state_type::fp32;
  struct array {
    std::string name;
    std::vector<std::uint32_t> shape;
    bool operator==(const array&) const = default;
  };
  std::vector<array> arrays;
  std::string_view floats;  ///< of all arrays in order; of the record's bytes
};
/// Errors: damaged, conflict (another format).
[[nodiscard]] result<state_contents> read_state_record(std::string_view bytes);

/// The same floats under another label; `contents` as read_state_record gave them.
[[nodiscard]] std::string relabelled(const state_contents& contents, const state_label& label);

/// As encode_state in state_store.hpp, into memory that is used again.
void encode_state(const state_label& label, const model::state_layout& layout, std::span<const float> state,
                  state_type type, std::string& record);

/// Bytes of a state's record.
[[nodiscard]] std::size_t state_record_bytes(const state_label& label, const model::state_layout& layout,
                                             state_type type);

}  // namespace skein::storage
