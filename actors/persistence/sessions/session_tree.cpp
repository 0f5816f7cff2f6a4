#include "actors/persistence/sessions/session_tree.hpp"

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <tuple>
#include <utility>

#include "actors/persistence/sessions/session_title.hpp"
#include "base/check.hpp"

namespace skein::persistence {
namespace {

// Memory of a name and its value without their bytes: two strings and their block headers.
constexpr std::size_t pair_overhead = 2 * sizeof(std::string) + 32;
// recognise() reads a text at most this number of times if branches cut it at different positions.
constexpr std::uint64_t readings_max = 8;

error damaged(const session_record& record, std::string_view what) {
  return {error_kind::damaged, "the session '" + record.key.id + "' is damaged: " + std::string(what), ""};
}

bool may_end(std::string_view text, std::uint64_t at, const history_rules& rules) {
  if (at == text.size()) return !rules.leave_some;
  if (!rules.whole_messages) return true;
  const auto begins_next = [rest = text.substr(at)](std::string_view end) { return rest.starts_with(end); };
  return std::ranges::any_of(std::initializer_list<std::string_view>{"\n\n", "\n### ", "✿\n"}, begins_next);
}

}  // namespace

std::size_t label_bytes(const session_record& record) {
  std::size_t bytes = record.key.tenant.size() + record.key.id.size() + record.model_identity.size() +
                      record.initial_state.size() + record.title.size();
  for (const auto& [name, value] : record.metadata) bytes += pair_overhead + name.size() + value.size();
  return bytes;
}

session_record fork_record(const session_tree& from, version_id version, session_name name, std::int64_t now_ms) {
  session_record record;
  record.uid = name.uid;
  record.key = std::move(name.key);
  record.model_identity = from.record().model_identity;
  record.initial_state = from.record().initial_state;
  record.created_ms = record.used_ms = now_ms;
  record.title = from.record().title;
  record.metadata = from.record().metadata;
  if (version == storage::beginning) return record;
  record.head = record.last_version = version;
  record.versions = from.ways().depth(version);
  record.total_tokens = from.total_tokens(version);
  record.log_bytes = from.ways().bytes(version);
  if (record.title.empty()) record.title = title_of(*from.find(from.ways().first(version)));
  return record;
}

session_tree forked(const session_tree& from, version_id version, session_name name, std::int64_t now_ms) {
  session_tree tree(fork_record(from, version, std::move(name), now_ms));
  for (const auto& v : from.path(version)) {
    tree.link(*v);
    tree.versions_.emplace_hint(tree.versions_.end(), v->id, v);
  }
  return tree;
}

result<session_tree> session_tree::restore(session_record record, std::vector<version_record> versions) {
  session_tree tree(std::move(record));
  std::ranges::sort(versions, {}, &version_record::id);
  for (auto& v : versions) {
    // The disk stored a turn but reported a failure. The turn was refused, and its number may be assigned again.
    if (v.id > tree.record_.last_version) break;
    if (v.id == storage::beginning || tree.has(v.id) || v.parent >= v.id || !tree.has(v.parent))
      return damaged(tree.record_, "version " + std::to_string(v.id) + " has a bad number or parent");
    tree.link(v);
    const version_id id = v.id;
    tree.versions_.emplace(id, std::make_shared<const version_record>(std::move(v)));
  }
  if (tree.versions_.size() != tree.record_.versions)
    return damaged(tree.record_, std::to_string(tree.versions_.size()) + " versions found, " +
                                     std::to_string(tree.record_.versions) + " expected");
  if (!tree.has(tree.record_.head)) return damaged(tree.record_, "its head is missing");
  return tree;
}

void session_tree::link(const version_record& v) {
  children_.emplace(v.parent, v.id);
  ways_.add(v.id, v.parent, content_bytes(v), v.unfinished);
  if (v.deleted) deleted_.insert(v.id);
  if (!v.request_key.empty() && !v.deleted) by_request_key_[v.request_key] = v.id;
  bytes_ += version_overhead + content_bytes(v);
}

const version_record* session_tree::find(version_id v) const {
  const auto it = versions_.find(v);
  return it == versions_.end() ? nullptr : it->second.get();
}

bool session_tree::offers(version_id v) const {
  const version_record* at = find(v);
  return at ? !at->deleted : v == storage::beginning;
}

std::vector<shared_version> session_tree::all() const {
  std::vector<shared_version> all;
  all.reserve(versions_.size());
  for (const auto& [id, v] : versions_) all.push_back(v);
  return all;
}

shared_version session_tree::with_request_key(const std::string& key) const {
  const auto it = by_request_key_.find(key);
  return it == by_request_key_.end() ? nullptr : versions_.at(it->second);
}

const version_record* session_tree::unfinished() const {
  for (auto it = versions_.rbegin(); it != versions_.rend(); ++it) {
    const version_record& v = *it->second;
    if (v.unfinished && ways_.finished(v.id) == record_.head && !children_.contains(v.id)) return &v;
  }
  return nullptr;
}

version_id session_tree::broken_last() const {
  if (versions_.empty()) return storage::beginning;
  const version_record& last = *versions_.rbegin()->second;
  return last.unfinished && ways_.finished(last.id) == record_.head ? last.id : storage::beginning;
}

const history_hash* session_tree::history_of(version_id v) const {
  if (v == storage::beginning) return &no_history;
  const history_hash& h = versions_.at(v)->history;
  return h == no_history ? nullptr : &h;
}

void session_tree::place(version_record& v, std::string_view segment) const {
  check(has(v.parent), "a version is placed where its parent is");
  v.total_tokens = total_tokens(v.parent) + v.tokens.size();
  const history_hash* before = history_of(v.parent);
  const bool known = before && !segment.empty();
  v.segment_bytes = known ? segment.size() : 0;
  v.history = known ? chained(*before, segment) : no_history;
}

session_record session_tree::record_with(const version_record& v, std::int64_t now_ms) const {
  session_record after = record_;
  after.last_version = std::max(after.last_version, v.id);
  after.versions += 1;
  after.log_bytes += content_bytes(v);
  after.used_ms = now_ms;
  if (after.title.empty()) after.title = title_of(v);
  if (!v.unfinished && v.id > after.head) {
    after.head = v.id;
    after.total_tokens = v.total_tokens;
  }
  return after;
}

void session_tree::add(shared_version v, std::int64_t now_ms) {
  check(!has(v->id) && v->id > v->parent, "a version has a number of its own, above its parent's");
  check(has(v->parent), "a version's parent is in its session");
  record_ = record_with(*v, now_ms);
  link(*v);
  versions_.emplace(v->id, std::move(v));
}

void session_tree::set_head(version_id v, std::int64_t now_ms) {
  check(has(v), "a head is a version of its session");
  record_.head = v;
  record_.total_tokens = total_tokens(v);
  record_.used_ms = now_ms;
}

void session_tree::label(std::string title, storage::session_metadata metadata) {
  record_.title = std::move(title);
  record_.metadata = std::move(metadata);
}

void session_tree::begin_with(std::string model_identity, std::string initial_state) {
  check(versions_.empty(), "a session begins once");
  record_.model_identity = std::move(model_identity);
  record_.initial_state = std::move(initial_state);
}

version_id session_tree::finished_below(version_id v) const {
  for (auto it = versions_.lower_bound(v); it != versions_.begin();)
    if (const version_record& one = *(--it)->second; !one.deleted && !one.unfinished) return one.id;
  return storage::beginning;
}

session_tree::removal session_tree::removal_of(version_id v, std::int64_t now_ms) const {
  removal r{record_, {}, {}};
  if (children_.contains(v)) {
    r.marked.push_back(*versions_.at(v));
    r.marked.front().deleted = true;
  } else {
    const version_record* at = find(v);
    do r.gone.push_back(at->id), at = find(at->parent);
    while (at && at->deleted && children_.count(at->id) == 1);
  }
  if (r.record.head == v) r.record.head = finished_below(v);
  r.record.total_tokens = total_tokens(r.record.head);
  r.record.versions -= static_cast<std::uint32_t>(r.gone.size());
  for (const version_id id : r.gone)
    r.record.log_bytes -= std::min(r.record.log_bytes, content_bytes(*versions_.at(id)));
  r.record.used_ms = now_ms;
  if (r.record.versions == 0) {  // as before its first turn
    const auto& title = r.record.title;
    if (std::ranges::any_of(r.gone, [&](version_id id) { return title_of(*versions_.at(id)) == title; }))
      r.record.title.clear();
    r.record.model_identity.clear();
    r.record.initial_state.clear();
    r.record.log_bytes = 0;
  }
  return r;
}

void session_tree::remove(const removal& r) {
  const auto forget_key = [this](const version_record& v) {
    const auto keyed = by_request_key_.find(v.request_key);
    if (keyed != by_request_key_.end() && keyed->second == v.id) by_request_key_.erase(keyed);
  };
  record_ = r.record;
  for (const auto& v : r.marked) {
    versions_.at(v.id) = std::make_shared<const version_record>(v);  // forks may share the unmarked version
    deleted_.insert(v.id);
    forget_key(v);
  }
  for (const version_id id : r.gone) {
    const version_record& v = *versions_.at(id);
    check(!children_.contains(id), "a removed version has no children");
    for (auto [it, end] = children_.equal_range(v.parent); it != end; ++it)
      if (it->second == id) {
        children_.erase(it);
        break;
      }
    forget_key(v);
    bytes_ -= version_overhead + content_bytes(v);
    ways_.remove(id);
    deleted_.erase(id);
    versions_.erase(id);
  }
}

std::vector<version_id> session_tree::deleted_before(version_id v) const {
  std::vector<version_id> all;
  for (const version_id id : deleted_)
    if (ways_.leads_to(id, v)) all.push_back(id);
  return all;
}

std::vector<shared_version> session_tree::path(version_id v) const {
  std::vector<shared_version> way;
  for (auto at = versions_.find(v); at != versions_.end(); at = versions_.find(at->second->parent))
    way.push_back(at->second);
  std::ranges::reverse(way);
  return way;
}

std::vector<token_id> session_tree::tokens_between(version_id ancestor, version_id v) const {
  std::vector<token_id> tokens;
  bool beyond = ancestor == storage::beginning;
  for (const auto& at : path(v)) {
    if (beyond) tokens.insert(tokens.end(), at->tokens.begin(), at->tokens.end());
    beyond = beyond || at->id == ancestor;
  }
  check(beyond, "an ancestor is on the path");
  return tokens;
}

std::vector<engine::prompt_part> session_tree::parts_between(version_id ancestor, version_id v) const {
  std::vector<engine::prompt_part> parts;
  bool beyond = ancestor == storage::beginning;
  for (const auto& at : path(v)) {
    const auto tokens = static_cast<std::uint32_t>(at->tokens.size());
    const std::uint32_t brought = std::min(at->prompt_tokens, tokens);
    if (beyond && brought > 0) parts.push_back({brought, false});
    if (beyond && brought < tokens) parts.push_back({tokens - brought, true});
    beyond = beyond || at->id == ancestor;
  }
  return parts;
}

std::uint64_t session_tree::total_tokens(version_id v) const {
  const version_record* at = find(v);
  return at ? at->total_tokens : 0;
}

/// Versions that hold the same prefix of the text form a front; fronts are visited from the shortest. One pass over the
/// text behind a front tests all children of its versions, by length.
session_tree::recognised session_tree::recognise(std::string_view text, const history_rules& rules) const {
  struct front {
    history_hash hash;
    std::vector<version_id> versions;
  };
  std::map<std::uint64_t, std::vector<front>> fronts{{0, {{no_history, {storage::beginning}}}}};
  std::uint64_t work_left = readings_max * text.size();
  recognised best;
  const auto rank = [this](const recognised& r) { return std::tuple(r.bytes, r.version == record_.head, r.version); };
  const auto prefer = [&](const recognised& r) {
    best = std::max(best, r, [&](auto& a, auto& b) { return rank(a) < rank(b); });
  };
  while (!fronts.empty()) {
    const auto [at, here] = std::move(*fronts.begin());
    fronts.erase(fronts.begin());
    for (const front& f : here) {
      std::map<std::uint64_t, std::vector<const version_record*>> candidates;  // by length
      for (const version_id parent : f.versions)
        for (auto [it, end] = children_.equal_range(parent); it != end; ++it)
          if (const auto& child = *versions_.at(it->second);
              child.history != no_history && child.segment_bytes <= text.size() - at)
            candidates[child.segment_bytes].push_back(&child);
      chained_hash hash(f.hash);
      std::uint64_t fed = 0;
      for (const auto& [length, children] : candidates) {
        if (length - fed > work_left) return best;
        work_left -= length - fed;
        hash.feed(text.substr(at + fed, length - fed));
        fed = length;
        if (!may_end(text, at + length, rules)) continue;
        front next{hash.digest(), {}};
        for (const version_record* child : children)
          if (child->history == next.hash) next.versions.push_back(child->id);
        if (next.versions.empty()) continue;
        const bool has_head = std::ranges::find(next.versions, record_.head) != next.versions.end();
        std::vector<version_id> offered = next.versions;
        std::erase_if(offered, [this](version_id v) { return !offers(v); });
        if (!offered.empty()) prefer({has_head ? record_.head : *std::ranges::max_element(offered), at + length});
        fronts[at + length].push_back(std::move(next));
      }
    }
  }
  return best;
}

std::optional<std::uint64_t> session_tree::held_by(version_id v, std::string_view text,
                                                   const history_rules& rules) const {
  std::uint64_t at = 0;
  history_hash before = no_history;
  for (const auto& step : path(v)) {
    if (step->history == no_history || step->segment_bytes > text.size() - at) return std::nullopt;
    before = chained(before, text.substr(at, step->segment_bytes));
    if (before != step->history) return std::nullopt;
    at += step->segment_bytes;
  }
  if (!may_end(text, at, rules)) return std::nullopt;
  return at;
}

std::optional<std::pair<storage::session_key, version_id>> branch_named(const storage::session_key& key) {
  const auto colon = key.id.rfind(':');
  if (colon == std::string::npos || colon == 0) return std::nullopt;
  version_id version = 0;
  const char* const end = key.id.data() + key.id.size();
  const auto read = std::from_chars(key.id.data() + colon + 1, end, version);
  if (read.ec != std::errc() || read.ptr != end || version == storage::beginning) return std::nullopt;
  return std::pair(storage::session_key{key.tenant, key.id.substr(0, colon)}, version);
}

}  // namespace skein::persistence
