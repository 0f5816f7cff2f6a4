#include "model/checkpoint.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "model/adapters/merge.hpp"
#include "model/files/found_model.hpp"
#include "model/forms/converted_tensors.hpp"
#include "model/forms/original_names.hpp"
#include "model/repository/model_files.hpp"

namespace skein::model {

struct checkpoint::impl {
  std::filesystem::path path;
  found_model found;  ///< owns the memory; its tensors have moved to `tensors`
  std::vector<named_tensor> tensors;
  std::vector<std::uint32_t> by_name;  ///< indices into `tensors`
};

namespace {

/// Indices of the tensors in order of name.
result<std::vector<std::uint32_t>> order_by_name(const found_model& found) {
  const auto& tensors = found.tensors;
  std::vector<std::uint32_t> order(tensors.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) -> std::string_view { return tensors[i].name; });
  for (std::size_t i = 1; i < order.size(); ++i)
    if (tensors[order[i]].name == tensors[order[i - 1]].name)
      return tensor_fault(found, tensors[order[i]], "appears twice");
  return order;
}

}  // namespace

result<checkpoint> checkpoint::open(const std::filesystem::path& path, std::span<const adapter_choice> adapters) {
  auto found = read_files(path);
  if (!found) return found.error();
  if (const auto named = to_original(*found); !named) return in_file(path, named.error());
  if (const auto joined = join_converted(*found); !joined) return in_file(path, joined.error());
  auto order = order_by_name(*found);
  if (!order) return in_file(path, order.error());
  if (const auto merged = merge_adapters(*found, adapters); !merged) {
    error why = merged.error();
    why.field = "adapter";  // not the model
    return why;
  }

  auto made = std::make_unique<impl>(
      impl{path.has_filename() ? path : path.parent_path(), std::move(*found), {}, std::move(*order)});
  made->tensors.reserve(made->found.tensors.size());
  for (auto& tensor : made->found.tensors)
    made->tensors.push_back(
        {std::move(tensor.name), std::move(tensor.view), std::move(tensor.digest), tensor.quantised_as});
  made->found.tensors.clear();
  return checkpoint(std::move(made));
}

checkpoint::checkpoint(std::unique_ptr<impl> made) : impl_(std::move(made)) {}
checkpoint::checkpoint(checkpoint&&) noexcept = default;
checkpoint& checkpoint::operator=(checkpoint&&) noexcept = default;
checkpoint::~checkpoint() = default;

result<void> checkpoint::check_unchanged() const {
  for (std::size_t i = 0; i < impl_->found.files.size(); ++i)
    if (!impl_->found.files[i].unchanged()) return changed_file(impl_->found.paths[i]);
  return {};
}

std::span<const named_tensor> checkpoint::tensors() const { return impl_->tensors; }

const tensor_view* checkpoint::find(std::string_view name) const {
  const auto name_of = [this](std::uint32_t i) -> std::string_view { return impl_->tensors[i].name; };
  const auto found = std::ranges::lower_bound(impl_->by_name, name, {}, name_of);
  return found != impl_->by_name.end() && name_of(*found) == name ? &impl_->tensors[*found].view : nullptr;
}

const std::filesystem::path& checkpoint::path() const { return impl_->path; }
std::uint64_t checkpoint::file_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& file : impl_->found.files) bytes += file.bytes().size();
  return bytes;
}
std::string_view checkpoint::format() const { return impl_->found.format; }
std::string_view checkpoint::form() const { return impl_->found.form; }
std::span<const std::string> checkpoint::notes() const { return impl_->found.notes; }
std::string_view checkpoint::dtype() const { return impl_->found.dtype; }
std::string_view checkpoint::weight_format() const { return impl_->found.weight_format; }
std::string_view checkpoint::vocabulary() const { return impl_->found.vocabulary; }
std::span<const stated_size> checkpoint::stated() const { return impl_->found.stated; }

chat_form checkpoint::chat() const { return impl_->found.chat; }
bool checkpoint::is_folder() const { return impl_->found.paths.front() != impl_->path; }
std::string checkpoint::name() const {
  return is_folder() ? impl_->path.filename().string() : impl_->path.stem().string();
}
std::string_view checkpoint::foreign_vocabulary() const { return impl_->found.foreign_vocabulary; }

}  // namespace skein::model
