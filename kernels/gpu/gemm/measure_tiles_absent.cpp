// For AMD's GPUs, whose matrix cores have other tiles.
#include "kernels/gpu/gemm/measure_tiles.hpp"

namespace skein::kernels::gpu {

result<tile_times> measure_tiles(int, element) { return tile_times{}; }

}  // namespace skein::kernels::gpu
