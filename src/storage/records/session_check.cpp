#include "storage/records/session_check.hpp"

#include <algorithm>
#include <string>
#include <string_view>

namespace skein::storage {
namespace {

error disagrees(const std::string& what) { return {error_kind::damaged, "the session is inconsistent: " + what, {}}; }

const version_outline* find(std::span<const version_outline> versions, version_id id) {
  const auto at = std::ranges::lower_bound(versions, id, {}, &version_outline::id);
  return at != versions.end() && at->id == id ? &*at : nullptr;
}

constexpr std::size_t identity_bytes_max = 1024;  // of a model or a tuned state
constexpr std::size_t word_bytes_max = 256;       // a role, a reason: longer than any that the program writes
/// Settings of a version, which repeat fields of its request. They are JSON, which takes many times as much when read.
constexpr std::size_t settings_bytes_max = std::size_t{16} << 20;

error too_long(std::string field, std::size_t bytes, std::size_t bytes_max) {
  std::string why = field + ": " + std::to_string(bytes) + " bytes are too many; at most " + std::to_string(bytes_max) +
                    " are accepted";
  return {error_kind::bad_file, std::move(why), std::move(field)};
}

result<void> check_metadata(const session_metadata& metadata) {
  if (metadata.size() > metadata_pairs_max)
    return error{error_kind::bad_file,
                 "metadata: " + std::to_string(metadata.size()) + " members are too many; at most " +
                     std::to_string(metadata_pairs_max) + " are accepted",
                 "metadata"};
  const auto refuse = [](const char* what, std::size_t bytes, std::size_t bytes_max) {
    return error{error_kind::bad_file,
                 std::string("metadata: a ") + what + " of " + std::to_string(bytes) + " bytes is too long; at most " +
                     std::to_string(bytes_max) + " are accepted",
                 "metadata"};
  };
  for (const auto& [name, value] : metadata) {
    if (name.size() > metadata_name_bytes_max) return refuse("name", name.size(), metadata_name_bytes_max);
    if (value.size() > metadata_value_bytes_max) return refuse("value", value.size(), metadata_value_bytes_max);
  }
  return {};
}

/// Checks the labels of a version.
result<void> check_words(const version_record& v) {
  const auto field = [&](std::string_view name) { return "version " + std::to_string(v.id) + "." + std::string(name); };
  for (const auto& [name, word] : {std::pair<std::string_view, const std::string&>{"request_key", v.request_key},
                                   {"finish_reason", v.finish_reason},
                                   {"stop_reason", v.stop_reason},
                                   {"template_name", v.template_name}})
    if (word.size() > word_bytes_max) return too_long(field(name), word.size(), word_bytes_max);
  if (v.sampling.size() > settings_bytes_max) return too_long(field("sampling"), v.sampling.size(), settings_bytes_max);
  for (const auto& said : v.messages)
    if (said.role.size() > word_bytes_max) return too_long(field("role"), said.role.size(), word_bytes_max);
  return {};
}

}  // namespace

result<void> check_labels(const session_record& session, std::span<const version_record> versions) {
  if (session.title.size() > session_title_bytes_max)
    return too_long("title", session.title.size(), session_title_bytes_max);
  if (auto ok = check_metadata(session.metadata); !ok) return ok;
  if (session.model_identity.size() > identity_bytes_max)
    return too_long("model_identity", session.model_identity.size(), identity_bytes_max);
  if (session.initial_state.size() > identity_bytes_max)
    return too_long("initial_state", session.initial_state.size(), identity_bytes_max);
  for (const auto& version : versions)
    if (auto ok = check_words(version); !ok) return ok;
  return {};
}

version_outline outline_of(const version_record& v) {
  return {v.id, v.parent, v.tokens.size(), v.total_tokens, content_bytes(v), v.deleted, v.unfinished};
}

std::vector<version_outline> outlines_of(std::span<const version_record> versions) {
  std::vector<version_outline> all;
  all.reserve(versions.size());
  for (const auto& version : versions) all.push_back(outline_of(version));
  return all;
}

result<void> check_session(const session_record& session, std::span<const version_record> versions) {
  return check_session(session, outlines_of(versions));
}

result<void> check_session(const session_record& session, std::span<const version_outline> versions) {
  version_id before = beginning;
  for (const auto& version : versions) {
    const std::string name = "version " + std::to_string(version.id);
    if (version.id <= before) return disagrees(name + " follows version " + std::to_string(before));
    before = version.id;
    const version_outline* const parent = find(versions, version.parent);
    if (version.parent >= version.id || (!parent && version.parent != beginning))
      return disagrees("the parent of " + name + " is missing");
    if (version.total_tokens - (parent ? parent->total_tokens : 0) != version.tokens)
      return disagrees("the tokens of " + name + " do not add up");
  }
  if (before > session.last_version) return disagrees("version " + std::to_string(before) + " was never given out");
  if (session.versions != versions.size())
    return disagrees("it should have " + std::to_string(session.versions) + " versions but has " +
                     std::to_string(versions.size()));
  const version_outline* const head = find(versions, session.head);
  if (!head && session.head != beginning) return disagrees("its head is missing");
  if (session.total_tokens != (head ? head->total_tokens : 0)) return disagrees("the tokens of its head do not add up");
  return {};
}

}  // namespace skein::storage
