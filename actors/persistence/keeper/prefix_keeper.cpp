#include "actors/persistence/keeper/prefix_keeper.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "base/log/log.hpp"

namespace skein::persistence {
namespace {

using namespace std::chrono_literals;

constexpr auto expiry_pause = 10s;
// The tokens of all prefixes, including those on disk, may take 1/token_share of the RAM budget.
constexpr std::size_t token_share = 4;
// Engines without chunks resume repeated prompts at multiples of this.
constexpr std::uint32_t repeat_tokens = 64;

/// Changes when the same tokens give different state bits, so that entries of older builds are not found and are
/// evicted from disk over time. 2: engines that feed prompts token by token no longer share entries with those that
/// feed them in chunks; older builds fed whole runs of tokens to both and did not record it.
constexpr std::string_view computed_as = "2";

/// The root of a prefix, in the tree and on disk: the model, its tuned state, and how the tokens were computed, because
/// a state computed in another way would change answers.
std::string root_name(const std::string& model_identity, const std::string& initial_state, std::uint32_t chunk) {
  return model_identity + ' ' + initial_state + " as " + std::string(computed_as) +
         (chunk > 0 ? " in chunks of " + std::to_string(chunk) : "");
}

std::string model_of(const std::string& root_name) { return root_name.substr(0, root_name.find(' ')); }

}  // namespace

prefix_keeper::prefix_keeper(const persistence_options& options, keeper_ports ports, persistence_counters& counters)
    : options_(options),
      ports_(std::move(ports)),
      counters_(counters),
      tree_(options.prefixes),
      tiers_(options.prefix_states, ports_.states, ports_.runner, ports_.time, ports_.wall,
             {[this](const state_key& key) { arrived(key); }, [this](const state_key& key) { tree_.erase(key); },
              [this](const state_key& key, state_buffer state) { return writer_of(key, std::move(state)); }}) {}

tier_mover::write prefix_keeper::writer_of(const state_key& key, state_buffer state) const {
  auto what = tree_.describe(key).value_or(prefix_tree::description{});
  storage::state_label label{model_of(what.initial_state), what.tenant, key, what.tokens.size()};
  return [label = std::move(label), tokens = std::move(what.tokens), name = std::move(what.initial_state),
          state = std::move(state)](storage::state_store& store) {
    return store.put_prefix(label, tokens, name, state->view());
  };
}

void prefix_keeper::begin() {
  if (!options_.prefixes.enabled || options_.prefix_states.disk_bytes_max == 0) return;
  auto stored = ports_.states->list_prefixes();
  if (!stored) {
    log::error("stored prefixes cannot be listed", {{"why", stored.error().message}});
    return;
  }
  std::ranges::sort(*stored, {}, [](const auto& p) { return p.used_ms; });
  for (const auto& prefix : *stored) {
    tree_.skip_numbers(prefix.key.number);
    tiers_.cache().found(prefix.key, prefix.bytes, prefix.used_ms);
    if (!tree_.add(prefix.key, prefix.tenant, prefix.initial_state, prefix.tokens)) tiers_.erase(prefix.key);
  }
}

void prefix_keeper::handle(find_prefix&& q) {
  q.initial_state = root_name(q.model, q.initial_state, q.chunk_tokens);
  if (options_.prefixes.enabled && q.tokens) return look_up(std::move(q));
  prefix_found nothing;
  nothing.reply = q.reply;
  ports_.replies.deliver(std::move(nothing));
}

void prefix_keeper::look_up(find_prefix&& q) {
  prefix_found answer;
  answer.reply = q.reply;
  std::span<const token_id> tokens(*q.tokens);
  if (q.chunk_tokens > 0) tokens = tokens.first(std::min<std::size_t>(q.first_part, tokens.size()));
  auto known = tree_.find(q.tenant, q.initial_state, tokens);
  const std::int64_t now_ms = ports_.wall();
  while (!known.empty() && !answer.state) {
    const auto [position, key] = known.back();
    answer.state = tiers_.cache().lend(key, now_ms);
    if (!answer.state && pays_to_wait(known)) {
      if (tiers_.load(key)) return waiting_[key].push_back(std::move(q));
    } else if (!answer.state) {
      read_ahead(key);
    }
    known.pop_back();
    if (!answer.state) continue;  // try a shorter prefix
    answer.position = position;
    answer.key = key;
    // Shorter prefixes count as used too, and later than this one, so that leaves are evicted first.
    for (auto at = known.rbegin(); at != known.rend(); ++at) tiers_.cache().touch(at->key, now_ms);
  }
  if (answer.state) {
    counters_.prefix_hits.fetch_add(1, std::memory_order_relaxed);
    counters_.prefix_tokens.fetch_add(answer.position, std::memory_order_relaxed);
  } else {
    counters_.prefix_misses.fetch_add(1, std::memory_order_relaxed);
  }
  answer.keep = tree_.want(q.tenant, q.initial_state, tokens, q.system_tokens, q.turn_tokens, answer.position,
                           ports_.time.now(), q.chunk_tokens, seen_before(q, tokens, answer.position));
  ports_.replies.deliver(std::move(answer));
}

std::uint32_t prefix_keeper::seen_before(const find_prefix& q, std::span<const token_id> tokens, std::uint32_t from) {
  if (tokens.empty()) return 0;
  const std::uint32_t step = q.chunk_tokens > 0 ? q.chunk_tokens : repeat_tokens;
  const auto leaves_one = static_cast<std::uint32_t>(tokens.size() - 1);
  return seen_.meet(q.tenant, q.initial_state, tokens, from, leaves_one / step * step, step).value_or(0);
}

bool prefix_keeper::pays_to_wait(std::span<const prefix_tree::found> known) const {
  const auto shorter = known.first(known.size() - 1);
  const auto in_ram = std::find_if(shorter.rbegin(), shorter.rend(), [&](const prefix_tree::found& f) {
    return tiers_.cache().fastest(f.key) <= tier::ram;
  });
  const std::uint32_t without = in_ram == shorter.rend() ? 0 : in_ram->position;
  return known.back().position - without >= options_.prefix_wait_tokens;
}

void prefix_keeper::read_ahead(const state_key& key) {
  if (!read_ahead_ && tiers_.load(key)) read_ahead_ = key;
}

/// A state was read, or reading it failed.
void prefix_keeper::arrived(const state_key& key) {
  if (read_ahead_ == key) read_ahead_.reset();
  const auto it = waiting_.find(key);
  if (it == waiting_.end()) return;
  auto questions = std::move(it->second);
  waiting_.erase(it);
  for (auto& q : questions) look_up(std::move(q));
}

void prefix_keeper::handle(state_kept&& q) {
  if (!tree_.kept(q.key, q.state != nullptr)) return;
  const auto what = tree_.describe(q.key);
  tiers_.cache().put(q.key, std::move(q.state), {what->tenant, what->tokens.size(), model_of(what->initial_state)},
                     true, ports_.time.now(), ports_.wall());
}

/// Limits the memory of tokens, which stay in memory also for states on disk.
void prefix_keeper::trim() {
  while (tree_.bytes() > options_.prefix_states.ram_bytes_max / token_share) {
    const auto key = tiers_.cache().least_used();
    if (!key) return;
    tiers_.erase(*key);
    tree_.erase(*key);
  }
}

void prefix_keeper::tick(bool disk_works) {
  trim();
  tiers_.move(disk_works, false);
  if (ports_.time.now() < next_expiry_) return;
  next_expiry_ = ports_.time.now() + expiry_pause;
  tree_.expire(ports_.time.now());
}

bool prefix_keeper::flush(bool disk_works) {
  if (!disk_works) return tiers_.settled();
  tiers_.move(true, true);
  return tiers_.settled() && tiers_.cache().count().dirty == 0;
}

void prefix_keeper::publish() const {
  publish_tier(tiers_, ports_.time.now(), counters_.prefixes);
  counters_.prefixes_ready = tree_.ready();
  counters_.prefixes_wanted = tree_.wanted();
  counters_.prefix_token_bytes = tree_.bytes();
}

std::optional<std::string> prefix_keeper::self_check() const {
  if (auto wrong = tree_.self_check()) return wrong;
  return tiers_.cache().self_check();
}

}  // namespace skein::persistence
