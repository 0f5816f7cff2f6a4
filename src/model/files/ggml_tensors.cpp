#include "model/files/ggml_tensors.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <new>
#include <numeric>
#include <utility>

#include "base/check.hpp"
#include "kernels/cpu/matrix_format.hpp"
#include "kernels/cpu/thread_pool.hpp"

namespace skein::model {
namespace {

unsigned byte_at(const std::byte* p, std::size_t i) { return std::to_integer<unsigned>(p[i]); }
unsigned low(const std::byte* p, std::size_t i) { return byte_at(p, i) & 15u; }
unsigned high(const std::byte* p, std::size_t i) { return byte_at(p, i) >> 4; }
float signed_at(const std::byte* p, std::size_t i) { return static_cast<float>(static_cast<std::int8_t>(p[i])); }

float half_at(const std::byte* p, std::size_t offset) {
  return f16_to_f32(static_cast<std::uint16_t>(byte_at(p, offset) | byte_at(p, offset + 1) << 8));
}

// Scales have 11 bits, integers of a part's scale at most 8 and codes at most 6: their products are exact in fp32. So a
// fused multiplication and addition gives the same bits as two operations.
float affine(float scale, unsigned q, float offset) { return scale * static_cast<float>(q) + offset; }
float centred(float scale, unsigned q, int zero) { return scale * static_cast<float>(static_cast<int>(q) - zero); }

// Blocks of 32 values.

void decode_q8_0(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < 32; ++i) out[i] = d * signed_at(block + 2, i);
}

void decode_q4_0(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = centred(d, low(block + 2, i), 8);
    out[i + 16] = centred(d, high(block + 2, i), 8);
  }
}

void decode_q4_1(const std::byte* block, float* out) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = affine(d, low(block + 4, i), m);
    out[i + 16] = affine(d, high(block + 4, i), m);
  }
}

/// Bit 4 of value i of a block of Q5_0 or Q5_1, whose fifth bits are a number of 32 bits.
unsigned fifth_bit(const std::byte* bits, std::size_t i) { return (byte_at(bits, i / 8) >> i % 8 & 1u) << 4; }

void decode_q5_0(const std::byte* block, float* out) {
  const float d = half_at(block, 0);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = centred(d, low(block + 6, i) | fifth_bit(block + 2, i), 16);
    out[i + 16] = centred(d, high(block + 6, i) | fifth_bit(block + 2, i + 16), 16);
  }
}

void decode_q5_1(const std::byte* block, float* out) {
  const float d = half_at(block, 0), m = half_at(block, 2);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = affine(d, low(block + 8, i) | fifth_bit(block + 4, i), m);
    out[i + 16] = affine(d, high(block + 8, i) | fifth_bit(block + 4, i + 16), m);
  }
}

// Blocks of 256 values. Scales of parts are integers, multiplied by the block's own scale d.

void decode_q2_k(const std::byte* block, float* out) {
  const std::byte *scales = block, *codes = block + 16;
  const float d = half_at(block, 80), dmin = half_at(block, 82);
  for (std::size_t part = 0; part < 16; ++part) {
    const float scale = d * static_cast<float>(low(scales, part)),
                minimum = dmin * static_cast<float>(high(scales, part));
    const std::size_t half = part / 8, pair = part / 2 % 4;
    for (std::size_t i = 0; i < 16; ++i)
      *out++ = affine(scale, byte_at(codes, 32 * half + 16 * (part % 2) + i) >> 2 * pair & 3u, -minimum);
  }
}

void decode_q3_k(const std::byte* block, float* out) {
  const std::byte *high_bits = block, *codes = block + 32, *scales = block + 96;
  const float d = half_at(block, 108);
  for (std::size_t part = 0; part < 16; ++part) {
    const unsigned four = part < 8 ? low(scales, part) : high(scales, part - 8);
    const unsigned two = byte_at(scales, 8 + part % 4) >> 2 * (part / 4) & 3u;
    const float scale = centred(d, four | two << 4, 32);
    const std::size_t half = part / 8, pair = part / 2 % 4;
    for (std::size_t i = 0; i < 16; ++i) {
      const std::size_t place = 16 * (part % 2) + i;
      const unsigned third = byte_at(high_bits, place) >> (part / 2) & 1u;
      *out++ = centred(scale, (byte_at(codes, 32 * half + place) >> 2 * pair & 3u) | third << 2, 4);
    }
  }
}

/// Scale and minimum of part j of 8, which Q4_K and Q5_K store with six bits each.
std::pair<float, float> scale_and_minimum(const std::byte* s, std::size_t j) {
  if (j < 4) return {static_cast<float>(byte_at(s, j) & 63u), static_cast<float>(byte_at(s, j + 4) & 63u)};
  return {static_cast<float>(low(s, j + 4) | byte_at(s, j - 4) >> 6 << 4),
          static_cast<float>(high(s, j + 4) | byte_at(s, j) >> 6 << 4)};
}

/// `fifth` : for Q5_K the bytes whose bit j belongs to the values of part j; nullptr for Q4_K.
void decode_parts_of_32(const std::byte* block, const std::byte* fifth, const std::byte* codes, float* out) {
  const float d = half_at(block, 0), dmin = half_at(block, 2);
  for (std::size_t part = 0; part < 8; ++part) {
    const auto [sc, m] = scale_and_minimum(block + 4, part);
    const float scale = d * sc, minimum = dmin * m;
    const std::byte* const bytes = codes + 32 * (part / 2);
    for (std::size_t i = 0; i < 32; ++i) {
      const unsigned four = part % 2 == 0 ? low(bytes, i) : high(bytes, i);
      const unsigned bit = fifth ? (byte_at(fifth, i) >> part & 1u) << 4 : 0u;
      *out++ = affine(scale, four | bit, -minimum);
    }
  }
}

void decode_q4_k(const std::byte* block, float* out) { decode_parts_of_32(block, nullptr, block + 16, out); }
void decode_q5_k(const std::byte* block, float* out) { decode_parts_of_32(block, block + 16, block + 48, out); }

void decode_q6_k(const std::byte* block, float* out) {
  const std::byte* scales = block + 192;
  const float d = half_at(block, 208);
  for (std::size_t half = 0; half < 2; ++half) {
    const std::byte *four = block + 64 * half, *two = block + 128 + 32 * half;
    for (std::size_t quarter = 0; quarter < 4; ++quarter) {
      for (std::size_t i = 0; i < 32; ++i) {
        const std::size_t place = i + 32 * (quarter % 2);
        const unsigned bits = quarter < 2 ? low(four, place) : high(four, place);
        const float scale = d * signed_at(scales, 8 * half + 2 * quarter + i / 16);
        *out++ = centred(scale, bits | (byte_at(two, i) >> 2 * quarter & 3u) << 4, 32);
      }
    }
  }
}

constexpr ggml_type types[] = {
    {0, "F32", 1, 4, dtype::f32, nullptr},    {1, "F16", 1, 2, dtype::f16, nullptr},
    {2, "Q4_0", 32, 18, {}, decode_q4_0},     {3, "Q4_1", 32, 20, {}, decode_q4_1},
    {6, "Q5_0", 32, 22, {}, decode_q5_0},     {7, "Q5_1", 32, 24, {}, decode_q5_1},
    {8, "Q8_0", 32, 34, {}, decode_q8_0},     {10, "Q2_K", 256, 84, {}, decode_q2_k},
    {11, "Q3_K", 256, 110, {}, decode_q3_k},  {12, "Q4_K", 256, 144, {}, decode_q4_k},
    {13, "Q5_K", 256, 176, {}, decode_q5_k},  {14, "Q6_K", 256, 210, {}, decode_q6_k},
    {30, "BF16", 1, 2, dtype::bf16, nullptr},
};

/// Types of ggml that no code here decodes.
constexpr std::pair<std::uint32_t, std::string_view> others[] = {
    {4, "Q4_2"},      {5, "Q4_3"},   {9, "Q8_1"},    {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"},
    {18, "IQ3_XXS"},  {19, "IQ1_S"}, {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"},
    {24, "I8"},       {25, "I16"},   {26, "I32"},    {27, "I64"},   {28, "F64"},     {29, "IQ1_M"},
    {31, "Q4_0_4_4"}, {34, "TQ1_0"}, {35, "TQ2_0"},  {39, "MXFP4"}};

constexpr std::uint64_t piece_values = 64 << 10;  ///< decoded at a time by a thread: a multiple of every block

/// Part of a quantised tensor.
struct decoding {
  const ggml_type* type;
  byte_span blocks;
  std::byte* out;      ///< fp16
  std::size_t tensor;  ///< its index in found_model::tensors
  bool lowest_code = false;
};

/// The blocks of a matrix in a type whose codes our formats have too.
code_blocks blocks_of(const stored_tensor& tensor) {
  if (tensor.shape.size() != 2) return {};
  const std::string_view type = tensor.type->name;
  return {type == "Q8_0" ? code_type::int8 : type == "Q4_0" ? code_type::int4 : code_type::none, tensor.data.data()};
}

/// Whether blocks of Q8_0 have the code -128.
bool has_lowest_code(byte_span blocks, std::size_t block_bytes) {
  bool found = false;
  for (std::size_t at = 0; at < blocks.size(); at += block_bytes)
    for (const std::byte code : blocks.subspan(at + 2, block_bytes - 2)) found |= code == std::byte{0x80};
  return found;
}

void decode_to_f16(decoding& what) {
  if (what.type->name == "Q8_0") what.lowest_code = has_lowest_code(what.blocks, what.type->bytes);
  constexpr std::size_t most = 4096;  // 16 KiB of floats: stays in L1
  alignas(64) std::array<float, most> values;
  const std::size_t step = most / what.type->values * what.type->bytes;
  std::byte* out = what.out;
  for (std::size_t at = 0; at < what.blocks.size(); at += step) {
    const auto blocks = what.blocks.subspan(at, std::min(step, what.blocks.size() - at));
    const std::size_t count = blocks.size() / what.type->bytes * what.type->values;
    decode_blocks(*what.type, blocks, std::span(values).first(count));
    kernels::cpu::copy_elements({reinterpret_cast<const std::byte*>(values.data()), dtype::f32, sizeof(float), count},
                                kernels::cpu::matrix_format::f16, out);
    out += count * dtype_bytes(dtype::f16);
  }
}

/// Appends the pieces of a tensor.
void divide(const stored_tensor& tensor, std::size_t index, std::byte* out, std::vector<decoding>& pieces) {
  const std::size_t step = piece_values / tensor.type->values * tensor.type->bytes;
  for (std::size_t at = 0; at < tensor.data.size(); at += step, out += piece_values * dtype_bytes(dtype::f16))
    pieces.push_back({tensor.type, tensor.data.subspan(at, std::min(step, tensor.data.size() - at)), out, index});
}

found_tensor described(const stored_tensor& tensor, const std::byte* data, dtype type) {
  tensor_view view{data, type, tensor.shape, {}};
  view.stride.resize(view.shape.size());
  std::exclusive_scan(view.shape.rbegin(), view.shape.rend(), view.stride.rbegin(), std::int64_t{1},
                      std::multiplies<>());
  return {tensor.name, std::move(view), tensor.described_at};
}

}  // namespace

const ggml_type* find_ggml_type(std::uint32_t id) {
  const auto* const found = std::ranges::find(types, id, &ggml_type::id);
  return found == std::end(types) ? nullptr : found;
}

const ggml_type* find_ggml_type(std::string_view name) {
  const auto* const found = std::ranges::find(types, name, &ggml_type::name);
  return found == std::end(types) ? nullptr : found;
}

std::string ggml_type_name(std::uint32_t id) {
  if (const auto* const type = find_ggml_type(id)) return std::string(type->name);
  for (const auto& [other, name] : others)
    if (other == id) return std::string(name);
  return "number " + std::to_string(id);
}

std::string ggml_types_accepted() {
  std::string text;
  for (const ggml_type& type : types) (text += text.empty() ? "" : ", ") += type.name;
  return text;
}

void decode_blocks(const ggml_type& type, byte_span blocks, std::span<float> values) {
  check(type.decode_block && blocks.size() % type.bytes == 0);
  check(blocks.size() / type.bytes * type.values == values.size());
  for (std::size_t at = 0, to = 0; at < blocks.size(); at += type.bytes, to += type.values)
    type.decode_block(blocks.data() + at, values.data() + to);
}

result<void> take_tensors(std::span<const stored_tensor> stored, found_model& found) {
  std::vector<decoding> pieces;
  std::map<std::string_view, std::size_t> decoded;
  for (const stored_tensor& tensor : stored) {
    if (tensor.type->plain) {
      found.tensors.push_back(described(tensor, tensor.data.data(), *tensor.type->plain));
      continue;
    }
    const std::uint64_t bytes = tensor.elements() * dtype_bytes(dtype::f16);
    try {
      std::byte* const out = found.own(bytes);
      divide(tensor, found.tensors.size(), out, pieces);
      found_tensor& made = found.tensors.emplace_back(described(tensor, out, dtype::f16));
      made.quantised_as = tensor.type->name;
      made.view.blocks = blocks_of(tensor);
    } catch (const std::bad_alloc&) {
      return error{error_kind::no_memory,
                   "tensor " + printable(tensor.name) + ": its decoded " + std::to_string(bytes) +
                       " bytes do not fit into memory",
                   {}};
    }
    ++decoded[tensor.type->name];
  }
  if (pieces.empty()) return {};
  kernels::cpu::thread_pool pool(0);
  pool.run(pieces.size(), [&](std::size_t i, std::uint32_t) { decode_to_f16(pieces[i]); });
  for (const decoding& piece : pieces)
    if (piece.lowest_code) found.tensors[piece.tensor].view.blocks = {};
  std::string note = "decoded to fp16: ";
  for (const auto& [name, tensors] : decoded)
    note += (note.ends_with(' ') ? "" : ", ") + std::string(name) + " (" + std::to_string(tensors) +
            (tensors == 1 ? " tensor)" : " tensors)");
  found.notes.push_back(std::move(note));
  return {};
}

}  // namespace skein::model
