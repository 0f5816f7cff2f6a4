#pragma once
#include <cstddef>
#include <span>

#include "base/tensor.hpp"
#include "kernels/cpu/thread_pool.hpp"
#include "model/adapters/adapter_file.hpp"

namespace skein::model {

/// Computes `base` after all parts in order, and writes it row-major in its own type to `out`. The shapes fit (checked
/// by merge_adapters): replacements have the elements of the base, for all others it is a matrix.
void write_merged(const tensor_view& base, std::span<const adapter_part* const> parts, std::byte* out,
                  kernels::cpu::thread_pool& pool);

}  // namespace skein::model
