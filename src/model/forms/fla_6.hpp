#pragma once
#include "base/result.hpp"
#include "model/files/found_model.hpp"

namespace skein::model {

/// RWKV-6 of flash-linear-attention: `RWKV6ForCausalLM`. The five low-rank pairs of the token shift lie in another
/// order there and are copied. Errors: those of rename, bad_file.
[[nodiscard]] result<void> from_fla_6(found_model& found);

}  // namespace skein::model
