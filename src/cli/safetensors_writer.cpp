#include "cli/safetensors_writer.hpp"

#include <algorithm>

#include "base/check.hpp"

namespace skein::cli {
namespace {

error cannot_write(const std::filesystem::path& path) { return {error_kind::io, "cannot write " + path.string(), {}}; }

std::string header_of(std::span<const safetensors_writer::entry> entries) {
  std::string json = "{";
  std::uint64_t offset = 0;
  for (const auto& each : entries) {
    check(std::all_of(each.name.begin(), each.name.end(),
                      [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; }));
    check(each.type == dtype::f32 || each.type == dtype::bf16);
    std::uint64_t bytes = dtype_bytes(each.type);
    std::string shape;
    for (const auto size : each.shape) {
      bytes *= static_cast<std::uint64_t>(size);
      shape += (shape.empty() ? "" : ",") + std::to_string(size);
    }
    json += (json.size() == 1 ? "\"" : ",\"") + each.name + "\":{\"dtype\":\"" +
            (each.type == dtype::f32 ? "F32" : "BF16") + "\",\"shape\":[" + shape + "],\"data_offsets\":[" +
            std::to_string(offset) + ',' + std::to_string(offset + bytes) + "]}";
    offset += bytes;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');  // the format asks for data at a multiple of 8
  return json;
}

}  // namespace

safetensors_writer::safetensors_writer(std::ofstream file, std::filesystem::path path)
    : file_(std::move(file)), path_(std::move(path)) {}

result<safetensors_writer> safetensors_writer::create(const std::filesystem::path& path,
                                                      std::span<const entry> entries) {
  safetensors_writer writer(std::ofstream(path, std::ios::binary | std::ios::trunc), path);
  if (!writer.file_) return cannot_write(path);
  const std::string header = header_of(entries);
  const std::uint64_t bytes = header.size();
  writer.append(std::as_bytes(std::span(&bytes, 1)));
  writer.append(std::as_bytes(std::span(header)));
  return writer;
}

void safetensors_writer::append(std::span<const std::byte> elements) {
  file_.write(reinterpret_cast<const char*>(elements.data()), static_cast<std::streamsize>(elements.size()));
}

result<void> safetensors_writer::finish() {
  file_.close();
  if (file_.fail()) return cannot_write(path_);
  return {};
}

}  // namespace skein::cli
