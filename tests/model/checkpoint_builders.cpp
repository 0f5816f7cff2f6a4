#include "tests/model/checkpoint_builders.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <numeric>
#include <random>
#include <stdexcept>

#include "model/files/safetensors_header.hpp"

namespace skein::test {
namespace {

std::string_view storage_type(dtype t) {
  switch (t) {
    case dtype::f32: return "FloatStorage";
    case dtype::bf16: return "BFloat16Storage";
    case dtype::f16: return "HalfStorage";
    case dtype::f64: return "DoubleStorage";
    case dtype::i8: return "CharStorage";
    case dtype::u8: return "ByteStorage";
    case dtype::i32: return "IntStorage";
    case dtype::i64: return "LongStorage";
  }
  return "?";
}

std::int64_t elements_of(const tensor_plan& plan) {
  return std::accumulate(plan.shape.begin(), plan.shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

std::string little_endian(std::uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string patched(std::string file, std::size_t offset, std::string_view bytes) {
  if (offset + bytes.size() > file.size()) throw std::out_of_range("a patch beyond the end of the file");
  return file.replace(offset, bytes.size(), bytes);
}

void write_file(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::string safetensors_file(std::string_view header, std::string_view data) {
  return little_endian(header.size(), 8) + std::string(header) + std::string(data);
}

// ------------------------------------------------------------ zip

zip_builder& zip_builder::add(std::string_view name, std::string_view data, const options& how) {
  const std::uint64_t bytes = data.size() + how.hole;
  std::string local = "PK\x03\x04" + little_endian(20, 2) + little_endian(how.flags, 2) + little_endian(how.method, 2) +
                      std::string(8, '\0') +  // time, date, checksum
                      std::string(8, '\0') +  // sizes: left out, as by torch
                      little_endian(name.size(), 2) + little_endian(how.extra.size(), 2);
  ((local += name) += how.extra) += data;
  members_.push_back({std::string(name), std::move(local), end_, bytes, how});
  end_ += members_.back().local.size() + how.hole;
  return *this;
}

std::string zip_builder::entry(const member& m) const {
  const bool wide = zip64_ && (m.bytes >= 0xffffffff || m.header >= 0xffffffff);
  const auto narrow = [&](std::uint64_t n) { return little_endian(wide ? 0xffffffff : n, 4); };
  const std::string extra = wide ? little_endian(1, 2) + little_endian(24, 2) + little_endian(m.bytes, 8) +
                                       little_endian(m.bytes, 8) + little_endian(m.header, 8)
                                 : std::string();
  return "PK\x01\x02" + little_endian(20, 2) + little_endian(20, 2) + little_endian(m.how.flags, 2) +
         little_endian(m.how.method, 2) + std::string(8, '\0') + narrow(m.bytes) + narrow(m.bytes) +
         little_endian(m.name.size(), 2) + little_endian(extra.size(), 2) + std::string(10, '\0') + narrow(m.header) +
         m.name + extra;
}

std::string zip_builder::tail() const {
  std::string directory;
  for (const auto& m : members_) directory += entry(m);
  const std::uint64_t count = members_.size();
  std::string records;
  if (zip64_)
    records = "PK\x06\x06" + little_endian(44, 8) + little_endian(45, 2) + little_endian(45, 2) + std::string(8, '\0') +
              little_endian(count, 8) + little_endian(count, 8) + little_endian(directory.size(), 8) +
              little_endian(end_, 8) +  //
              "PK\x06\x07" + little_endian(0, 4) + little_endian(end_ + directory.size(), 8) + little_endian(1, 4);
  records += "PK\x05\x06" + std::string(4, '\0') + little_endian(zip64_ ? 0xffff : count, 2) +
             little_endian(zip64_ ? 0xffff : count, 2) + little_endian(zip64_ ? 0xffffffff : directory.size(), 4) +
             little_endian(zip64_ ? 0xffffffff : end_, 4) + little_endian(0, 2);
  return directory + records;
}

std::string zip_builder::file() const {
  std::string out;
  for (const auto& m : members_) (out += m.local).append(m.how.hole, '\0');
  return out += tail();
}

void zip_builder::write(const std::filesystem::path& path) const {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  for (const auto& m : members_) {
    out.seekp(static_cast<std::streamoff>(m.header));
    out << m.local;
  }
  out.seekp(static_cast<std::streamoff>(end_));
  out << tail();
  if (!out.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::size_t zip_builder::directory_entry(std::size_t index) const {
  std::size_t at = end_;
  for (std::size_t i = 0; i < index; ++i) at += entry(members_[i]).size();
  return at;
}

std::size_t zip_builder::end_record() const { return end_ + tail().size() - 22; }

// ------------------------------------------------------------ pickle

namespace pickled {

std::string integer(std::int64_t n) {
  if (n >= 0 && n < 256) return "K" + little_endian(static_cast<std::uint64_t>(n), 1);
  return "\x8a\x08" + little_endian(static_cast<std::uint64_t>(n), 8);
}

std::string text(std::string_view t) { return "X" + little_endian(t.size(), 4) + std::string(t); }

std::string global(std::string_view module, std::string_view name) {
  return "c" + std::string(module) + "\n" + std::string(name) + "\n";
}

std::string tuple(const std::vector<std::string>& items) {
  return std::accumulate(items.begin(), items.end(), std::string("(")) + "t";
}

std::string integers(const std::vector<std::int64_t>& numbers) {
  std::vector<std::string> items;
  for (const std::int64_t n : numbers) items.push_back(integer(n));
  return tuple(items);
}

std::string ordered_dict() { return global("collections", "OrderedDict") + ")R"; }

std::string storage(std::string_view type, std::string_view key, std::int64_t elements) {
  return tuple({text("storage"), global("torch", type), text(key), text("cpu"), integer(elements)}) + "Q";
}

std::string tensor(const std::string& storage, std::int64_t offset, const std::vector<std::int64_t>& shape,
                   const std::vector<std::int64_t>& stride) {
  return global("torch._utils", "_rebuild_tensor_v2") +
         tuple({storage, integer(offset), integers(shape), integers(stride), "\x89", ordered_dict()}) + "R";
}

std::string whole(const std::string& body) { return "\x80\x02" + body + "."; }

std::string dict(const std::string& items) { return "}(" + items + "u"; }

}  // namespace pickled

zip_builder pth_archive(const std::string& pickle, const std::vector<std::pair<std::string, std::string>>& storages) {
  zip_builder archive;
  archive.add("m/data.pkl", pickle);
  for (const auto& [key, data] : storages) archive.add("m/data/" + key, data);
  return archive.add("m/version", "3\n");
}

// ------------------------------------------------------------ models

std::size_t bytes_of(const tensor_plan& plan) {
  return static_cast<std::size_t>(elements_of(plan)) * dtype_bytes(plan.type);
}

std::vector<tensor_plan> rwkv7_plan(const kernels::model_dims& dims, dtype type) {
  std::vector<tensor_plan> plan;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    plan.push_back({std::move(name), type, std::move(shape), {}});
  };
  const std::int64_t C = dims.embd, F = dims.ffn, V = dims.vocab;
  add("emb.weight", {V, C});
  for (std::uint32_t layer = 0; layer < dims.layers; ++layer) {
    const std::string block = "blocks." + std::to_string(layer) + ".", att = block + "att.", ffn = block + "ffn.";
    const auto norm = [&](const std::string& name) { add(name + ".weight", {C}), add(name + ".bias", {C}); };
    const auto low_rank = [&](const char* letter, std::int64_t rank) {
      add(att + letter + "0", {1, 1, C});
      add(att + letter + "1", {C, rank});
      add(att + letter + "2", {rank, C});
    };
    if (layer == 0) norm(block + "ln0");
    norm(block + "ln1");
    norm(block + "ln2");
    for (const char* mix : {"x_r", "x_w", "x_k", "x_v", "x_a", "x_g", "k_k", "k_a"}) add(att + mix, {1, 1, C});
    low_rank("w", dims.rank_w);
    low_rank("a", dims.rank_a);
    if (layer > 0) low_rank("v", dims.rank_v);
    add(att + "g1", {C, dims.rank_g});
    add(att + "g2", {dims.rank_g, C});
    add(att + "r_k", {dims.heads, dims.head_size});
    for (const char* matrix : {"receptance", "key", "value", "output"}) add(att + matrix + ".weight", {C, C});
    norm(att + "ln_x");
    add(ffn + "x_k", {1, 1, C});
    add(ffn + "key.weight", {F, C});
    add(ffn + "value.weight", {C, F});
  }
  add("ln_out.weight", {C});
  add("ln_out.bias", {C});
  add("head.weight", {V, C});
  return plan;
}

tensor_plan& named(std::vector<tensor_plan>& plan, std::string_view name) {
  const auto found = std::ranges::find(plan, name, &tensor_plan::name);
  if (found == plan.end()) throw std::out_of_range("no tensor " + std::string(name));
  return *found;
}

std::vector<tensor_plan> reshaped(std::vector<tensor_plan> plan, std::string_view name,
                                  std::vector<std::int64_t> shape) {
  named(plan, name).shape = std::move(shape);
  return plan;
}

std::vector<tensor_plan> without(std::vector<tensor_plan> plan, std::string_view name) {
  std::erase_if(plan, [&](const tensor_plan& t) { return t.name == name; });
  return plan;
}

kernels::model_dims small_dims() { return {2, 8, 2, 4, 32, 16, 3, 2, 5, 6}; }

std::vector<tensor_plan> filled(std::vector<tensor_plan> plan) {
  for (auto& tensor : plan) {
    std::seed_seq seed(tensor.name.begin(), tensor.name.end());
    std::mt19937 random(seed);
    tensor.data.resize(bytes_of(tensor));
    for (char& byte : tensor.data) byte = static_cast<char>(random() & 0x3f);  // small numbers in every type
  }
  return plan;
}

std::string safetensors_header(const std::vector<tensor_plan>& plan) {
  std::string header = "{";
  std::size_t at = 0;
  for (const auto& tensor : plan) {
    std::string shape;
    for (const std::int64_t d : tensor.shape) (shape += shape.empty() ? "" : ",") += std::to_string(d);
    const std::size_t end = at + bytes_of(tensor);
    (header += header.size() > 1 ? "," : "") +=
        "\"" + tensor.name + "\":{\"dtype\":\"" + std::string(model::safetensors_name(tensor.type)) + "\",\"shape\":[" +
        shape + "],\"data_offsets\":[" + std::to_string(at) + "," + std::to_string(end) + "]}";
    at = end;
  }
  return header + "}";
}

std::string safetensors_of(const std::vector<tensor_plan>& plan) {
  std::string data;
  for (const auto& tensor : plan) data += tensor.data;
  return safetensors_file(safetensors_header(plan), data);
}

std::string pth_pickle(const std::vector<tensor_plan>& plan) {
  std::string items;
  for (std::size_t i = 0; i < plan.size(); ++i) {
    std::vector<std::int64_t> stride(plan[i].shape.size());
    std::exclusive_scan(plan[i].shape.rbegin(), plan[i].shape.rend(), stride.rbegin(), std::int64_t{1},
                        std::multiplies<>());
    items += pickled::text(plan[i].name) +
             pickled::tensor(pickled::storage(storage_type(plan[i].type), std::to_string(i), elements_of(plan[i])), 0,
                             plan[i].shape, stride);
  }
  return pickled::whole(pickled::dict(items));
}

std::string pth_of(const std::vector<tensor_plan>& plan) {
  std::vector<std::pair<std::string, std::string>> storages;
  for (std::size_t i = 0; i < plan.size(); ++i) storages.emplace_back(std::to_string(i), plan[i].data);
  return pth_archive(pth_pickle(plan), storages).file();
}

}  // namespace skein::test
