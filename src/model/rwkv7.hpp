#pragma once
#include "kernels/stages.hpp"

namespace skein::model {

/// Runs all layers of RWKV-7 over the rows of one tick. Afterwards the residual stream of every row is ready for
/// stages::head, and the states of all runs are updated.
void forward_rwkv7(kernels::stages& stages, std::uint32_t layers, const kernels::batch& rows);

}  // namespace skein::model
