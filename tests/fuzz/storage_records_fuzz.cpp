// Any bytes as a stored record or a session file: refused with a reason, or values that agree with themselves. A right
// checksum is put after them, since no mutation would find one: the first byte says which record they are to be.
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/check.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/session_check.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/states/state_record.hpp"

namespace {

using namespace skein;
using namespace skein::storage;

template <typename T>
bool refused(const result<T>& got) {
  if (got) return false;
  check(!got.error().message.empty(), "a refusal has a reason");
  return true;
}

std::string sealed(record_kind kind, std::string_view fields, std::uint32_t format) {
  record_writer out(kind, format);
  out.raw(fields);
  return std::move(out).sealed();
}

std::string sealed(record_kind kind, std::string_view fields) { return sealed(kind, fields, format_of(kind)); }

void try_version(std::string_view fields) {
  const auto version = decode_version(sealed(record_kind::version, fields), 1);
  if (refused(version)) return;
  check(version->prompt_tokens <= version->tokens.size());
  check(version->prompt_bytes <= version->text.size());
  check(decode_version(encode_version(1, *version), 1).value() == *version);
}

void try_file(std::string_view fields) {
  const auto file = read_session_file(sealed(record_kind::session_file, fields), {});
  if (refused(file)) return;
  check(check_session(file->session, file->versions).has_value());
  check(read_session_file(write_session_file(*file, ""), {}).value() == *file);
  const auto moved = readdressed(*file, 7, {"t", "s"});
  check(read_session_file(write_session_file(moved, "key"), {.signature_key = "key"}).value() == moved);
}

void try_state(std::string_view fields, std::uint32_t format) {
  const std::string record = sealed(record_kind::state, fields, format);
  const auto state = read_state_record(record);
  if (refused(state)) return;
  check(read_state_record(relabelled(*state, state->label)).has_value());
  const model::state_layout layout{.layers = 2, .embd = 8, .heads = 2, .head_size = 4};
  const auto decoded = decode_state(record, layout, "model");
  if (!refused(decoded)) check(decoded->state.bytes.size() == layout.floats() * sizeof(float));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view fields(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto kind = static_cast<record_kind>(data[0]);
  switch (kind) {
    case record_kind::session: refused(decode_session(sealed(kind, fields))); break;
    case record_kind::version: try_version(fields); break;
    case record_kind::running: refused(decode_running(sealed(kind, fields), 1)); break;
    case record_kind::state:
      for (std::uint32_t format = 1; format <= format_of(kind); ++format) try_state(fields, format);
      break;
    case record_kind::state_entry: refused(decode_entry(sealed(kind, fields), {1, 1})); break;
    case record_kind::prefix_entry: refused(decode_entry(sealed(kind, fields), {0, 1})); break;
    case record_kind::database_format:
    case record_kind::counter: refused(decode_number(sealed(kind, fields), kind)); break;
    case record_kind::set_aside: refused(decode_set_aside(sealed(kind, fields))); break;
    case record_kind::session_file: try_file(fields); break;
    default: refused(decode_session({reinterpret_cast<const char*>(data), size})); break;
  }
  return 0;
}
