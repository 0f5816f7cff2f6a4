#include "actors/persistence/prefixes/prefix_tree.hpp"

#include <algorithm>
#include <set>

#include "base/check.hpp"

namespace skein::persistence {
namespace {

// Memory of a node without its tokens.
constexpr std::size_t node_overhead = 160;

std::size_t common_length(std::span<const token_id> a, std::span<const token_id> b) {
  const auto [end, other] = std::ranges::mismatch(a, b);
  return static_cast<std::size_t>(end - a.begin());
}

}  // namespace

std::vector<std::uint32_t> prefix_positions(const prefix_tree_options& options, std::uint32_t size,
                                            std::uint32_t system_tokens, std::uint32_t turn_tokens, std::uint32_t from,
                                            std::uint32_t chunk, std::uint32_t again) {
  std::set<std::uint32_t> wanted;
  const std::uint32_t low = std::max(from + 1, options.min_tokens);
  const auto want = [&](std::uint32_t position) {
    if (position > size || size == 0) return;
    if (chunk > 0) position = std::min(position, size - 1) / chunk * chunk;
    if (position >= low && wanted.size() < options.copies_max) wanted.insert(position);
  };
  if (chunk == 0) want(size);
  want(system_tokens);
  want(turn_tokens);
  want(again);
  if (options.every_tokens > 0) {
    const std::uint32_t room = options.copies_max - static_cast<std::uint32_t>(wanted.size());
    std::uint64_t step = options.every_tokens;
    while (room > 0 && (size - std::min(size, from)) / step > room) step *= 2;
    for (std::uint64_t at = (from / step + 1) * step; at <= size; at += step) want(static_cast<std::uint32_t>(at));
  }
  return {wanted.begin(), wanted.end()};
}

std::vector<prefix_tree::found> prefix_tree::find(const tenant_id& tenant, const std::string& initial_state,
                                                  std::span<const token_id> tokens) const {
  std::vector<found> all;
  const auto root = roots_.find({tenant, initial_state});
  if (root == roots_.end()) return all;
  const node* at = &root->second;
  for (std::size_t position = 0; position < tokens.size();) {
    const auto child = at->children.find(tokens[position]);
    if (child == at->children.end()) break;
    at = child->second.get();
    if (common_length(at->edge, tokens.subspan(position)) < at->edge.size()) break;
    position += at->edge.size();
    if (at->number != 0 && position < tokens.size() && entries_.at(at->number).ready)
      all.push_back({static_cast<std::uint32_t>(position), {0, at->number}});
  }
  return all;
}

/// The node after exactly these tokens; creates it if it is missing.
prefix_tree::node& prefix_tree::place(const tenant_id& tenant, const std::string& initial_state,
                                      std::span<const token_id> tokens) {
  const auto root = roots_.try_emplace({tenant, initial_state}).first;
  root->second.root = &root->first;
  node* at = &root->second;
  while (!tokens.empty()) {
    auto& child = at->children[tokens.front()];
    if (!child) {
      child = std::make_unique<node>();
      child->parent = at;
      child->edge.assign(tokens.begin(), tokens.end());
      bytes_ += node_overhead + tokens.size_bytes();
      return *child;
    }
    const std::size_t length = common_length(child->edge, tokens);
    at = length < child->edge.size() ? &split(*child, length) : child.get();
    tokens = tokens.subspan(length);
  }
  return *at;
}

/// Splits the edge to `child` after `length` tokens; returns the new node there.
prefix_tree::node& prefix_tree::split(node& child, std::size_t length) {
  auto& slot = child.parent->children.at(child.edge.front());
  auto middle = std::make_unique<node>();
  middle->parent = child.parent;
  const auto cut = child.edge.begin() + static_cast<std::ptrdiff_t>(length);
  middle->edge.assign(child.edge.begin(), cut);
  child.edge.erase(child.edge.begin(), cut);
  child.parent = middle.get();
  const token_id next = child.edge.front();
  middle->children[next] = std::move(slot);
  slot = std::move(middle);
  bytes_ += node_overhead;
  return *slot;
}

/// Removes nodes that lead to no entry, and joins two edges at a node that no longer branches.
void prefix_tree::prune(node* at) {
  while (at->parent && at->number == 0 && at->children.empty()) {
    node* const parent = at->parent;
    bytes_ -= node_overhead + at->edge.size() * sizeof(token_id);
    parent->children.erase(at->edge.front());
    at = parent;
  }
  if (!at->parent) {
    if (at->children.empty()) roots_.erase(roots_.find(*at->root));
    return;
  }
  if (at->number != 0 || at->children.size() != 1) return;
  auto& slot = at->parent->children.at(at->edge.front());
  auto only = std::move(at->children.begin()->second);
  only->edge.insert(only->edge.begin(), at->edge.begin(), at->edge.end());
  only->parent = at->parent;
  slot = std::move(only);  // `at` is gone
  bytes_ -= node_overhead;
}

void prefix_tree::enter(node& at, std::uint64_t number, bool ready, steady_time now) {
  at.number = number;
  entries_[number] = {&at, ready, now};
  wanted_ += ready ? 0 : 1;
}

std::vector<wanted_copy> prefix_tree::want(const tenant_id& tenant, const std::string& initial_state,
                                           std::span<const token_id> tokens, std::uint32_t system_tokens,
                                           std::uint32_t turn_tokens, std::uint32_t from, steady_time now,
                                           std::uint32_t chunk, std::uint32_t again) {
  std::vector<wanted_copy> copies;
  const auto size = static_cast<std::uint32_t>(tokens.size());
  for (const auto position : prefix_positions(options_, size, system_tokens, turn_tokens, from, chunk, again)) {
    if (wanted_ >= options_.wants_max) break;
    node& at = place(tenant, initial_state, tokens.first(position));
    if (at.number != 0) continue;
    enter(at, ++last_number_, false, now);
    copies.push_back({{0, last_number_}, position});
  }
  return copies;
}

bool prefix_tree::kept(const state_key& key, bool there) {
  const auto it = entries_.find(key.number);
  if (it == entries_.end() || it->second.ready) return false;
  if (!there) {
    erase(key);
    return false;
  }
  it->second.ready = true;
  --wanted_;
  return true;
}

bool prefix_tree::add(const state_key& key, const tenant_id& tenant, const std::string& initial_state,
                      std::span<const token_id> tokens) {
  skip_numbers(key.number);
  if (tokens.empty() || entries_.contains(key.number)) return false;
  node& at = place(tenant, initial_state, tokens);
  if (at.number != 0) return false;
  enter(at, key.number, true, {});
  return true;
}

void prefix_tree::erase(const state_key& key) {
  const auto it = entries_.find(key.number);
  if (it == entries_.end()) return;
  node* const at = it->second.at;
  wanted_ -= it->second.ready ? 0 : 1;
  at->number = 0;
  entries_.erase(it);
  prune(at);
}

void prefix_tree::expire(steady_time now) {
  if (wanted_ == 0) return;
  std::vector<std::uint64_t> late;
  for (const auto& [number, e] : entries_)
    if (!e.ready && e.since + options_.patience <= now) late.push_back(number);
  for (const auto number : late) erase({0, number});
}

std::optional<prefix_tree::description> prefix_tree::describe(const state_key& key) const {
  const auto it = entries_.find(key.number);
  if (it == entries_.end()) return std::nullopt;
  std::vector<const node*> way;
  const node* at = it->second.at;
  for (; at->parent; at = at->parent) way.push_back(at);
  description d{at->root->first, at->root->second, {}};
  for (auto step = way.rbegin(); step != way.rend(); ++step)
    d.tokens.insert(d.tokens.end(), (*step)->edge.begin(), (*step)->edge.end());
  return d;
}

std::optional<std::string> prefix_tree::self_check() const {
  std::size_t bytes = 0, numbers = 0;
  std::vector<const node*> open;
  open.reserve(roots_.size());
  for (const auto& [key, root] : roots_) open.push_back(&root);
  while (!open.empty()) {
    const node* const n = open.back();
    open.pop_back();
    if (n->parent) bytes += node_overhead + n->edge.size() * sizeof(token_id);
    if (n->number != 0 && (!entries_.contains(n->number) || entries_.at(n->number).at != n))
      return "a prefix is at the wrong node";
    if (n->parent && n->number == 0 && n->children.size() < 2) return "a node of the prefix tree is not needed";
    numbers += n->number != 0 ? 1 : 0;
    for (const auto& [token, child] : n->children) {
      if (child->parent != n || child->edge.empty() || child->edge.front() != token) return "a prefix has a wrong edge";
      open.push_back(child.get());
    }
  }
  if (bytes != bytes_) return "the byte count of prefixes is wrong";
  if (numbers != entries_.size()) return "the count of prefixes is wrong";
  return std::nullopt;
}

}  // namespace skein::persistence
