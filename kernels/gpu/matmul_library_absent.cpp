// For runtimes whose matrix library nobody has asked for yet: AMD's, and the emulator, which has none.
#include "kernels/gpu/matmul_library.hpp"

namespace skein::kernels::gpu {

result<std::unique_ptr<matmul_library>> open_matmul_library() {
  return error{error_kind::unsupported, std::string("there is no matrix library for the runtime ") + runtime_name, ""};
}

}  // namespace skein::kernels::gpu
