#include "storage/states/state_record.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/check.hpp"
#include "base/finite_half.hpp"
#include "base/tensor.hpp"
#include "storage/records/record_bytes.hpp"

namespace skein::storage {
namespace {

static_assert(std::endian::native == std::endian::little, "floats are copied without byte swapping");

constexpr std::size_t dimensions_max = 4;

std::size_t bytes_of(state_type type) { return type == state_type::fp16 ? 2 : 4; }

std::vector<state_contents::array> arrays_of(const model::state_layout& layout) {
  std::vector<state_contents::array> all;
  for (const auto& array : layout.arrays()) all.push_back({array.name, {array.shape.begin(), array.shape.end()}});
  return all;
}

template <typename Io, typename Contents, typename Type>
void fields(Io& io, Contents& c, Type& type) {
  io.text(c.label.model_identity);
  io.text(c.label.tenant);
  io.number(c.label.key.owner);
  io.number(c.label.key.number);
  io.number(c.label.tokens);
  io.number(type);
  io.list(c.arrays, [](auto& field, auto& array) {
    field.text(array.name);
    field.list(array.shape, [](auto& dimension, auto& n) { dimension.number(n); });
  });
}

/// Writes the fields before the floats into reused memory.
record_writer begin_record(const state_contents& contents, std::size_t float_bytes, std::string memory = {}) {
  record_writer out(record_kind::state, record_format, std::move(memory));
  const auto type = static_cast<std::uint8_t>(contents.type);
  fields(out, contents, type);
  out.bytes().reserve(out.bytes().size() + float_bytes + 16);
  return out;
}

/// Number of floats in all arrays; 0 and a fault if the shapes are invalid.
std::uint64_t count_floats(record_reader& in, const std::vector<state_contents::array>& arrays) {
  std::uint64_t all = 0;
  for (const auto& array : arrays) {
    std::uint64_t of_array = 1;
    if (array.shape.size() > dimensions_max) in.fault("an array has too many dimensions");
    for (const std::uint32_t size : array.shape) {
      if (__builtin_mul_overflow(of_array, std::uint64_t{size}, &of_array)) in.fault("an array is too large");
    }
    if (__builtin_add_overflow(all, of_array, &all)) in.fault("the arrays are too large");
    if (in.faulty()) return 0;
  }
  return all;
}

void append_f16(std::string& out, std::span<const float> floats) {
  std::array<std::uint16_t, 4096> block;
  while (!floats.empty()) {
    const std::size_t count = std::min(floats.size(), block.size());
    std::ranges::transform(floats.first(count), block.begin(), f32_to_finite_f16);
    out.append(reinterpret_cast<const char*>(block.data()), count * sizeof block[0]);
    floats = floats.subspan(count);
  }
}

/// Zeros, in huge pages if the system grants them (madvise): with small pages, the page faults cost several times the
/// copy of the state (decode_state in session_storage_bench).
std::vector<float> fresh_floats(std::size_t count) {
  constexpr std::uintptr_t page = 2u << 20;
  std::vector<float> floats;
  floats.reserve(count);
  const auto first = (reinterpret_cast<std::uintptr_t>(floats.data()) + page - 1) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(floats.data() + count) / page * page;
  if (first < end) (void)::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
  floats.resize(count);
  return floats;
}

std::vector<float> floats_of(const state_contents& contents) {
  auto floats = fresh_floats(contents.floats.size() / bytes_of(contents.type));
  if (contents.type == state_type::fp32) {
    std::memcpy(floats.data(), contents.floats.data(), contents.floats.size());
    return floats;
  }
  const char* at = contents.floats.data();
  for (float& f : floats) {
    std::uint16_t bits;
    std::memcpy(&bits, at, sizeof bits);
    at += sizeof bits;
    f = f16_to_f32(bits);
  }
  return floats;
}

std::string shown(const std::vector<state_contents::array>& arrays) {
  if (arrays.empty()) return "no arrays";
  std::string text = std::to_string(arrays.size()) + " arrays, the last one " + arrays.back().name + " (";
  for (const auto size : arrays.back().shape) text += (text.back() == '(' ? "" : ", ") + std::to_string(size);
  return text + ')';
}

/// The state of version 4 stays in fp32: it has an exponent, and its size is a small part of other versions'.
state_type stored_type(const model::state_layout& layout, state_type type) {
  return layout.channels > 0 ? state_type::fp32 : type;
}

}  // namespace

std::string encode_state(const state_label& label, const model::state_layout& layout, std::span<const float> state,
                         state_type type) {
  std::string record;
  encode_state(label, layout, state, type, record);
  return record;
}

void encode_state(const state_label& label, const model::state_layout& layout, std::span<const float> state,
                  state_type type, std::string& record) {
  check(state.size() == layout.floats());
  type = stored_type(layout, type);
  auto out = begin_record({label, type, arrays_of(layout), {}}, state.size() * bytes_of(type), std::move(record));
  if (type == state_type::fp32)
    out.raw(std::string_view(reinterpret_cast<const char*>(state.data()), state.size_bytes()));
  else
    append_f16(out.bytes(), state);
  record = std::move(out).sealed();
}

std::size_t state_record_bytes(const state_label& label, const model::state_layout& layout, state_type type) {
  type = stored_type(layout, type);
  auto head = begin_record({label, type, arrays_of(layout), {}}, 0);
  return std::move(head).sealed().size() + layout.floats() * bytes_of(type);
}

std::string relabelled(const state_contents& contents, const state_label& label) {
  auto out = begin_record({label, contents.type, contents.arrays, {}}, contents.floats.size());
  out.raw(contents.floats);
  return std::move(out).sealed();
}

result<state_contents> read_state_record(std::string_view bytes) {
  auto in = record_reader::open(bytes, record_kind::state);
  if (!in) return in.error();
  state_contents contents;
  std::uint8_t type = 0;
  fields(*in, contents, type);
  if (type > static_cast<std::uint8_t>(state_type::fp16)) in->fault("the type of the floats is unknown");
  contents.type = static_cast<state_type>(type);
  const std::uint64_t floats = count_floats(*in, contents.arrays);
  if (!in->faulty() && floats != in->rest().size() / bytes_of(contents.type))
    in->fault("the record's size does not match its arrays");
  contents.floats = in->view(floats * bytes_of(contents.type));
  if (const auto whole = in->end(); !whole) return whole.error();
  return contents;
}

namespace {

result<decoded_state> decoded(state_contents&& contents, const model::state_layout& layout) {
  if (const auto expected = arrays_of(layout); contents.arrays != expected)
    return error{
        error_kind::damaged, "the state has " + shown(contents.arrays) + "; the model needs " + shown(expected), {}};
  return decoded_state{std::move(contents.label), floats_of(contents)};
}

}  // namespace

result<decoded_state> decode_state(std::string_view bytes, const model::state_layout& layout,
                                   std::string_view model_identity) {
  return decode_state(bytes, model_table(std::string(model_identity), {layout}));
}

result<decoded_state> decode_state(std::string_view bytes, const model_table& models) {
  auto contents = read_state_record(bytes);
  if (!contents) return contents.error();
  const auto model = models.find(contents->label.model_identity);
  if (!model) return models.unknown("the state", contents->label.model_identity);
  return decoded(std::move(*contents), model->layout);
}

}  // namespace skein::storage
