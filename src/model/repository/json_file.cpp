#include "model/repository/json_file.hpp"

#include "model/mapping/mapped_file.hpp"

namespace skein::model {

error json_fault(const std::filesystem::path& path, const std::string& what) {
  return {error_kind::bad_file, path.string() + ": " + what, {}};
}

result<std::string> read_json_text(const std::filesystem::path& path, std::size_t bytes_max) {
  const auto file = mapped_file::open(path);
  if (!file) return file.error();
  const auto bytes = file->bytes();
  if (bytes.size() > bytes_max)
    return json_fault(
        path, "has " + std::to_string(bytes.size()) + " bytes; at most " + std::to_string(bytes_max) + " are accepted");
  std::string text(text_at(bytes, 0, bytes.size()));
  if (!file->unchanged()) return changed_file(path);
  return text;
}

}  // namespace skein::model
