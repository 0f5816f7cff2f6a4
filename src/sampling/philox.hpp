#pragma once
#include <array>
#include <cstdint>

namespace skein::sampling {

/// Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3"): four random words as a function of
/// counter and key only, so there is no generator state to keep, save or share.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

/// Random number in [0, 1) for one sampling step: a function of its arguments only.
[[nodiscard]] double uniform(std::uint64_t seed, std::uint32_t row, std::uint32_t index);

/// Random numbers in [0, 1) for the tokens first .. first + 3 of one sampling step; `first` is a multiple of 4.
/// Independent of uniform().
[[nodiscard]] std::array<float, 4> uniform_of_tokens(std::uint64_t seed, std::uint32_t row, std::uint32_t index,
                                                     std::uint32_t first);

}  // namespace skein::sampling
