#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "storage/states/state_store.hpp"

/// Access to state records without a model: read the label, and write the same state under another label.
namespace skein::storage {

/// A record's fields, checked for consistency and against the checksum.
struct state_contents {
  state_label label;
  state_type type = state_type::fp32;
  struct array {
    std::string name;
    std::vector<std::uint32_t> shape;
    bool operator==(const array&) const = default;
  };
  std::vector<array> arrays;
  std::string_view floats;  ///< of all arrays in order; a view of the record
};
/// Errors: damaged, conflict (another format).
[[nodiscard]] result<state_contents> read_state_record(std::string_view bytes);

/// A record with the same floats under another label; `contents` as returned by read_state_record.
[[nodiscard]] std::string relabelled(const state_contents& contents, const state_label& label);

/// As encode_state in state_store.hpp, but reuses the memory of `record`.
void encode_state(const state_label& label, const model::state_layout& layout, std::span<const float> state,
                  state_type type, std::string& record);

/// Size of a state's record in bytes.
[[nodiscard]] std::size_t state_record_bytes(const state_label& label, const model::state_layout& layout,
                                             state_type type);

}  // namespace skein::storage
