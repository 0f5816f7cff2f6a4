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
  struct array {
    std::string name;
    std::vector<std::uint32_t> shape;
    dtype type = dtype::f32;  ///< f32 or f16
  };
  std::vector<array> arrays;
  std::string_view elements;  ///< of all arrays in order; a view of the record
};
/// Errors: damaged, conflict (another format).
[[nodiscard]] result<state_contents> read_state_record(std::string_view bytes);

/// A record with the same elements under another label; `contents` as returned by read_state_record.
[[nodiscard]] std::string relabelled(const state_contents& contents, const state_label& label);

/// As encode_state in state_store.hpp, but reuses the memory of `record`.
void encode_state(const state_label& label, const model::state_view& state, std::optional<dtype> type,
                  std::string& record);

/// Size in bytes of the record of a state that has this format in memory.
[[nodiscard]] std::size_t state_record_bytes(const state_label& label, const model::state_format& format,
                                             std::optional<dtype> type);

}  // namespace skein::storage
