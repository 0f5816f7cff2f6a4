#include "cli/safetensors_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>
#include <utility>

#include "model/files/checkpoint_limits.hpp"
#include "model/files/file_bytes.hpp"
#include "model/files/safetensors_header.hpp"

namespace skein::cli {
namespace {

error cannot_write(const std::filesystem::path& path) { return {error_kind::io, "cannot write " + path.string(), {}}; }

/// In quotes.
std::string json_text(std::string_view text) {
  std::string json = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      json.append({'\\', c});
    else if (static_cast<unsigned char>(c) < 0x20)
      json.append("\\u00").append({"01"[c >> 4], "0123456789abcdef"[c & 15]});
    else
      json += c;
  }
  return json += '"';
}

result<std::string> header_of(std::span<const safetensors_writer::entry> entries,
                              const safetensors_writer::metadata& more) {
  std::string json = "{";
  if (!more.empty()) {
    std::string texts;
    for (const auto& [key, value] : more)
      texts.append(texts.empty() ? "" : ",").append(json_text(key)).append(":").append(json_text(value));
    json += "\"__metadata__\":{" + texts + '}';
  }
  std::uint64_t offset = 0;
  for (const auto& each : entries) {
    if (!model::valid_utf8(each.name) || each.name == "__metadata__")
      return error{error_kind::unsupported,
                   "tensor " + model::printable(each.name) + ": the format .safetensors cannot hold this name",
                   {}};
    std::uint64_t bytes = dtype_bytes(each.type);
    std::string shape;
    for (const auto size : each.shape) {
      bytes *= static_cast<std::uint64_t>(size);
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    json += (json.size() == 1 ? "" : ",") + json_text(each.name) + ":{\"dtype\":\"" +
            std::string(model::safetensors_name(each.type)) + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
            std::to_string(offset) + ',' + std::to_string(offset + bytes) + "]}";
    offset += bytes;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the format requires data at a multiple of 8
  if (json.size() > model::max_header_bytes)
    return error{error_kind::unsupported,
                 "the names of all tensors need a header of " + std::to_string(json.size()) +
                     " bytes; .safetensors files may have " + std::to_string(model::max_header_bytes),
                 {}};
  return json;
}

}  // namespace

result<safetensors_writer> safetensors_writer::create(const std::filesystem::path& path, std::span<const entry> entries,
                                                      const metadata& more) {
  auto made = header_of(entries, more);
  if (!made) return made.error();
  std::string& header = *made;
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot_write(path);
  safetensors_writer writer(descriptor, path);
  const std::uint64_t bytes = header.size();
  header.insert(0, reinterpret_cast<const char*>(&bytes), sizeof bytes);
  writer.write(0, std::as_bytes(std::span(header)));
  writer.data_begin_ = header.size();
  return writer;
}

safetensors_writer::safetensors_writer(safetensors_writer&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      data_begin_(other.data_begin_),
      failed_(other.failed_.load()) {}

safetensors_writer::~safetensors_writer() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void safetensors_writer::write(std::uint64_t first_byte, std::span<const std::byte> elements) {
  auto at = static_cast<off_t>(data_begin_ + first_byte);
  while (!elements.empty() && !failed_) {
    const ssize_t written = ::pwrite(descriptor_, elements.data(), elements.size(), at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failed_ = true;
      return;
    }
    elements = elements.subspan(static_cast<std::size_t>(written));
    at += written;
  }
}

result<void> safetensors_writer::finish() {
  if (::close(std::exchange(descriptor_, -1)) != 0 || failed_) return cannot_write(path_);
  return {};
}

}  // namespace skein::cli
