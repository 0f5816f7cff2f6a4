#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"
#include "model/checkpoint.hpp"

/// Looks up tensors of a checkpoint by name, with actionable errors.
namespace skein::model {

using extents = std::span<const std::int64_t>;

/// The name of a tensor of a layer: "blocks.<layer>.<name>".
[[nodiscard]] std::string block_name(std::uint32_t layer, std::string_view name);

/// "(256, 64)".
[[nodiscard]] std::string shape_text(extents shape);

/// bad_file: "<path>: tensor '<name>' <what>".
[[nodiscard]] error misfit(const checkpoint& file, std::string_view name, const std::string& what);

/// A tensor of that name. Errors: bad_file if it is missing.
[[nodiscard]] result<const tensor_view*> find_required(const checkpoint& file, std::string_view name);

/// The tensor of that name, of a floating-point type, viewed with exactly the shape `expected`. The comparison ignores
/// dimensions of 1, since files store vectors as (C) or as (1, 1, C). A quantised one is accepted if `quantised`.
/// Errors: bad_file naming both shapes.
[[nodiscard]] result<tensor_view> find_shaped(const checkpoint& file, std::string_view name, extents expected,
                                              bool quantised = false);

}  // namespace skein::model
