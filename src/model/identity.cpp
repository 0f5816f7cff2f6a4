#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <array>
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

  /// Of a quantised tensor only the scales are hashed, to find NaN in them.
  void tensor(const tensor_view& view) {
    if (view.quantised()) {
      const auto groups = (static_cast<std::size_t>(view.shape[1]) + view.codes.group - 1) / view.codes.group;
      return elements({view.codes.scales, static_cast<std::size_t>(view.shape[0]) * groups * 2}, dtype::bf16);
    }
    text(to_string(view.type));
    number(view.shape.size());
    for (const std::int64_t d : view.shape) number(static_cast<std::uint64_t>(d));
    if (view.row_major())
      elements({view.data, static_cast<std::size_t>(view.elements()) * dtype_bytes(view.type)}, view.type);
    else
      gathered(view);
  }

  /// True if a tensor had NaN or infinity.
  [[nodiscard]] bool met_nonfinite() const { return met_nonfinite_; }

  [[nodiscard]] XXH128_canonical_t digest() const {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(state_.get()));
    return canonical;
  }
  [[nodiscard]] std::string hex() const {
    std::string out;
    for (const unsigned char byte : digest().digest)
      (out += "0123456789abcdef"[byte >> 4]) += "0123456789abcdef"[byte & 15];
    return out;
  }

 private:
  /// In pieces that stay in the cache between the two passes.
  void elements(std::span<const std::byte> all, dtype type) {
    constexpr std::size_t piece_bytes = 64 << 10;  // a multiple of every element size
    while (!all.empty()) {
      const auto piece = all.first(std::min(all.size(), piece_bytes));
      bytes(piece.data(), piece.size());
      met_nonfinite_ = met_nonfinite_ || holds_nonfinite(piece, type);
      all = all.subspan(piece.size());
    }
  }

  /// Gathers the elements in row-major order, one buffer at a time.
  void gathered(const tensor_view& view) {
    const std::size_t size = dtype_bytes(view.type);
    std::vector<std::int64_t> index(view.shape.size(), 0);
    std::size_t filled = 0;
    do {
      const std::int64_t element = std::inner_product(index.begin(), index.end(), view.stride.begin(), std::int64_t{0});
      std::memcpy(buffer_.data() + filled, view.data + static_cast<std::size_t>(element) * size, size);
      filled += size;
      if (filled == buffer_.size()) elements({buffer_.data(), std::exchange(filled, 0)}, view.type);
    } while (advance(index, view.shape));
    elements({buffer_.data(), filled}, view.type);
  }

  /// Advances to the next index in row-major order; false after the last one.
  static bool advance(std::vector<std::int64_t>& index, const std::vector<std::int64_t>& shape) {
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < shape[d]) return true;
      index[d] = 0;
    }
    return false;
  }

  struct free_state {
    void operator()(XXH3_state_t* s) const { XXH3_freeState(s); }
  };
  std::unique_ptr<XXH3_state_t, free_state> state_{XXH3_createState()};
  std::array<std::byte, 8192> buffer_;  // a multiple of every element size
  bool met_nonfinite_ = false;
};

/// The inverse of model_hash::hex().
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

}  // namespace

std::string tensor_digest(const tensor_view& view) {
  model_hash hash;
  hash.tensor(view);
  return hash.hex();
}

read_through identify(const checkpoint& file, std::string_view vocabulary_hash) {
  const auto order = by_name(file);
  std::vector<XXH128_canonical_t> of_tensor(order.size());
  std::vector<unsigned char> nonfinite(order.size());
  kernels::cpu::thread_pool pool(0);
  pool.run(order.size(), [&](std::size_t i, std::uint32_t) {
    model_hash hash;
    hash.tensor(order[i]->view);
    of_tensor[i] = order[i]->digest.empty() ? hash.digest() : digest_of(order[i]->digest);
    nonfinite[i] = hash.met_nonfinite() && !is_unused(order[i]->name);
  });
  model_hash hash;
  hash.number(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    hash.text(order[i]->name);
    hash.bytes(of_tensor[i].digest, sizeof of_tensor[i].digest);
  }
  hash.text(vocabulary_hash);
  const auto first = std::ranges::find(nonfinite, 1);
  return {hash.hex(), first == nonfinite.end() ? "" : order[static_cast<std::size_t>(first - nonfinite.begin())]->name};
}

std::string identity(const checkpoint& file, std::string_view vocabulary_hash) {
  return identify(file, vocabulary_hash).identity;
}

}  // namespace skein::model
