#pragma once
#include "kernels/stages.hpp"

namespace skein::model {

/// Runs all layers of RWKV-7 over one tick's rows: the residual stream of every row is ready for stages::head, the
/// states of all runs have moved on.
void forward_rwkv7(kernels::stages& stages, std::uint32_t layers, const kernels::batch& rows);

}  // namespace skein::model
