#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "kernels/cpu/thread_pool.hpp"
#include "model/model_info.hpp"
#include "model/nonfinite.hpp"

namespace skein::model {
namespace {

/// Computes one XXH3-128. Texts and shapes are hashed with their length, so that no two models hash the same bytes.
class model_hash {
 public:
  model_hash() { XXH3_128bits_reset(state_.get()); }

  void bytes(const void* data, std::size_t count) { XXH3_128bits_update(state_.get(), data, count); }
  void number(std::uint64_t n) { bytes(&n, sizeof n); }
  void text(std::string_view t) {
    number(t.size());
    bytes(t.data(), t.size());
  }
  void head_of(const tensor_view& view, dtype type) {
    text(to_string(type));
    number(view.shape.size());
    for (const std::int64_t d : view.shape) number(static_cast<std::uint64_t>(d));
  }

  [[nodiscard]] XXH128_canonical_t digest() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    return canonical;
  }

 private:
  struct free_state {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, free_state> state_{XXH3_createState()};
};

std::string hex_of(const XXH128_canonical_t& digest) {
  std::string out;
  for (const unsigned char byte : digest.digest)
    (out += "0123456789abcdef"[byte >> 4]) += "0123456789abcdef"[byte & 15];
  return out;
}

// Pieces stay in the cache between the passes over them.
constexpr std::size_t piece_bytes = 64 << 10, gathered_bytes = 8192;  // multiples of every element size

/// Advances to the next index in row-major order; false after the last one.
bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& shape) {
  for (std::size_t d = index.size(); d-- > 0;) {
    if (++index[d] < shape[d]) return true;
    index[d] = 0;
  }
  return false;
}

/// visit(bytes) for the elements in row-major order, in pieces, until it returns false.
template <typename Visit>
void each_piece(std::span<const std::byte> all, const Visit& visit) {
  for (bool more = true; more && !all.empty();) {
    const auto piece = all.first(std::min(all.size(), piece_bytes));
    more = visit(piece);
    all = all.subspan(piece.size());
  }
}
template <typename Visit>
void each_piece(const tensor_view& view, const Visit& visit) {
  const std::size_t size = dtype_bytes(view.type);
  if (view.row_major()) return each_piece({view.data, static_cast<std::size_t>(view.elements()) * size}, visit);
  std::array<std::byte, gathered_bytes> buffer;
  std::vector<std::int64_t> index(view.shape.size(), 0);
  std::size_t filled = 0;
  do {
    const std::int64_t element = std::inner_product(index.begin(), index.end(), view.stride.begin(), std::int64_t{0});
    std::memcpy(buffer.data() + filled, view.data + static_cast<std::size_t>(element) * size, size);
    filled += size;
    if (filled == buffer.size() && !visit(std::span<const std::byte>(buffer.data(), std::exchange(filled, 0)))) return;
  } while (advance(index, view.shape));
  if (filled) visit(std::span<const std::byte>(buffer.data(), filled));
}

constexpr std::size_t widened_elements = 2048;
using widened_values = std::array<float, widened_elements>;

/// f16_to_f32 with masks in place of branches, which compilers do not vectorise.
float widened(std::uint16_t half) {
  constexpr std::uint32_t rebias = 112u << 23, least_normal = 0x400, largest = 0x7bff;
  const std::uint32_t magnitude = half & 0x7fffu, sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t normal = (magnitude << 13) + rebias;
  // With the exponent of 2^-14 and a leading one, which the subtraction removes exactly.
  const auto subnormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>((magnitude << 13) + rebias + (1u << 23)) - 0x1p-14f);
  const std::uint32_t is_subnormal = 0u - ((magnitude - least_normal) >> 31),
                      is_special = 0u - ((largest - magnitude) >> 31);
  return std::bit_cast<float>(sign | ((subnormal & is_subnormal) + (normal & ~is_subnormal) + (rebias & is_special)));
}

/// Widens `count` elements of fp16 or fp32; the other values become zero. Loops of a constant length are vectorised.
void widen(const std::byte* from, dtype type, std::size_t count, widened_values& to) {
  if (type == dtype::f32) {
    std::memcpy(to.data(), from, count * sizeof(float));
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(count), to.end(), 0.0f);
    return;
  }
  std::array<std::uint16_t, widened_elements> halves;
  std::memcpy(halves.data(), from, count * sizeof halves[0]);
  std::fill(halves.begin() + static_cast<std::ptrdiff_t>(count), halves.end(), std::uint16_t{0});
  for (std::size_t i = 0; i < widened_elements; ++i) to[i] = widened(halves[i]);
}

/// visit(values, count) for the elements of a piece, a few at a time, until it returns false; the values after `count`
/// are zero.
template <typename Visit>
bool each_widened(std::span<const std::byte> piece, dtype type, const Visit& visit) {
  widened_values values;
  const std::size_t size = dtype_bytes(type), count = piece.size() / size;
  for (std::size_t i = 0; i < count; i += widened_elements) {
    const std::size_t here = std::min(widened_elements, count - i);
    widen(piece.data() + i * size, type, here, values);
    if (!visit(values, here)) return false;
  }
  return true;
}

bool all_bf16(const widened_values& values) {
  std::uint32_t rest = 0;
  for (std::size_t i = 0; i < widened_elements; ++i) rest |= std::bit_cast<std::uint32_t>(values[i]);
  return (rest & 0xffffu) == 0;
}
bool all_f16(const widened_values& values) {
  for (const float value : values)
    if (std::bit_cast<std::uint32_t>(f16_to_f32(f32_to_f16(value))) != std::bit_cast<std::uint32_t>(value))
      return false;
  return true;
}

using some_bits = std::array<std::uint16_t, widened_elements>;

/// fp16 numbers as bf16 by 16-bit arithmetic, without widening them. False if one has bits that bf16 has not, or is
/// subnormal or not finite.
bool narrow_quickly(const some_bits& halves, some_bits& to) {
  constexpr std::uint16_t magnitude_bits = 0x7fff, least_normal = 0x400, rebias = 112 << 7;
  constexpr std::uint16_t to_sign = 0x8000 - 0x7800;  // from infinity less the least normal number
  some_bits wrong;
  for (std::size_t i = 0; i < widened_elements; ++i) {
    const auto magnitude = static_cast<std::uint16_t>(halves[i] & magnitude_bits);
    const auto is_number = static_cast<std::uint16_t>(magnitude == 0 ? 0 : 0xffff);  // not a zero
    const auto above = static_cast<std::uint16_t>(magnitude - least_normal);
    const auto range = static_cast<std::uint16_t>((above | (above + to_sign)) & 0x8000);
    const auto moved = static_cast<std::uint16_t>((magnitude >> 3) + rebias);
    wrong[i] = static_cast<std::uint16_t>((magnitude & 7) | (range & is_number));
    to[i] = static_cast<std::uint16_t>((halves[i] & 0x8000) | (moved & is_number));
  }
  std::array<std::uint64_t, widened_elements / 4> words;
  std::memcpy(words.data(), wrong.data(), sizeof words);
  std::uint64_t any = 0;
  for (const std::uint64_t word : words) any |= word;
  return any == 0;
}

/// narrow_quickly for `count` elements of fp16; those behind them become zero.
bool narrow_quickly(const std::byte* from, std::size_t count, some_bits& to) {
  some_bits halves;
  std::memcpy(halves.data(), from, count * sizeof halves[0]);
  std::fill(halves.begin() + static_cast<std::ptrdiff_t>(count), halves.end(), std::uint16_t{0});
  return narrow_quickly(halves, to);
}

/// Hashes a piece of fp16 or fp32 values as bf16, until one is no bf16; false then.
bool hash_as_bf16(std::span<const std::byte> piece, dtype type, model_hash& to) {
  const std::size_t size = dtype_bytes(type);
  some_bits bits;
  for (; !piece.empty(); piece = piece.subspan(std::min(piece.size(), widened_elements * size))) {
    const std::size_t count = std::min(piece.size() / size, widened_elements);
    if (type != dtype::f16 || !narrow_quickly(piece.data(), count, bits)) {
      widened_values values;
      widen(piece.data(), type, count, values);
      if (!all_bf16(values)) return false;
      for (std::size_t i = 0; i < widened_elements; ++i)
        bits[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16);
    }
    to.bytes(bits.data(), count * sizeof bits[0]);
  }
  return true;
}

bool holds_f16_only(const tensor_view& view) {
  bool f16 = true;
  each_piece(view, [&](std::span<const std::byte> piece) {
    return f16 = each_widened(piece, view.type,
                              [](const widened_values& values, std::size_t) { return all_f16(values); });
  });
  return f16;
}

XXH128_canonical_t digest_as_f16(const tensor_view& view) {
  model_hash hash;
  hash.head_of(view, dtype::f16);
  each_piece(view, [&](std::span<const std::byte> piece) {
    return each_widened(piece, view.type, [&](const widened_values& values, std::size_t count) {
      std::array<std::uint16_t, widened_elements> bits;
      std::ranges::transform(values, bits.begin(), f32_to_f16);
      hash.bytes(bits.data(), count * sizeof bits[0]);
      return true;
    });
  });
  return hash.digest();
}

struct tensor_digests {
  /// Of shape and values, as the first of bf16, fp16 and fp32 that has them all, whatever the type of the tensor.
  XXH128_canonical_t of_values;
  XXH128_canonical_t as_stored;  ///< of type, shape and bits
  bool nonfinite = false;
};

/// Of a quantised tensor only the scales are read, to find NaN in them, and the codes that may be NaN.
tensor_digests digests_of(const tensor_view& view) {
  tensor_digests found;
  if (view.quantised()) {
    const auto groups = (static_cast<std::size_t>(view.shape[1]) + view.codes.group - 1) / view.codes.group;
    const std::span scales(view.codes.scales, static_cast<std::size_t>(view.shape[0]) * groups * 2);
    found.nonfinite = holds_nonfinite(scales, view.codes.scale_type);
    if (view.codes.type == code_type::fp8) {
      const std::size_t bytes = view.codes.row_bytes(static_cast<std::size_t>(view.shape[1]));
      found.nonfinite |= holds_nan_of_e4m3({view.data, static_cast<std::size_t>(view.shape[0]) * bytes});
    }
    return found;
  }
  // If all values turn out to be bf16 values, one pass is enough.
  bool as_bf16 = view.type == dtype::f32 || view.type == dtype::f16;
  model_hash stored, narrowed;
  stored.head_of(view, view.type);
  narrowed.head_of(view, dtype::bf16);
  each_piece(view, [&](std::span<const std::byte> piece) {
    stored.bytes(piece.data(), piece.size());
    as_bf16 = as_bf16 && hash_as_bf16(piece, view.type, narrowed);
    found.nonfinite = found.nonfinite || holds_nonfinite(piece, view.type);
    return true;
  });
  found.as_stored = stored.digest();
  if (as_bf16)
    found.of_values = narrowed.digest();
  else
    found.of_values = view.type == dtype::f32 && holds_f16_only(view) ? digest_as_f16(view) : found.as_stored;
  return found;
}

/// The inverse of hex_of().
XXH128_canonical_t digest_of(std::string_view hex) {
  const auto value = [](char c) { return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10); };
  XXH128_canonical_t digest;
  for (std::size_t i = 0; i < sizeof digest.digest; ++i)
    digest.digest[i] = static_cast<unsigned char>(value(hex[2 * i]) << 4 | value(hex[2 * i + 1]));
  return digest;
}

std::vector<const named_tensor*> by_name(const checkpoint& file) {
  std::vector<const named_tensor*> order;
  order.reserve(file.tensors().size());
  for (const auto& tensor : file.tensors()) order.push_back(&tensor);
  std::ranges::sort(order, {}, [](const named_tensor* t) -> std::string_view { return t->name; });
  return order;
}

/// One hash over the names and digests of tensors, and over the vocabulary.
std::string joined(std::span<const named_tensor* const> tensors, std::span<const XXH128_canonical_t> digests,
                   std::string_view vocabulary_hash, bool with_unused) {
  const auto counts = [&](const named_tensor* tensor) { return with_unused || !is_unused(tensor->name); };
  model_hash hash;
  hash.number(static_cast<std::uint64_t>(std::ranges::count_if(tensors, counts)));
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!counts(tensors[i])) continue;
    hash.text(tensors[i]->name);
    hash.bytes(digests[i].digest, sizeof digests[i].digest);
  }
  hash.text(vocabulary_hash);
  return hex_of(hash.digest());
}

}  // namespace

std::string tensor_digest(const tensor_view& view) { return hex_of(digests_of(view).of_values); }

read_through identify(const checkpoint& file, std::string_view vocabulary_hash) {
  const auto order = by_name(file);
  std::vector<XXH128_canonical_t> of_values(order.size()), as_stored(order.size());
  std::vector<unsigned char> nonfinite(order.size());
  // The largest first, so that no thread is left alone with one.
  std::vector<std::size_t> by_size(order.size());
  std::iota(by_size.begin(), by_size.end(), std::size_t{0});
  std::ranges::stable_sort(by_size, std::ranges::greater(), [&](std::size_t i) { return order[i]->view.elements(); });
  kernels::cpu::thread_pool pool(0);
  pool.run(order.size(), [&](std::size_t job, std::uint32_t) {
    const std::size_t i = by_size[job];
    const auto found = digests_of(order[i]->view);
    const bool is_original = order[i]->digest.empty();
    of_values[i] = is_original ? found.of_values : digest_of(order[i]->digest);
    as_stored[i] = is_original ? found.as_stored : of_values[i];
    nonfinite[i] = found.nonfinite && !is_unused(order[i]->name);
  });
  read_through read;
  read.identity = joined(order, of_values, vocabulary_hash, false);
  read.former_identity = joined(order, as_stored, vocabulary_hash, true);
  const auto first = std::ranges::find(nonfinite, 1);
  if (first != nonfinite.end()) read.nonfinite = order[static_cast<std::size_t>(first - nonfinite.begin())]->name;
  return read;
}

std::string identity(const checkpoint& file, std::string_view vocabulary_hash) {
  return identify(file, vocabulary_hash).identity;
}

}  // namespace skein::model
