// For runtimes without support for a GEMM library: AMD's, and the emulator.
#include "kernels/gpu/gemm/matmul_library.hpp"

namespace skein::kernels::gpu {

result<std::unique_ptr<matmul_library>> open_matmul_library() {
  return error{error_kind::unsupported, std::string("no GEMM library is supported by the runtime ") + runtime_name, ""};
}

}  // namespace skein::kernels::gpu
