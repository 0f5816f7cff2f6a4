#include "cli/safetensors_writer.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.hpp"

namespace skein::cli {
namespace {

error cannot_write(const std::filesystem::path& path) { return {error_kind::io, "cannot write " + path.string(), {}}; }

const char* name_of(dtype type) { return type == dtype::f32 ? "F32" : type == dtype::f16 ? "F16" : "BF16"; }

std::string header_of(std::span<const safetensors_writer::entry> entries) {
  std::string json = "{";
  std::uint64_t offset = 0;
  for (const auto& each : entries) {
    check(std::all_of(each.name.begin(), each.name.end(),
                      [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }));
    check(each.type == dtype::f32 || each.type == dtype::bf16 || each.type == dtype::f16);
    std::uint64_t bytes = dtype_bytes(each.type);
    std::string shape;
    for (const auto size : each.shape) {
      bytes *= static_cast<std::uint64_t>(size);
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    json += (json.size() == 1 ? "\"" : ",\"") + each.name + "\":{\"dtype\":\"" + name_of(each.type) + "\",\"shape\":[" +
            shape + "],\"data_offsets\":[" + std::to_string(offset) + ',' + std::to_string(offset + bytes) + "]}";
    offset += bytes;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the format requires data at a multiple of 8
  return json;
}

}  // namespace

result<safetensors_writer> safetensors_writer::create(const std::filesystem::path& path,
                                                      std::span<const entry> entries) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (descriptor < 0) return cannot_write(path);
  safetensors_writer writer(descriptor, path);
  std::string header = header_of(entries);
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
