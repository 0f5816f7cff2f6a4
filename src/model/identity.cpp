#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
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

/// Widens `count` elements of fp16 or fp32.
void widen(const std::byte* from, dtype type, std::size_t count, float* to) {
  if (type == dtype::f32) {
    std::memcpy(to, from, count * sizeof(float));
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, from + i * sizeof bits, sizeof bits);
    to[i] = f16_to_f32(bits);
  }
}

constexpr std::size_t widened_elements = 2048;

/// visit(floats) for the elements of a piece, a few at a time, until it returns false.
template <typename Visit>
bool each_widened(std::span<const std::byte> piece, dtype type, const Visit& visit) {
  float values[widened_elements];
  const std::size_t size = dtype_bytes(type), count = piece.size() / size;
  for (std::size_t i = 0; i < count; i += widened_elements) {
    const std::size_t here = std::min(widened_elements, count - i);
    widen(piece.data() + i * size, type, here, values);
    if (!visit(std::span<const float>(values, here))) return false;
  }
  return true;
}

bool all_bf16(std::span<const float> values) {
  std::uint32_t rest = 0;
  for (const float value : values) rest |= std::bit_cast<std::uint32_t>(value) & 0xffffu;
  return rest == 0;
}
bool all_f16(std::span<const float> values) {
  for (const float value : values)
    if (std::bit_cast<std::uint32_t>(f16_to_f32(f32_to_f16(value))) != std::bit_cast<std::uint32_t>(value))
      return false;
  return true;
}

/// The first of bf16, fp16 and fp32 that has all values of the tensor; of other types the type itself.
dtype narrowest_type(const tensor_view& view) {
  if (view.type != dtype::f32 && view.type != dtype::f16) return view.type;
  bool bf16 = true, f16 = view.type == dtype::f32;
  each_piece(view, [&](std::span<const std::byte> piece) {
    return each_widened(piece, view.type, [&](std::span<const float> values) {
      bf16 = bf16 && all_bf16(values);
      f16 = f16 && (bf16 || all_f16(values));
      return bf16 || f16;
    });
  });
  if (bf16) return dtype::bf16;
  // What was read while bf16 was possible has not been compared with fp16.
  if (f16)
    each_piece(view, [&](std::span<const std::byte> piece) {
      return f16 = each_widened(piece, view.type, [&](std::span<const float> values) { return all_f16(values); });
    });
  return f16 ? dtype::f16 : view.type;
}

void hash_narrowed(std::span<const std::byte> piece, dtype type, dtype narrow, model_hash& to) {
  each_widened(piece, type, [&](std::span<const float> values) {
    std::uint16_t bits[widened_elements];
    for (std::size_t i = 0; i < values.size(); ++i)
      bits[i] = narrow == dtype::bf16 ? static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(values[i]) >> 16)
                                      : f32_to_f16(values[i]);
    to.bytes(bits, values.size() * sizeof bits[0]);
    return true;
  });
}

struct tensor_digests {
  XXH128_canonical_t of_values;  ///< of shape and values, whatever the type that has them
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
  const dtype narrow = narrowest_type(view);
  model_hash stored, narrowed;
  stored.head_of(view, view.type);
  narrowed.head_of(view, narrow);
  each_piece(view, [&](std::span<const std::byte> piece) {
    stored.bytes(piece.data(), piece.size());
    if (narrow != view.type) hash_narrowed(piece, view.type, narrow, narrowed);
    found.nonfinite = found.nonfinite || holds_nonfinite(piece, view.type);
    return true;
  });
  found.as_stored = stored.digest();
  found.of_values = narrow == view.type ? found.as_stored : narrowed.digest();
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
  kernels::cpu::thread_pool pool(0);
  pool.run(order.size(), [&](std::size_t i, std::uint32_t) {
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
