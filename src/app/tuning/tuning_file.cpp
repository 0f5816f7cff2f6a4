#include "app/tuning/tuning_file.hpp"

#include <algorithm>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "app/data_files.hpp"
#include "app/small_file.hpp"
#include "protocol/json/json.hpp"
#include "protocol/json/json_indent.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::cli {
namespace {

using kernels::gpu::gpu_tuning;
using kernels::gpu::tile_names;

constexpr double tile_us_max = 1e6;
constexpr std::uint64_t led_rows_max = 1024;

struct entry {
  tuning_key key;
  gpu_tuning tuning;
};

error damaged(const std::filesystem::path& path, const std::string& what) {
  return {error_kind::bad_file, path.string() + ": " + what + "; run skein tune again, or remove the file", "model"};
}

bool is_between(double low, double value, double high) { return value >= low && value <= high; }

/// Reads a member into `to` if it is there. `legal`: whether its value is one.
template <typename Read>
bool read_member(const protocol::json_value& from, std::string_view name, const Read& read) {
  const auto found = from.member(name);
  return !found || read(*found);
}

bool read_tiles(const protocol::json_value& from, kernels::gpu::tile_times& to) {
  for (std::size_t i = 0; i < tile_names.size(); ++i) {
    const bool legal = read_member(from, tile_names[i], [&](const protocol::json_value& value) {
      to[i] = value.number().value_or(-1);
      return is_between(0, to[i], tile_us_max);
    });
    if (!legal) return false;
  }
  return true;
}

/// The entry, or the name of the member that is at fault.
std::optional<std::string> read_entry(const protocol::json_value& from, entry& to) {
  const auto device = from.member("device"), weights = from.member("weights");
  if (!device || !device->text()) return "device";
  if (!weights || !weights->text()) return "weights";
  to.key = {std::string(*device->text()), std::string(*weights->text())};
  gpu_tuning& tuning = to.tuning;
  if (!read_member(from, "blocks_per_sm", [&](const auto& value) {
        tuning.blocks_per_sm = value.number().value_or(0);
        return is_between(kernels::gpu::blocks_per_sm_min, tuning.blocks_per_sm, kernels::gpu::blocks_per_sm_max);
      }))
    return "blocks_per_sm";
  if (!read_member(from, "led_rows", [&](const auto& value) {
        const auto rows = value.unsigned_integer();
        if (rows && *rows <= led_rows_max) tuning.led_rows = static_cast<std::uint32_t>(*rows);
        return tuning.led_rows.has_value();
      }))
    return "led_rows";
  if (!read_member(from, "tile_us", [&](const auto& value) {
        return value.is(protocol::json_kind::object) && read_tiles(value, tuning.tile_us);
      }))
    return "tile_us";
  return {};
}

/// All entries; none if there is no file.
result<std::vector<entry>> read_entries(const std::filesystem::path& path) {
  if (!is_file(path)) return std::vector<entry>{};
  const auto text = read_small_file(path);
  if (!text) return text.error();
  const auto document = protocol::json_document::parse(*text, {});
  if (!document) return damaged(path, "is not JSON");
  const auto root = document->root();
  const auto list =
      root.is(protocol::json_kind::object) ? root.member("entries") : std::optional<protocol::json_value>();
  if (!list || !list->is(protocol::json_kind::array)) return damaged(path, "has no list of entries");
  std::vector<entry> entries;
  for (const auto each : list->elements()) {
    entry read;
    const auto at = "entries[" + std::to_string(entries.size()) + ']';
    if (!each.is(protocol::json_kind::object)) return damaged(path, at + " is not an object");
    if (const auto fault = read_entry(each, read)) return damaged(path, at + '.' + *fault + " is missing or not legal");
    entries.push_back(std::move(read));
  }
  return entries;
}

void write_entry(protocol::json_writer& out, const entry& from) {
  const gpu_tuning& tuning = from.tuning;
  out.begin_object().key("device").value(from.key.device).key("weights").value(from.key.weights);
  if (tuning.blocks_per_sm > 0) out.key("blocks_per_sm").value(tuning.blocks_per_sm);
  if (tuning.led_rows) out.key("led_rows").value(*tuning.led_rows);
  if (tuning.tile_us != kernels::gpu::tile_times{}) {
    out.key("tile_us").begin_object();
    for (std::size_t i = 0; i < tile_names.size(); ++i) out.key(tile_names[i]).value(tuning.tile_us[i]);
    out.end_object();
  }
  out.end_object();
}

}  // namespace

std::filesystem::path tuning_file_of(const model::checkpoint& file) {
  if (file.is_folder()) {
    std::error_code none;
    const auto& path = file.path();
    return (std::filesystem::is_directory(path, none) ? path : path.parent_path()) / "skein-tuning.json";
  }
  auto path = file.path();
  return path += ".tuning.json";
}

result<gpu_tuning> read_tuning(const std::filesystem::path& path, const tuning_key& key) {
  const auto entries = read_entries(path);
  if (!entries) return entries.error();
  const auto found = std::ranges::find(*entries, key, &entry::key);
  return found == entries->end() ? gpu_tuning{} : found->tuning;
}

result<void> write_tuning(const std::filesystem::path& path, const tuning_key& key, const gpu_tuning& tuning) {
  auto entries = read_entries(path);
  if (!entries) return entries.error();
  std::erase_if(*entries, [&](const entry& each) { return each.key == key; });
  entries->push_back({key, tuning});
  std::string text;
  protocol::json_writer out(text);
  out.begin_object().key("entries").begin_array();
  for (const entry& each : *entries) write_entry(out, each);
  out.end_array().end_object();
  const auto document = protocol::json_document::parse(text, {});
  if (!document) return document.error();
  std::string lines;
  protocol::indent_json(lines, document->root());
  auto passing = path;
  passing += ".new";
  if (const auto written = write_small_file(passing, lines + '\n'); !written) return written;
  std::error_code failed;
  std::filesystem::rename(passing, path, failed);
  if (failed) return error{error_kind::io, "cannot write " + path.string() + ": " + failed.message(), {}};
  return {};
}

}  // namespace skein::cli
