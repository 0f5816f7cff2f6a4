#include "actors/persistence/sessions/ancestry.hpp"

namespace skein::persistence {

using storage::beginning;

const ancestry::step& ancestry::at(version_id v) const {
  static const step start;
  return v == beginning ? start : steps_.at(v);
}

void ancestry::add(version_id v, version_id parent, std::uint64_t bytes, bool unfinished) {
  const step before = at(parent), far = at(before.far), farther = at(far.far);
  const bool same_stride = before.depth - far.depth == far.depth - farther.depth;
  steps_[v] = {parent, same_stride ? far.far : parent, before.depth + 1, unfinished ? before.finished : v,
               before.bytes + bytes};
}

std::uint32_t ancestry::depth(version_id v) const { return at(v).depth; }
std::uint64_t ancestry::bytes(version_id v) const { return at(v).bytes; }
ancestry::version_id ancestry::finished(version_id v) const { return at(v).finished; }

ancestry::version_id ancestry::first(version_id v) const {
  while (at(v).depth > 1) v = at(v).far != beginning ? at(v).far : at(v).parent;
  return v;
}

/// Numbers ascend along every path.
bool ancestry::leads_to(version_id ancestor, version_id v) const {
  while (v > ancestor) v = at(v).far >= ancestor ? at(v).far : at(v).parent;
  return v == ancestor;
}

}  // namespace skein::persistence
