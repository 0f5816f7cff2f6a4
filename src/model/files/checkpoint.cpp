#include "model/files/checkpoint.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "model/files/mapped_file.hpp"
#include "model/files/pth.hpp"
#include "model/files/safetensors.hpp"

namespace skein::model {

struct checkpoint::impl {
  std::filesystem::path path;
  mapped_file file;
  std::string_view format;
  std::vector<named_tensor> tensors;
  std::vector<std::uint32_t> by_name;  ///< indices into `tensors`
};

namespace {

enum class file_format { pth, safetensors };

result<file_format> recognise(byte_span file) {
  if (looks_like_pth(file)) return file_format::pth;
  if (looks_like_legacy_pth(file))
    return damaged(
        0, "the format of torch before 1.6 is not supported; load the file with a newer torch and save it again");
  if (file.size() > 8 && text_at(file, 8, 1) == "{") return file_format::safetensors;
  return damaged(0, "neither .pth nor .safetensors: the file begins with " +
                        printable(text_at(file, 0, std::min<std::uint64_t>(file.size(), 16))));
}

// Prefixes that torch wrappers and trainers add to each name.
constexpr std::string_view prefixes[] = {"module.", "_orig_mod.", "_forward_module.", "rwkv7.", "model."};

bool is_prefix(std::string_view text) {
  while (!text.empty()) {
    const auto first = std::ranges::find_if(prefixes, [&](std::string_view p) { return text.starts_with(p); });
    if (first == std::end(prefixes)) return false;
    text.remove_prefix(first->size());
  }
  return true;
}

/// The shortest prefix before the names that a model or a state-tuning file must have; empty: none.
std::string prefix_of(const std::vector<found_tensor>& tensors) {
  std::optional<std::string_view> shortest;
  for (const std::string_view anchor : {"emb.weight", "blocks.0.att.time_state"})
    for (const auto& tensor : tensors) {
      const std::string_view name = tensor.name;
      if (!name.ends_with(anchor)) continue;
      const auto before = name.substr(0, name.size() - anchor.size());
      if (is_prefix(before) && (!shortest || before.size() < shortest->size())) shortest = before;
    }
  return std::string(shortest.value_or(""));
}

void strip_prefix(std::vector<found_tensor>& tensors) {
  const std::string prefix = prefix_of(tensors);
  for (auto& tensor : tensors)
    if (tensor.name.starts_with(prefix) && tensor.name.size() > prefix.size()) tensor.name.erase(0, prefix.size());
}

/// Indices of the tensors in order of name.
result<std::vector<std::uint32_t>> order_by_name(const std::vector<found_tensor>& tensors) {
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) -> std::string_view { return tensors[i].name; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (tensors[order[i]].name == tensors[order[i - 1]].name)
      return damaged(tensors[order[i]].described_at, "tensor " + printable(tensors[order[i]].name) + " appears twice");
  return order;
}

error in_file(const std::filesystem::path& path, error e) {
  e.message = path.string() + ": " + e.message;
  return e;
}

}  // namespace

result<checkpoint> checkpoint::open(const std::filesystem::path& path) {
  auto file = mapped_file::open(path);
  if (!file) return file.error();
  file->read_ahead(false);
  const auto format = recognise(file->bytes());
  if (!format) return in_file(path, format.error());
  const bool pth = *format == file_format::pth;
  auto found = pth ? read_pth(file->bytes()) : read_safetensors(file->bytes());
  if (!found) return in_file(path, found.error());
  if (found->empty()) return in_file(path, damaged(0, "the file has no tensors"));
  strip_prefix(*found);
  auto order = order_by_name(*found);
  if (!order) return in_file(path, order.error());
  file->read_ahead(true);

  auto made = std::make_unique<impl>(impl{path, std::move(*file), pth ? "pth" : "safetensors", {}, std::move(*order)});
  made->tensors.reserve(found->size());
  for (auto& tensor : *found) made->tensors.push_back({std::move(tensor.name), std::move(tensor.view)});
  return checkpoint(std::move(made));
}

checkpoint::checkpoint(std::unique_ptr<impl> made) : impl_(std::move(made)) {}
checkpoint::checkpoint(checkpoint&&) noexcept = default;
checkpoint& checkpoint::operator=(checkpoint&&) noexcept = default;
checkpoint::~checkpoint() = default;

std::span<const named_tensor> checkpoint::tensors() const { return impl_->tensors; }

const tensor_view* checkpoint::find(std::string_view name) const {
  const auto name_of = [this](std::uint32_t i) -> std::string_view { return impl_->tensors[i].name; };
  const auto found = std::ranges::lower_bound(impl_->by_name, name, {}, name_of);
  return found != impl_->by_name.end() && name_of(*found) == name ? &impl_->tensors[*found].view : nullptr;
}

const std::filesystem::path& checkpoint::path() const { return impl_->path; }
std::uint64_t checkpoint::file_bytes() const { return impl_->file.bytes().size(); }
std::string_view checkpoint::format() const { return impl_->format; }

}  // namespace skein::model
