#pragma once
#include "kernels/stages.hpp"

namespace skein::model {

/// Runs all layers over the rows of one tick: the recipe of every version, whose stages differ in what they compute.
/// Afterwards the residual stream of every row is ready for stages::head, and the states of all runs are updated.
void forward(kernels::stages& stages, std::uint32_t layers, const kernels::batch& rows);

}  // namespace skein::model
