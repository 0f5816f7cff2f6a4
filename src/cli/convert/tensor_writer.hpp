#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "cli/safetensors_writer.hpp"
#include "kernels/weights/weight_format.hpp"
#include "model/model_info.hpp"

/// Converts tensors of a checkpoint to those of a .safetensors file.
namespace skein::cli {

/// One tensor of the output.
struct conversion {
  const model::named_tensor* from = nullptr;
  std::optional<kernels::weight_format> to = {};  ///< none: bit for bit as it is
};

/// Whether the output has the codes and scales of the blocks in the input, which are in the same format.
[[nodiscard]] bool keeps_codes(const conversion& each);

/// Their descriptions in the file, in order. A quantised matrix NAME becomes two: NAME.FORMAT with the codes, row by
/// row (int8: I8 [rows, columns]; fp8: U8 [rows, columns]; int4, nf4: U8 [rows, columns / 2 rounded up], the first code
/// of a byte in its low half), and NAME.scales [rows, groups of a row], BF16, or F16 if the input's are kept.
[[nodiscard]] std::vector<safetensors_writer::entry> entries_of(std::span<const conversion> all);

/// Writes the elements of all, row-major, in the same order, with all cores. Holds a few MiB for each of them at a
/// time. `progress` is called on this thread. Types are rounded, and matrices quantised, as an engine does that loads
/// the original in this format. Errors: unsupported for finite values that the new type makes infinite; names the
/// tensor.
[[nodiscard]] result<void> write_tensors(std::span<const conversion> all, safetensors_writer& to,
                                         const std::function<void(std::uint64_t done, std::uint64_t total)>& progress);

}  // namespace skein::cli
