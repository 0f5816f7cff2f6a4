#include "sampling/philox.hpp"

namespace skein::sampling {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  constexpr int rounds = 10;
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t even = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t odd = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(odd >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(odd),
               static_cast<std::uint32_t>(even >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(even)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

double uniform(std::uint64_t seed, std::uint32_t row, std::uint32_t index) {
  const auto words =
      philox4x32({index, row, 0, 0}, {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  const std::uint64_t bits = (std::uint64_t{words[1]} << 32) | words[0];
  return static_cast<double>(bits >> 11) * 0x1p-53;
}

std::array<float, 4> uniform_of_tokens(std::uint64_t seed, std::uint32_t row, std::uint32_t index,
                                       std::uint32_t first) {
  const auto words =
      philox4x32({index, row, first, 1}, {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  std::array<float, 4> numbers;
  for (std::size_t i = 0; i < 4; ++i) numbers[i] = static_cast<float>(words[i] >> 8) * 0x1p-24f;
  return numbers;
}

}  // namespace skein::sampling
