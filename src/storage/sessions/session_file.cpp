#include "storage/sessions/session_file.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_set>

#include "base/check.hpp"
#include "base/sha256.hpp"
#include "storage/records/record_codec.hpp"
#include "storage/records/session_check.hpp"
#include "storage/states/state_record.hpp"

namespace skein::storage {
namespace {

constexpr std::size_t file_checksum_bytes = 8;

std::span<const std::uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

/// Compares in constant time.
bool same(const sha256_digest& a, const sha256_digest& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= a[i] ^ b[i];
  return difference == 0;
}

error bad_file(const std::string& why) { return {error_kind::bad_file, "the session file is damaged: " + why, {}}; }

/// Damage in a file is the client's error (bad_file), not a damaged stored record.
error of_file(const error& why) { return why.kind == error_kind::damaged ? bad_file(why.message) : why; }

/// Checks the signature, which is between the file's fields and its checksum; `bytes` is the whole file.
result<void> check_signature(std::string_view bytes, bool is_signed, const std::string& key) {
  if (!is_signed)
    return error{error_kind::forbidden, "the session file is not signed; this server accepts only signed files", {}};
  sha256_digest found;
  const std::size_t after = file_checksum_bytes + found.size();
  if (bytes.size() < after) return bad_file("its signature is truncated");
  const auto end = bytes.size() - after;
  std::ranges::copy(bytes.substr(end, found.size()), found.begin());
  if (!same(found, hmac_sha256(as_bytes(key), as_bytes(bytes.substr(0, end)))))
    return error{error_kind::forbidden, "the session file is signed with another key", {}};
  return {};
}

/// The versions were checked before: their numbers ascend.
/// A state with NaN or infinity would fail each turn that begins with it.
bool is_finite(const state_contents& state) {
  const char* at = state.elements.data();
  const auto all_finite = [&]<typename Bits>(std::size_t count, Bits exponent) {
    for (std::size_t i = 0; i < count; ++i, at += sizeof exponent) {
      Bits bits;
      std::memcpy(&bits, at, sizeof bits);
      if ((bits & exponent) == exponent) return false;
    }
    return true;
  };
  for (const auto& array : state.arrays) {
    std::size_t count = 1;
    for (const std::uint32_t size : array.shape) count *= size;
    const bool finite = array.type == dtype::f16 ? all_finite(count, std::uint16_t{0x7c00})
                                                 : all_finite(count, std::uint32_t{0x7f800000});
    if (!finite) return false;
  }
  return true;
}

result<void> check_states(const session_file& file) {
  if (file.states.size() > file.versions.size()) return bad_file("it has more states than versions");
  std::unordered_set<version_id> seen;
  for (const auto& record : file.states) {
    const auto state = read_state_record(record);
    if (!state) return of_file(state.error());
    const auto& label = state->label;
    if (label.model_identity != file.session.model_identity) return bad_file("a state belongs to another model");
    const auto version = std::ranges::lower_bound(file.versions, label.key.number, {}, &version_record::id);
    if (label.key.owner != file.session.uid || version == file.versions.end() || version->id != label.key.number)
      return bad_file("a state belongs to none of its versions");
    if (label.tokens != version->total_tokens)
      return bad_file("the state of version " + std::to_string(version->id) + " has a different number of tokens");
    if (!seen.insert(version->id).second) return bad_file("version " + std::to_string(version->id) + " has two states");
    if (!is_finite(*state))
      return bad_file("the state of version " + std::to_string(version->id) + " has a number that is NaN or infinite");
  }
  return {};
}

}  // namespace

namespace {

/// `versions`: of version_record or shared_version. `bytes_expected`: allocated at once.
template <typename Versions>
std::string write_file(const session_record& session, const Versions& versions, const std::vector<std::string>& states,
                       std::string_view signature_key, std::size_t bytes_expected) {
  std::string memory;
  memory.reserve(bytes_expected);
  record_writer out(record_kind::session_file, format_of(record_kind::session_file), std::move(memory));
  out.number(!signature_key.empty());
  write_fields(out, session);
  out.list(versions, [](record_writer& io, const auto& version) {
    if constexpr (requires { *version; })
      write_fields(io, *version);
    else
      write_fields(io, version);
  });
  out.list(states, [](record_writer& io, const std::string& state) { io.text(state); });
  if (!signature_key.empty()) out.raw(hmac_sha256(as_bytes(signature_key), as_bytes(out.bytes())));
  return std::move(out).sealed();
}

}  // namespace

std::string write_session_file(const session_file& file, std::string_view signature_key) {
  return write_file(file.session, file.versions, file.states, signature_key, 0);
}

std::string write_session_file(const session_record& session, const std::vector<shared_version>& versions,
                               const std::vector<std::string>& states, std::string_view signature_key,
                               std::size_t bytes_expected) {
  return write_file(session, versions, states, signature_key, bytes_expected);
}

result<session_file_size> size_of_session_file(std::string_view bytes) {
  auto in = record_reader::open(bytes, record_kind::session_file);
  if (!in) return of_file(in.error());
  session_file_size size;
  bool is_signed = false;
  in->number(is_signed);
  record_sizer sizer(*in);
  size_session_fields(sizer);
  sizer.list(std::vector<version_record>(), [&](record_sizer& io, const version_record&) {
    size_version_fields(io);
    ++size.versions;
  });
  sizer.list(std::vector<std::string>(), [&](record_sizer&, const std::string&) {
    std::uint64_t length = 0;
    in->number(length);
    size.state_bytes += in->view(length).size();
  });
  if (is_signed) (void)in->view(sizeof(sha256_digest));
  if (const auto whole = in->end(); !whole) return of_file(whole.error());
  size.bytes = sizer.bytes();
  return size;
}

result<session_file> read_session_file(std::string_view bytes, const session_file_rules& rules) {
  if (bytes.size() > rules.bytes_max)
    return error{error_kind::too_large,
                 "the session file has " + std::to_string(bytes.size()) + " bytes; at most " +
                     std::to_string(rules.bytes_max) + " are accepted",
                 {}};
  auto in = record_reader::open(bytes, record_kind::session_file);
  if (!in) return of_file(in.error());
  bool is_signed = false;
  in->number(is_signed);
  if (!rules.signature_key.empty() && !in->faulty())
    if (const auto trusted = check_signature(bytes, is_signed, rules.signature_key); !trusted) return trusted.error();

  session_file file;
  read_fields(*in, file.session);
  if (!in->faulty() && !rules.model_identity.empty() && file.session.model_identity != rules.model_identity)
    return error{error_kind::conflict,
                 "the session belongs to model " + file.session.model_identity + "; this server has model " +
                     rules.model_identity,
                 {}};
  in->list(file.versions, [](record_reader& io, version_record& version) { read_fields(io, version); });
  in->list(file.states, [](record_reader& io, std::string& state) { io.text(state); });
  if (is_signed) (void)in->view(sizeof(sha256_digest));
  if (const auto whole = in->end(); !whole) return of_file(whole.error());
  if (const auto sound = check_session(file.session, file.versions); !sound) return of_file(sound.error());
  if (const auto sound = check_labels(file.session, file.versions); !sound) return sound.error();
  if (const auto sound = check_states(file); !sound) return sound.error();
  if (file.session.last_version > version_in_file_max) return bad_file("its version numbers are too high");
  file.session.log_bytes = 0;  // budgets use this number
  for (const auto& version : file.versions) file.session.log_bytes += content_bytes(version);
  return file;
}

session_file readdressed(session_file file, session_uid uid, const session_key& key) {
  file.session.uid = uid;
  file.session.key = key;
  for (auto& record : file.states) {
    const auto state = read_state_record(record);
    check(state.has_value(), "states of a session file were read before");
    state_label label = state->label;
    label.key.owner = uid;
    label.tenant = key.tenant;
    record = relabelled(*state, label);
  }
  return file;
}

}  // namespace skein::storage
