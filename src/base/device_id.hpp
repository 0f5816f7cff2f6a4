#pragma once
#include <cstdint>

namespace skein {

/// One device of a model: its place in the list of devices that the model was loaded on, from 0.
using device_id = std::uint32_t;

}  // namespace skein
