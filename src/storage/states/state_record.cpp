#include "storage/states/state_record.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/check.hpp"
#include "storage/records/record_bytes.hpp"

namespace skein::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied without byte swapping");

constexpr std::size_t dimensions_max = 4;
constexpr std::uint32_t format_with_one_type = 1, format_with_types = 2;

// The types as numbers in records.
constexpr std::uint8_t fp32_in_records = 0, fp16_in_records = 1;

std::uint8_t number_of(dtype type) { return type == dtype::f16 ? fp16_in_records : fp32_in_records; }

void type_field(record_writer& out, const dtype& type) { out.number(number_of(type)); }
void type_field(record_reader& in, dtype& type) {
  std::uint8_t number = 0;
  in.number(number);
  if (number > fp16_in_records) in.fault("the type of the floats is unknown");
  type = number == fp16_in_records ? dtype::f16 : dtype::f32;
}

std::vector<state_contents::array> arrays_of(const model::state_format& format) {
  std::vector<state_contents::array> all;
  for (const auto& array : format.layout.arrays())
    all.push_back({array.name, {array.shape.begin(), array.shape.end()}, format.type_of(array)});
  return all;
}

/// `all` is the type of the arrays if the format has one type for all.
template <typename Io, typename Contents, typename Type>
void fields(Io& io, Contents& c, Type& all) {
  const bool own_types = io.format() >= format_with_types;
  io.text(c.label.model_identity);
  io.text(c.label.tenant);
  io.number(c.label.key.owner);
  io.number(c.label.key.number);
  io.number(c.label.tokens);
  if (!own_types) type_field(io, all);
  io.list(c.arrays, [&](auto& field, auto& array) {
    field.text(array.name);
    if (own_types) type_field(field, array.type);
    field.list(array.shape, [](auto& dimension, auto& n) { dimension.number(n); });
  });
}

/// Writes the fields before the elements into reused memory.
record_writer begin_record(const state_contents& contents, std::size_t element_bytes, std::string memory = {}) {
  const auto& arrays = contents.arrays;
  const dtype first = arrays.empty() ? dtype::f32 : arrays.front().type;
  const bool one_type = std::ranges::all_of(arrays, [&](const auto& array) { return array.type == first; });
  record_writer out(record_kind::state, one_type ? format_with_one_type : format_with_types, std::move(memory));
  fields(out, contents, first);
  out.bytes().reserve(out.bytes().size() + element_bytes + 16);
  return out;
}

/// The elements of an array; 0 and a fault if the shape is invalid.
std::uint64_t elements_of(record_reader& in, const state_contents::array& array) {
  std::uint64_t elements = 1;
  if (array.shape.size() > dimensions_max) in.fault("an array has too many dimensions");
  for (const std::uint32_t size : array.shape)
    if (__builtin_mul_overflow(elements, std::uint64_t{size}, &elements)) in.fault("an array is too large");
  return in.faulty() ? 0 : elements;
}

/// The bytes of all arrays; 0 and a fault if the shapes are invalid.
std::uint64_t bytes_of(record_reader& in, const std::vector<state_contents::array>& arrays) {
  std::uint64_t all = 0;
  for (const auto& array : arrays) {
    std::uint64_t bytes = 0;
    if (__builtin_mul_overflow(elements_of(in, array), std::uint64_t{dtype_bytes(array.type)}, &bytes) ||
        __builtin_add_overflow(all, bytes, &all))
      in.fault("the arrays are too large");
    if (in.faulty()) return 0;
  }
  return all;
}

/// The format of the record of a state.
model::state_format stored_format(const model::state_format& format, std::optional<dtype> type) {
  const bool keeps_types = !type || format.layout.channels > 0;
  return keeps_types ? format : model::state_format(format.layout, *type);
}

/// Appends a state in another format of the same layout, block by block in memory that stays in the CPU cache.
void append_converted(std::string& out, const model::state_view& state, const model::state_format& to) {
  std::array<std::byte, 16384> block;
  const std::byte* in = state.bytes.data();
  for (const auto& array : state.format.layout.arrays()) {
    std::size_t left = 1;
    for (const std::int64_t size : array.shape) left *= static_cast<std::size_t>(size);
    const dtype from_type = state.format.type_of(array), to_type = to.type_of(array);
    while (left > 0) {
      const std::size_t count = std::min(left, block.size() / dtype_bytes(to_type));
      model::convert_elements(in, from_type, block.data(), to_type, count);
      out.append(reinterpret_cast<const char*>(block.data()), count * dtype_bytes(to_type));
      in += count * dtype_bytes(from_type);
      left -= count;
    }
  }
}

std::string shown(const std::vector<state_contents::array>& arrays) {
  if (arrays.empty()) return "no arrays";
  std::string text = std::to_string(arrays.size()) + " arrays, the last one " + arrays.back().name + " (";
  for (const auto size : arrays.back().shape) text += (text.back() == '(' ? "" : ", ") + std::to_string(size);
  return text + ')';
}

}  // namespace

std::string encode_state(const state_label& label, const model::state_view& state, std::optional<dtype> type) {
  std::string record;
  encode_state(label, state, type, record);
  return record;
}

void encode_state(const state_label& label, const model::state_view& state, std::optional<dtype> type,
                  std::string& record) {
  check(state.bytes.size() == state.format.bytes(), "a state of the wrong size");
  const model::state_format to = stored_format(state.format, type);
  auto out = begin_record({label, arrays_of(to), {}}, to.bytes(), std::move(record));
  if (to == state.format)
    out.raw(std::string_view(reinterpret_cast<const char*>(state.bytes.data()), state.bytes.size()));
  else
    append_converted(out.bytes(), state, to);
  record = std::move(out).sealed();
}

std::size_t state_record_bytes(const state_label& label, const model::state_format& format, std::optional<dtype> type) {
  const model::state_format to = stored_format(format, type);
  return begin_record({label, arrays_of(to), {}}, 0).sealed().size() + to.bytes();
}

std::string relabelled(const state_contents& contents, const state_label& label) {
  auto out = begin_record({label, contents.arrays, {}}, contents.elements.size());
  out.raw(contents.elements);
  return std::move(out).sealed();
}

result<state_contents> read_state_record(std::string_view bytes) {
  auto in = record_reader::open(bytes, record_kind::state);
  if (!in) return in.error();
  state_contents contents;
  dtype of_all = dtype::f32;
  fields(*in, contents, of_all);
  if (in->format() == format_with_one_type)
    for (auto& array : contents.arrays) array.type = of_all;
  const std::uint64_t size = bytes_of(*in, contents.arrays);
  if (!in->faulty() && size != in->rest().size()) in->fault("the record's size does not match its arrays");
  contents.elements = in->view(size);
  if (const auto whole = in->end(); !whole) return whole.error();
  return contents;
}

namespace {

bool same_array(const state_contents::array& a, const state_contents::array& b) {
  return a.name == b.name && a.shape == b.shape;
}

/// The state in this format, whose arrays are those of the record in other types.
model::state_value value_of(const state_contents& contents, const model::state_format& format,
                            const std::vector<state_contents::array>& arrays) {
  model::state_value value{format, {}};
  model::reserve_state(value.bytes, format.bytes());
  value.bytes.resize(format.bytes());
  const char* in = contents.elements.data();
  std::byte* out = value.bytes.data();
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    std::size_t count = 1;
    for (const std::uint32_t size : arrays[i].shape) count *= size;
    model::convert_elements(in, contents.arrays[i].type, out, arrays[i].type, count);
    in += count * dtype_bytes(contents.arrays[i].type), out += count * dtype_bytes(arrays[i].type);
  }
  return value;
}

result<decoded_state> decoded(state_contents&& contents, const model::state_format& format) {
  const auto expected = arrays_of(format);
  if (!std::ranges::equal(contents.arrays, expected, same_array))
    return error{
        error_kind::damaged, "the state has " + shown(contents.arrays) + "; the model needs " + shown(expected), {}};
  return decoded_state{std::move(contents.label), value_of(contents, format, expected)};
}

}  // namespace

result<decoded_state> decode_state(std::string_view bytes, const model::state_format& format,
                                   std::string_view model_identity) {
  return decode_state(bytes, model_table(std::string(model_identity), {format}));
}

result<decoded_state> decode_state(std::string_view bytes, const model_table& models) {
  auto contents = read_state_record(bytes);
  if (!contents) return contents.error();
  const auto model = models.find(contents->label.model_identity);
  if (!model) return models.unknown("the state", contents->label.model_identity);
  return decoded(std::move(*contents), model->state);
}

}  // namespace skein::storage
