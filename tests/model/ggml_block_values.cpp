// Values of ggml's quantised blocks, one at a time and in double: what the decoder is compared with.
#include <cmath>
#include <random>
#include <stdexcept>

#include "tests/model/gguf_builders.hpp"

namespace skein::test {
namespace {

class block_bytes {
 public:
  explicit block_bytes(std::string_view bytes) : bytes_(bytes) {}
  [[nodiscard]] int at(std::size_t i) const { return static_cast<unsigned char>(bytes_.at(i)); }
  [[nodiscard]] int signed_at(std::size_t i) const { return static_cast<signed char>(bytes_.at(i)); }
  [[nodiscard]] int bits(std::size_t i, std::size_t first, int count) const {
    return at(i) >> first & ((1 << count) - 1);
  }
  [[nodiscard]] double half(std::size_t i) const {
    const int word = at(i) | at(i + 1) << 8, exponent = word >> 10 & 31, fraction = word & 1023;
    const double size = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
    return word & 0x8000 ? -size : size;
  }

 private:
  std::string_view bytes_;
};

/// The six bits of scale (or minimum) j of Q4_K and Q5_K, whose twelve bytes begin at `at`.
int six_bits(const block_bytes& b, std::size_t at, std::size_t j, bool minimum) {
  if (j < 4) return b.bits(at + j + (minimum ? 4 : 0), 0, 6);
  return b.bits(at + j + 4, minimum ? 4 : 0, 4) + 16 * b.bits(at + j - 4 + (minimum ? 4 : 0), 6, 2);
}

double k_value(std::uint32_t type, const block_bytes& b, std::size_t i) {
  const std::size_t half = i / 128, in_half = i % 128;
  switch (type) {
    case ggml_q2_k: {
      const int q = b.bits(16 + 32 * half + in_half % 32, 2 * (in_half / 32), 2);
      return b.half(80) * b.bits(i / 16, 0, 4) * q - b.half(82) * b.bits(i / 16, 4, 4);
    }
    case ggml_q3_k: {
      const std::size_t j = i / 16;
      const int scale = b.bits(96 + j % 8, j < 8 ? 0 : 4, 4) + 16 * b.bits(104 + j % 4, 2 * (j / 4), 2) - 32;
      const int q = b.bits(32 + 32 * half + in_half % 32, 2 * (in_half / 32), 2) + 4 * b.bits(i % 32, i / 32, 1) - 4;
      return b.half(108) * scale * q;
    }
    case ggml_q4_k: {
      const int q = b.bits(16 + i / 64 * 32 + i % 32, i % 64 < 32 ? 0 : 4, 4);
      return b.half(0) * six_bits(b, 4, i / 32, false) * q - b.half(2) * six_bits(b, 4, i / 32, true);
    }
    case ggml_q5_k: {
      const int q = b.bits(48 + i / 64 * 32 + i % 32, i % 64 < 32 ? 0 : 4, 4) + 16 * b.bits(16 + i % 32, i / 32, 1);
      return b.half(0) * six_bits(b, 4, i / 32, false) * q - b.half(2) * six_bits(b, 4, i / 32, true);
    }
    default: {
      const int low = b.bits(64 * half + in_half % 64, in_half < 64 ? 0 : 4, 4);
      const int high = b.bits(128 + 32 * half + in_half % 32, 2 * (in_half / 32), 2);
      return b.half(208) * b.signed_at(192 + i / 16) * (low + 16 * high - 32);
    }
  }
}

}  // namespace

const std::vector<ggml_block>& ggml_blocks() {
  static const std::vector<ggml_block> all = {{ggml_q8_0, "Q8_0", 32, 34},   {ggml_q4_0, "Q4_0", 32, 18},
                                              {ggml_q4_1, "Q4_1", 32, 20},   {ggml_q5_0, "Q5_0", 32, 22},
                                              {ggml_q5_1, "Q5_1", 32, 24},   {ggml_q2_k, "Q2_K", 256, 84},
                                              {ggml_q3_k, "Q3_K", 256, 110}, {ggml_q4_k, "Q4_K", 256, 144},
                                              {ggml_q5_k, "Q5_K", 256, 176}, {ggml_q6_k, "Q6_K", 256, 210}};
  return all;
}

std::string random_blocks(const ggml_block& type, std::size_t blocks, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(blocks * type.bytes, '\0');
  for (char& byte : bytes) {
    byte = static_cast<char>(random());
    if (type.type == ggml_q8_0 && byte == '\x80') byte = '\x81';  // llama.cpp does not write -128
  }
  // The halves that are scales: exponents up to 15 - 9, so that no value is large.
  std::vector<std::size_t> halves = {0};
  if (type.type == ggml_q4_1 || type.type == ggml_q5_1 || type.type == ggml_q4_k || type.type == ggml_q5_k)
    halves = {0, 2};
  if (type.type == ggml_q2_k) halves = {80, 82};
  if (type.type == ggml_q3_k) halves = {108};
  if (type.type == ggml_q6_k) halves = {208};
  for (std::size_t block = 0; block < blocks; ++block)
    for (const std::size_t half : halves)
      bytes[block * type.bytes + half + 1] = static_cast<char>((random() & 0x80u) | random() % 25);
  return bytes;
}

double block_value(std::uint32_t type, std::string_view block, std::size_t i) {
  const block_bytes b(block);
  const auto four = [&](std::size_t codes) { return b.bits(codes + i % 16, i < 16 ? 0 : 4, 4); };
  const auto fifth = [&](std::size_t bits) { return 16 * b.bits(bits + i / 8, i % 8, 1); };
  switch (type) {
    case ggml_q8_0: return b.half(0) * b.signed_at(2 + i);
    case ggml_q4_0: return b.half(0) * (four(2) - 8);
    case ggml_q4_1: return b.half(0) * four(4) + b.half(2);
    case ggml_q5_0: return b.half(0) * (four(6) + fifth(2) - 16);
    case ggml_q5_1: return b.half(0) * (four(8) + fifth(4)) + b.half(2);
    default: return k_value(type, b, i);
  }
}

std::vector<float> block_values(const ggml_block& type, std::string_view blocks) {
  std::vector<float> values;
  for (; !blocks.empty(); blocks.remove_prefix(type.bytes))
    for (std::size_t i = 0; i < type.values; ++i)
      values.push_back(static_cast<float>(block_value(type.type, blocks.substr(0, type.bytes), i)));
  return values;
}

}  // namespace skein::test
