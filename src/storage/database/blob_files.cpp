#include "storage/database/blob_files.hpp"

#include <algorithm>
#include <array>
#include <fstream>

namespace skein::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t file_header_bytes = 30, file_footer_bytes = 32, record_header_bytes = 32;
constexpr std::uint32_t file_magic = 2395959;
constexpr std::uint64_t key_bytes_max = 1024, value_bytes_max = std::uint64_t{1} << 32;

template <typename Number>
Number number_at(std::string_view bytes, std::size_t at) {
  Number n = 0;
  for (std::size_t i = 0; i < sizeof n; ++i)
    n |= static_cast<Number>(static_cast<std::uint8_t>(bytes[at + i])) << 8 * i;
  return n;
}

struct record_header {
  std::uint64_t key_bytes = 0, value_bytes = 0, end = 0;
};

/// The header of the record at `at`; nullopt if it cannot be one: our keys are short, and values never expire.
std::optional<record_header> record_header_at(std::string_view head, std::uint64_t at, std::uint64_t file_bytes) {
  if (head.size() < record_header_bytes) return {};
  record_header found{number_at<std::uint64_t>(head, 0), number_at<std::uint64_t>(head, 8), 0};
  if (found.key_bytes == 0 || found.key_bytes > key_bytes_max) return {};
  if (found.value_bytes == 0 || found.value_bytes > value_bytes_max) return {};
  if (number_at<std::uint64_t>(head, 16) != 0) return {};
  found.end = at + record_header_bytes + found.key_bytes + found.value_bytes;
  if (found.end > file_bytes) return {};
  return found;
}

std::string read_at(std::ifstream& file, std::uint64_t at, std::uint64_t bytes) {
  std::string read(bytes, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  file.read(read.data(), static_cast<std::streamsize>(bytes));
  read.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return read;
}

/// The next offset from `at` on where a record may begin; the end of the file if there is none.
std::uint64_t next_record(std::ifstream& file, std::uint64_t at, std::uint64_t file_bytes) {
  const std::string rest = read_at(file, at, file_bytes - at);
  for (std::size_t i = 0; i + record_header_bytes <= rest.size(); ++i)
    if (record_header_at(std::string_view(rest).substr(i, record_header_bytes), at + i, file_bytes)) return at + i;
  return file_bytes;
}

}  // namespace

blob_files::blob_files(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(directory, failed))
    if (entry.path().extension() == ".blob") files.push_back(entry.path());
  std::ranges::sort(files);  // so that the value in the newest file wins
  for (const auto& file : files) look_at(file);
}

void blob_files::look_at(const fs::path& path) {
  const auto damaged = [&](std::string why) { damaged_.emplace_back(path.filename().string(), std::move(why)); };
  std::error_code failed;
  const std::uint64_t bytes = fs::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  const std::string head = failed || !file ? std::string() : read_at(file, 0, std::min<std::uint64_t>(bytes, 30));
  if (head.size() < file_header_bytes) return damaged("the file cannot be read or is too short");
  const auto number = number_at<std::uint32_t>(head, 8);
  if (number_at<std::uint32_t>(head, 0) != file_magic || number >= families)
    return damaged("the file header is damaged");
  const auto of = static_cast<family>(number);
  bool told = false;
  for (std::uint64_t at = file_header_bytes; at < bytes;) {
    const auto header =
        record_header_at(read_at(file, at, std::min<std::uint64_t>(record_header_bytes, bytes - at)), at, bytes);
    if (header) {
      const std::uint64_t key = at + record_header_bytes, value = key + header->key_bytes;
      places_.insert_or_assign({of, read_at(file, key, header->key_bytes)}, place{path, value, header->value_bytes});
      at = header->end;
      continue;
    }
    const bool footer =
        bytes - at == file_footer_bytes && number_at<std::uint32_t>(read_at(file, at, 4) + "   ", 0) == file_magic;
    if (footer) return;
    if (!std::exchange(told, true)) damaged("a record at byte " + std::to_string(at) + " is damaged or cut short");
    at = next_record(file, at + 1, bytes);
  }
}

std::optional<std::string> blob_files::read(family of, std::string_view key) const {
  const auto found = places_.find(std::pair{of, std::string(key)});
  if (found == places_.end()) return {};
  std::ifstream file(found->second.file, std::ios::binary);
  std::string value = read_at(file, found->second.at, found->second.bytes);
  if (value.size() != found->second.bytes) return {};
  return value;
}

}  // namespace skein::storage
