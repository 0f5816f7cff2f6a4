#include "model/files/safetensors.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/safetensors_header.hpp"

namespace skein::model {
namespace {

/// MLX stores a quantised matrix as three tensors.
bool is_quantised_by_mlx(const std::vector<safetensors_entry>& entries) {
  const auto has = [&](std::string_view ending) {
    return std::ranges::any_of(entries, [&](const auto& entry) { return entry.name.ends_with(ending); });
  };
  return has(".scales") && has(".biases");
}

/// Checks one entry against its data; `data_begin` is the first byte after the header.
result<found_tensor> checked(byte_span file, std::uint64_t data_begin, const safetensors_entry& entry) {
  const auto fault = [&](const std::string& what) {
    return damaged(entry.described_at, "tensor " + printable(entry.name) + ": " + what);
  };
  const auto type = safetensors_type(entry.type);
  if (!type) return fault("unknown element type " + printable(entry.type));
  if (entry.begin > entry.end) return fault("data_offsets end before they begin");
  if (entry.end > file.size() - data_begin)
    return fault("data_offsets extend beyond the file's " + std::to_string(file.size()) + " bytes");

  std::uint64_t bytes = dtype_bytes(*type);
  for (const std::uint64_t d : entry.shape) {
    if (d == 0) return fault("a dimension is 0");
    if (__builtin_mul_overflow(bytes, d, &bytes)) return fault("the shape overflows 64 bits");
  }
  if (bytes != entry.end - entry.begin)
    return fault("shape and type need " + std::to_string(bytes) + " bytes, data_offsets give " +
                 std::to_string(entry.end - entry.begin));

  tensor_view view{file.data() + data_begin + entry.begin, *type, {entry.shape.begin(), entry.shape.end()}, {}};
  view.stride.resize(view.shape.size());
  std::exclusive_scan(view.shape.rbegin(), view.shape.rend(), view.stride.rbegin(), std::int64_t{1},
                      std::multiplies<>());
  return found_tensor{entry.name, std::move(view), entry.described_at};
}

/// nullopt if the tensors are contiguous from the first data byte to the last.
std::optional<error> cover_fault(const std::vector<safetensors_entry>& entries, std::uint64_t data_bytes) {
  std::vector<const safetensors_entry*> order;
  order.reserve(entries.size());
  for (const auto& entry : entries) order.push_back(&entry);
  std::ranges::sort(order, {}, [](const safetensors_entry* e) { return std::pair(e->begin, e->end); });
  std::uint64_t covered = 0;
  for (const auto* entry : order) {
    if (entry->begin < covered)
      return damaged(entry->described_at, "tensor " + printable(entry->name) + " overlaps another");
    if (entry->begin > covered)
      return damaged(entry->described_at, "there is a gap before the data of tensor " + printable(entry->name));
    covered = entry->end;
  }
  if (covered == data_bytes) return std::nullopt;
  return damaged(
      0, "the tensors cover " + std::to_string(covered) + " of " + std::to_string(data_bytes) + " bytes of data");
}

}  // namespace

result<std::vector<found_tensor>> read_safetensors(byte_span file, file_metadata* metadata) {
  if (file.size() < 8) return damaged(file.size(), "the file ends inside the header length");
  const auto header_bytes = load<std::uint64_t>(file, 0);
  if (header_bytes > max_header_bytes)
    return damaged(0, "a header of " + std::to_string(header_bytes) + " bytes is too long");
  if (header_bytes > file.size() - 8) return damaged(0, "the file ends inside its header");
  const std::uint64_t data_begin = 8 + header_bytes;

  auto entries = parse_safetensors_header(file, 8, data_begin, metadata);
  if (!entries) return entries.error();
  if (is_quantised_by_mlx(*entries))
    return error{error_kind::unsupported, "the model is quantised by MLX, which is not supported", {}};
  std::vector<found_tensor> tensors;
  tensors.reserve(entries->size());
  for (const auto& entry : *entries) {
    auto tensor = checked(file, data_begin, entry);
    if (!tensor) return tensor.error();
    tensors.push_back(std::move(*tensor));
  }
  if (auto fault = cover_fault(*entries, file.size() - data_begin)) return *fault;
  return tensors;
}

}  // namespace skein::model
