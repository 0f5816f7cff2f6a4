#include "model/files/gguf.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "model/files/checkpoint_limits.hpp"

namespace skein::model {
namespace {

using gguf_kind = gguf_file::kind;

/// Bytes of a value of a fixed size; 0 for texts, arrays and types that do not exist.
std::uint64_t fixed_bytes(gguf_kind type) {
  switch (type) {
    case gguf_kind::u8:
    case gguf_kind::i8:
    case gguf_kind::boolean: return 1;
    case gguf_kind::u16:
    case gguf_kind::i16: return 2;
    case gguf_kind::u32:
    case gguf_kind::i32:
    case gguf_kind::f32: return 4;
    case gguf_kind::u64:
    case gguf_kind::i64:
    case gguf_kind::f64: return 8;
    case gguf_kind::text:
    case gguf_kind::array: break;
  }
  return 0;
}

constexpr std::uint64_t default_alignment = 32, alignment_max = 1u << 20;

}  // namespace

/// Reads the file from front to end. Each member function parses one part and returns false after the first fault,
/// which `fault_` keeps.
class gguf_reader {
 public:
  explicit gguf_reader(byte_span file)
      : file_(file), end_(std::min<std::uint64_t>(file.size(), max_gguf_header_bytes)) {
    out_.file_ = file;
  }

  result<gguf_file> run() {
    if (!header() || !pairs() || !descriptions() || !data()) return fault_;
    return std::move(out_);
  }

 private:
  bool header() {
    if (file_.size() < 24) return fail("the file ends inside the GGUF header", file_.size());
    const auto version = load<std::uint32_t>(file_, 4);
    if (version != 0 && (version & 0xffffu) == 0)
      return fail("a big-endian GGUF file; only little-endian ones are supported", 4);
    if (version != 2 && version != 3)
      return fail("GGUF version " + std::to_string(version) + " is not supported; accepted: 2, 3", 4);
    tensor_count_ = load<std::uint64_t>(file_, 8);
    pair_count_ = load<std::uint64_t>(file_, 16);
    if (tensor_count_ > max_tensors)
      return fail(std::to_string(tensor_count_) + " tensors are more than " + std::to_string(max_tensors), 8);
    if (pair_count_ > max_gguf_pairs)
      return fail(std::to_string(pair_count_) + " key-value pairs are more than " + std::to_string(max_gguf_pairs), 16);
    at_ = 24;
    return true;
  }

  bool pairs() {
    for (std::uint64_t i = 0; i < pair_count_; ++i) {
      const std::uint64_t start = at_;
      std::string_view key;
      std::uint32_t type = 0;
      if (!text(key, "a key") || !number(type, "the type of a value")) return false;
      if (key.empty() || key.size() > max_tensor_name_bytes) return fail("a key is empty or too long", start);
      if (!valid_utf8(key)) return fail("key " + printable(key) + " is not UTF-8", start);
      gguf_file::value value{std::string(key), static_cast<gguf_kind>(type), false, 1, at_};
      if (value.type == gguf_kind::array && !array_head(value)) return false;
      if (!skip(value)) return false;
      out_.values_.push_back(std::move(value));
    }
    auto& values = out_.values_;
    std::ranges::stable_sort(values, {}, &gguf_file::value::key);
    const auto twice = std::ranges::adjacent_find(values, {}, &gguf_file::value::key);
    return twice == values.end() || fail("key " + printable(twice->key) + " appears twice", twice[1].at);
  }

  bool array_head(gguf_file::value& value) {
    std::uint32_t type = 0;
    if (!number(type, "the type of an array") || !number(value.count, "the length of an array")) return false;
    value.type = static_cast<gguf_kind>(type);
    value.is_array = true;
    value.at = at_;
    return value.type != gguf_kind::array || fail("key " + printable(value.key) + " has an array of arrays", at_);
  }

  /// Moves past the elements of a value and checks them.
  bool skip(const gguf_file::value& value) {
    if (value.type == gguf_kind::text) {
      std::string_view ignored;
      for (std::uint64_t i = 0; i < value.count; ++i)
        if (!text(ignored, "a text")) return false;
      return true;
    }
    const std::uint64_t each = fixed_bytes(value.type);
    if (each == 0)
      return fail("key " + printable(value.key) + " has the unknown type " +
                      std::to_string(static_cast<std::uint32_t>(value.type)),
                  value.at);
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(each, value.count, &bytes) || !fits(at_, bytes, end_))
      return fail("the value of key " + printable(value.key) + " extends beyond " + limit(), value.at);
    at_ += bytes;
    return true;
  }

  bool descriptions() {
    out_.tensors_.reserve(tensor_count_);
    offsets_.reserve(tensor_count_);
    for (std::uint64_t i = 0; i < tensor_count_; ++i)
      if (!description()) return false;
    return true;
  }

  bool description() {
    stored_tensor tensor;
    tensor.described_at = at_;
    std::string_view name;
    std::uint32_t dimensions = 0, type = 0;
    if (!text(name, "a tensor name") || !number(dimensions, "a number of dimensions")) return false;
    if (name.empty() || name.size() > max_tensor_name_bytes)
      return fail("a tensor name is empty or too long", tensor.described_at);
    if (!valid_utf8(name)) return fail("tensor name " + printable(name) + " is not UTF-8", tensor.described_at);
    tensor.name = name;
    if (dimensions == 0 || dimensions > max_dimensions)
      return tensor_fault(tensor, "has " + std::to_string(dimensions) + " dimensions; accepted: 1 to " +
                                      std::to_string(max_dimensions));
    tensor.shape.resize(dimensions);
    std::uint64_t elements = 1, offset = 0;
    for (std::uint32_t d = 0; d < dimensions; ++d) {
      std::uint64_t extent = 0;
      if (!number(extent, "a dimension")) return false;
      if (extent == 0) return tensor_fault(tensor, "a dimension is 0");
      if (__builtin_mul_overflow(elements, extent, &elements) || elements > ~std::uint64_t{0} / 8)
        return tensor_fault(tensor, "the shape overflows 64 bits");
      tensor.shape[dimensions - 1 - d] = static_cast<std::int64_t>(extent);
    }
    if (!number(type, "a tensor type") || !number(offset, "a tensor offset")) return false;
    tensor.type = find_ggml_type(type);
    if (!tensor.type)
      return tensor_fault(tensor,
                          "type " + ggml_type_name(type) + " is not supported; accepted: " + ggml_types_accepted());
    if (tensor.shape.back() % tensor.type->values != 0)
      return tensor_fault(tensor, "a row of " + std::to_string(tensor.shape.back()) +
                                      " values is not divisible by the " + std::to_string(tensor.type->values) +
                                      " of a block of " + std::string(tensor.type->name));
    bytes_.push_back(elements / tensor.type->values * tensor.type->bytes);  // < 2^64: at most 8 bytes a value
    offsets_.push_back(offset);
    out_.tensors_.push_back(std::move(tensor));
    return true;
  }

  /// Checks that the tensors follow one another in the data, each at the next multiple of the alignment.
  bool data() {
    std::uint64_t alignment = default_alignment;
    if (out_.find("general.alignment")) {
      const auto given = out_.number("general.alignment").value_or(0);
      if (!std::has_single_bit(given) || given > alignment_max)
        return fail("general.alignment is not a power of two up to " + std::to_string(alignment_max),
                    out_.position("general.alignment"));
      alignment = given;
    }
    const std::uint64_t begin = (at_ + alignment - 1) / alignment * alignment;
    std::vector<std::uint32_t> order(out_.tensors_.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return offsets_[i]; });
    std::uint64_t covered = 0;
    for (const std::uint32_t i : order) {
      stored_tensor& tensor = out_.tensors_[i];
      const std::uint64_t offset = offsets_[i], bytes = bytes_[i];
      if (offset % alignment != 0)
        return tensor_fault(tensor, "its offset " + std::to_string(offset) + " is not a multiple of the alignment " +
                                        std::to_string(alignment));
      if (offset < covered) return tensor_fault(tensor, "its data overlaps another tensor");
      if (offset - covered >= alignment) return tensor_fault(tensor, "there is a gap before its data");
      if (begin > file_.size() || !fits(offset, bytes, file_.size() - begin))
        return tensor_fault(tensor, "its " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
                                        " of the data extend beyond the file");
      tensor.data = file_.subspan(begin + offset, bytes);
      covered = offset + bytes;
    }
    return true;
  }

  /// A length of 64 bits and the bytes.
  bool text(std::string_view& out, std::string_view what) {
    std::uint64_t bytes = 0;
    const std::uint64_t start = at_;
    if (!number(bytes, what)) return false;
    if (!fits(at_, bytes, end_))
      return fail(std::string(what) + " of " + std::to_string(bytes) + " bytes extends beyond " + limit(), start);
    out = text_at(file_, at_, bytes);
    at_ += bytes;
    return true;
  }

  template <typename T>
  bool number(T& out, std::string_view what) {
    if (!fits(at_, sizeof out, end_)) return fail(limit() + " ends inside " + std::string(what), at_);
    out = load<T>(file_, at_);
    at_ += sizeof out;
    return true;
  }

  [[nodiscard]] std::string limit() const {
    return end_ == file_.size() ? "the file" : "the " + std::to_string(end_) + " bytes that a GGUF header may have";
  }

  bool tensor_fault(const stored_tensor& tensor, const std::string& what) {
    return fail("tensor " + printable(tensor.name) + ": " + what, tensor.described_at);
  }

  bool fail(std::string_view what, std::uint64_t where) {
    fault_ = damaged(where, what);
    return false;
  }

  byte_span file_;
  std::uint64_t end_, at_ = 0;  ///< `end_`: of what may be keys, values and descriptions
  std::uint64_t tensor_count_ = 0, pair_count_ = 0;
  std::vector<std::uint64_t> offsets_, bytes_;
  gguf_file out_;
  error fault_;
};

bool looks_like_gguf(byte_span file) { return file.size() >= 4 && text_at(file, 0, 4) == "GGUF"; }

result<gguf_file> gguf_file::read(byte_span file) { return gguf_reader(file).run(); }

const gguf_file::value* gguf_file::find(std::string_view key) const {
  const auto found =
      std::ranges::lower_bound(values_, key, {}, [](const value& v) -> std::string_view { return v.key; });
  return found != values_.end() && found->key == key ? &*found : nullptr;
}

std::uint64_t gguf_file::position(std::string_view key) const {
  const auto* const found = find(key);
  return found ? found->at : 0;
}

std::optional<std::string_view> gguf_file::text(std::string_view key) const {
  const auto* const found = find(key);
  if (!found || found->is_array || found->type != gguf_kind::text) return std::nullopt;
  return text_at(file_, found->at + 8, load<std::uint64_t>(file_, found->at));
}

std::optional<std::uint64_t> gguf_file::integer_at(gguf_kind type, std::uint64_t at) const {
  const auto whole = [](auto n) { return n < 0 ? std::nullopt : std::optional(static_cast<std::uint64_t>(n)); };
  switch (type) {
    case gguf_kind::u8: return load<std::uint8_t>(file_, at);
    case gguf_kind::i8: return whole(load<std::int8_t>(file_, at));
    case gguf_kind::u16: return load<std::uint16_t>(file_, at);
    case gguf_kind::i16: return whole(load<std::int16_t>(file_, at));
    case gguf_kind::u32: return load<std::uint32_t>(file_, at);
    case gguf_kind::i32: return whole(load<std::int32_t>(file_, at));
    case gguf_kind::u64: return load<std::uint64_t>(file_, at);
    case gguf_kind::i64: return whole(load<std::int64_t>(file_, at));
    default: return std::nullopt;
  }
}

std::optional<std::uint64_t> gguf_file::number(std::string_view key) const {
  const auto* const found = find(key);
  return found && !found->is_array ? integer_at(found->type, found->at) : std::nullopt;
}

std::optional<double> gguf_file::real(std::string_view key) const {
  const auto* const found = find(key);
  if (!found || found->is_array) return std::nullopt;
  if (found->type == gguf_kind::f32) return load<float>(file_, found->at);
  if (found->type == gguf_kind::f64) return load<double>(file_, found->at);
  return std::nullopt;
}

std::vector<std::string_view> gguf_file::texts(std::string_view key, std::size_t most) const {
  const auto* const found = find(key);
  if (!found || !found->is_array || found->type != gguf_kind::text || found->count > most) return {};
  std::vector<std::string_view> all;
  all.reserve(found->count);
  for (std::uint64_t at = found->at; all.size() < found->count; at += 8 + all.back().size())
    all.push_back(text_at(file_, at + 8, load<std::uint64_t>(file_, at)));
  return all;
}

std::vector<std::uint64_t> gguf_file::numbers(std::string_view key, std::size_t most) const {
  const auto* const found = find(key);
  if (!found || !found->is_array || found->count > most) return {};
  std::vector<std::uint64_t> all;
  all.reserve(found->count);
  for (std::uint64_t i = 0; i < found->count; ++i) {
    const auto number = integer_at(found->type, found->at + i * fixed_bytes(found->type));
    if (!number) return {};
    all.push_back(*number);
  }
  return all;
}

}  // namespace skein::model
