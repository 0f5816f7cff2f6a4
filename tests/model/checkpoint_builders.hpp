#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/tensor.hpp"
#include "kernels/weights/model_weights.hpp"

/// Writers of checkpoint files for tests, good ones and damaged ones. A file is a std::string of its bytes.
namespace skein::test {

/// `count` low bytes of `value`, lowest first.
[[nodiscard]] std::string little_endian(std::uint64_t value, int count);
/// The file with the bytes at `offset` replaced; a patch that reaches beyond the end throws.
[[nodiscard]] std::string patched(std::string file, std::size_t offset, std::string_view bytes);
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// Length, header, data.
[[nodiscard]] std::string safetensors_file(std::string_view header, std::string_view data);

/// Writes stored zip members one after the other, then the directory.
class zip_builder {
 public:
  struct options {
    std::string extra;  ///< extra field of the local header
    std::uint16_t method = 0;
    std::uint16_t flags = 0;
    std::uint64_t hole = 0;  ///< bytes of zeros after the data, which the file need not store
  };
  zip_builder& add(std::string_view name, std::string_view data) { return add(name, data, {}); }
  zip_builder& add(std::string_view name, std::string_view data, const options& how);
  zip_builder& zip64(bool on) { return zip64_ = on, *this; }

  /// The whole archive, holes filled in.
  [[nodiscard]] std::string file() const;
  /// The archive on disk, holes left as holes.
  void write(const std::filesystem::path& path) const;

  [[nodiscard]] std::size_t local_header(std::size_t index) const { return members_[index].header; }
  [[nodiscard]] std::size_t directory() const { return end_; }  ///< where the directory begins
  [[nodiscard]] std::size_t directory_entry(std::size_t index) const;
  [[nodiscard]] std::size_t end_record() const;

 private:
  struct member {
    std::string name;
    std::string local;  ///< local header and data
    std::uint64_t header, bytes;
    options how;
  };
  [[nodiscard]] std::string entry(const member& m) const;
  [[nodiscard]] std::string tail() const;

  std::vector<member> members_;
  std::uint64_t end_ = 0;
  bool zip64_ = false;
};

/// Pieces of a pickle, to be put together with +.
namespace pickled {
[[nodiscard]] std::string integer(std::int64_t n);
[[nodiscard]] std::string text(std::string_view t);
[[nodiscard]] std::string global(std::string_view module, std::string_view name);
[[nodiscard]] std::string tuple(const std::vector<std::string>& items);
[[nodiscard]] std::string integers(const std::vector<std::int64_t>& numbers);
[[nodiscard]] std::string ordered_dict();  ///< an empty one
[[nodiscard]] std::string storage(std::string_view type, std::string_view key, std::int64_t elements);
[[nodiscard]] std::string tensor(const std::string& storage, std::int64_t offset,
                                 const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& stride);
/// A whole pickle around `body`, which leaves one value on the stack.
[[nodiscard]] std::string whole(const std::string& body);
/// The dict with these items (names and values, in pieces).
[[nodiscard]] std::string dict(const std::string& items);
}  // namespace pickled

/// A `.pth` with the folder name "m": data.pkl first, then the storages by key, then `version`.
[[nodiscard]] zip_builder pth_archive(const std::string& pickle,
                                      const std::vector<std::pair<std::string, std::string>>& storages);

/// A tensor to be written; `data` holds its row-major elements.
struct tensor_plan {
  std::string name;
  dtype type;
  std::vector<std::int64_t> shape;
  std::string data;
};
[[nodiscard]] std::size_t bytes_of(const tensor_plan& plan);

/// The tensors of an RWKV-7 model, without data.
[[nodiscard]] std::vector<tensor_plan> rwkv7_plan(const kernels::model_dims& dims, dtype type);
/// The tensor of that name in a plan; throws when there is none.
[[nodiscard]] tensor_plan& named(std::vector<tensor_plan>& plan, std::string_view name);
/// The plan with one tensor's shape changed, or with one tensor left out.
[[nodiscard]] std::vector<tensor_plan> reshaped(std::vector<tensor_plan> plan, std::string_view name,
                                                std::vector<std::int64_t> shape);
[[nodiscard]] std::vector<tensor_plan> without(std::vector<tensor_plan> plan, std::string_view name);
/// Sizes of a model of a few KB: 2 layers, 2 heads of 4.
[[nodiscard]] kernels::model_dims small_dims();
/// Fills in each tensor's data with numbers that follow from its name.
[[nodiscard]] std::vector<tensor_plan> filled(std::vector<tensor_plan> plan);

[[nodiscard]] std::string safetensors_header(const std::vector<tensor_plan>& plan);
[[nodiscard]] std::string safetensors_of(const std::vector<tensor_plan>& plan);
[[nodiscard]] std::string pth_pickle(const std::vector<tensor_plan>& plan);
[[nodiscard]] std::string pth_of(const std::vector<tensor_plan>& plan);

}  // namespace skein::test
