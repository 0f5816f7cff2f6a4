#include "model/files/pth.hpp"

#include <algorithm>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/pickle.hpp"
#include "model/files/zip_directory.hpp"

namespace skein::model {
namespace {

/// The one member `<folder>/data.pkl`.
result<zip_member> find_pickle(const zip_directory& archive) {
  const zip_member* found = nullptr;
  for (const auto& member : archive.members()) {
    if (!member.name.ends_with("/data.pkl")) continue;
    if (found) return damaged(member.data, "the archive has more than one data.pkl");
    found = &member;
  }
  if (!found) return damaged(0, "the archive has no data.pkl: it is not a torch checkpoint");
  if (found->bytes > max_header_bytes)
    return damaged(found->data, "data.pkl of " + std::to_string(found->bytes) + " bytes is too long");
  return *found;
}

/// Checks one tensor against its storage: every element addressed by shape and stride is inside, and there are no more
/// elements than the storage has, so that strides cannot turn a small file into a large tensor.
result<found_tensor> checked(byte_span file, const zip_directory& archive, std::string_view folder,
                             pickled_entry& entry) {
  pickled_tensor& tensor = entry.tensor;
  const auto fault = [&](const std::string& what) {
    return damaged(tensor.described_at, "tensor " + printable(entry.name) + ": " + what);
  };
  std::string path(folder);
  (path += "data/") += tensor.storage;
  const zip_member* storage = archive.find(path);
  if (!storage) return fault("its storage " + printable(path) + " is missing");
  const std::uint64_t element_bytes = dtype_bytes(tensor.type), stored = storage->bytes / element_bytes;
  if (tensor.storage_elements > stored)
    return fault("its storage has " + std::to_string(stored) + " elements, not " +
                 std::to_string(tensor.storage_elements));

  std::uint64_t elements = 1, last = tensor.offset;
  for (std::size_t i = 0; i < tensor.shape.size(); ++i) {
    const auto dimension = static_cast<std::uint64_t>(tensor.shape[i]);
    const auto stride = static_cast<std::uint64_t>(tensor.stride[i]);
    std::uint64_t reach = 0;
    if (__builtin_mul_overflow(elements, dimension, &elements) ||
        __builtin_mul_overflow(dimension - 1, stride, &reach) || __builtin_add_overflow(last, reach, &last))
      return fault("shape and stride overflow 64 bits");
  }
  if (last >= tensor.storage_elements || elements > tensor.storage_elements - tensor.offset)
    return fault("shape and stride reach beyond the " + std::to_string(tensor.storage_elements) +
                 " elements of its storage");
  const std::byte* first = file.data() + storage->data + tensor.offset * element_bytes;
  return found_tensor{std::string(entry.name),
                      {first, tensor.type, std::move(tensor.shape), std::move(tensor.stride)},
                      tensor.described_at};
}

}  // namespace

bool looks_like_pth(byte_span file) { return file.size() >= 4 && load<std::uint32_t>(file, 0) == 0x04034b50; }

bool looks_like_legacy_pth(byte_span file) {
  constexpr std::string_view magic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19";  // torch's magic
                                                                                                  // number
  return file.size() >= magic.size() && text_at(file, 0, magic.size()) == magic;
}

result<std::vector<found_tensor>> read_pth(byte_span file) {
  const auto archive = zip_directory::read(file);
  if (!archive) return archive.error();
  const auto pickle = find_pickle(*archive);
  if (!pickle) return pickle.error();
  const std::string_view folder = pickle->name.substr(0, pickle->name.size() - std::string_view("data.pkl").size());
  if (const auto* order = archive->find(std::string(folder) + "byteorder"))
    if (text_at(file, order->data, order->bytes) != "little")
      return damaged(order->data, "the archive's byte order is not little");

  auto entries = read_state_dict(file, pickle->data, pickle->data + pickle->bytes);
  if (!entries) return entries.error();
  std::vector<found_tensor> tensors;
  tensors.reserve(entries->size());
  std::uint64_t described_bytes = 0;
  for (auto& entry : *entries) {
    auto tensor = checked(file, *archive, folder, entry);
    if (!tensor) return tensor.error();
    // Tied weights refer to a storage twice. With more references, reading all tensors would cost far more than the
    // file.
    described_bytes += static_cast<std::uint64_t>(tensor->view.elements()) * dtype_bytes(tensor->view.type);
    if (described_bytes / 2 > file.size())
      return damaged(tensor->described_at, "the tensors describe more than twice the bytes of the file");
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

}  // namespace skein::model
