#include "storage/session_check.hpp"

#include <algorithm>
#include <string>

namespace skein::storage {
namespace {

error disagrees(const std::string& what) {
  return {error_kind::damaged, "the session does not agree with itself: " + what, {}};
}

const version_record* find(std::span<const version_record> versions, version_id id) {
  const auto at = std::ranges::lower_bound(versions, id, {}, &version_record::id);
  return at != versions.end() && at->id == id ? &*at : nullptr;
}

}  // namespace

result<void> check_session(const session_record& session, std::span<const version_record> versions) {
  version_id before = beginning;
  for (const auto& version : versions) {
    const std::string name = "version " + std::to_string(version.id);
    if (version.id <= before) return disagrees(name + " comes after version " + std::to_string(before));
    before = version.id;
    const version_record* const parent = find(versions, version.parent);
    if (version.parent >= version.id || (!parent && version.parent != beginning))
      return disagrees("the parent of " + name + " is missing");
    if (version.total_tokens - (parent ? parent->total_tokens : 0) != version.tokens.size())
      return disagrees("the tokens of " + name + " do not add up");
  }
  if (before > session.last_version) return disagrees("version " + std::to_string(before) + " was never given out");
  if (session.versions != versions.size())
    return disagrees("it should have " + std::to_string(session.versions) + " versions and has " +
                     std::to_string(versions.size()));
  const version_record* const head = find(versions, session.head);
  if (!head && session.head != beginning) return disagrees("its head is missing");
  if (session.total_tokens != (head ? head->total_tokens : 0)) return disagrees("the tokens of its head do not add up");
  return {};
}

}  // namespace skein::storage
