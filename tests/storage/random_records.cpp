#include "tests/storage/random_records.hpp"

#include <algorithm>
#include <limits>

namespace skein::test {
namespace {

using namespace storage;

/// Mostly ordinary, at times the largest there is.
template <typename Number>
Number any_number(random_cases& random) {
  switch (random.below(8)) {
    case 0: return std::numeric_limits<Number>::max();
    case 1: return std::numeric_limits<Number>::min();
    default: return static_cast<Number>(random.below(1u << random.below(32)));
  }
}

std::string any_text(random_cases& random) { return random.bytes(random.below(random.below(4) == 0 ? 2000 : 20)); }

/// Of a label, whose length has a limit in session files.
std::string any_label(random_cases& random, std::size_t bytes_max = 256) {
  return any_text(random).substr(0, bytes_max);
}

std::vector<token_id> any_tokens(random_cases& random) {
  std::vector<token_id> tokens(random.below(random.below(4) == 0 ? 3000 : 30));
  std::ranges::generate(tokens, [&] { return any_number<token_id>(random); });
  return tokens;
}

}  // namespace

version_record random_version(random_cases& random, version_id id, version_id parent) {
  version_record r;
  r.id = id;
  r.parent = parent;
  r.created_ms = any_number<std::int64_t>(random);
  r.tokens = any_tokens(random);
  r.prompt_tokens = random.below(static_cast<std::uint32_t>(r.tokens.size()) + 1);
  r.total_tokens = r.tokens.size() + random.below(1000);
  r.text = any_text(random);
  r.prompt_bytes = random.below(static_cast<std::uint32_t>(r.text.size()) + 1);
  r.segment_bytes = any_number<std::uint64_t>(random);
  std::ranges::generate(r.history, [&] { return static_cast<std::uint8_t>(random.below(256)); });
  r.messages.resize(random.below(4));
  for (auto& m : r.messages) m = {any_label(random), any_text(random)};
  for (auto* text : {&r.reasoning, &r.answer, &r.sampling}) *text = any_text(random);
  for (auto* label : {&r.finish_reason, &r.stop_reason, &r.template_name, &r.request_key}) *label = any_label(random);
  r.deleted = random.below(4) == 1;
  r.unfinished = random.below(2) == 1;
  return r;
}

session_record random_session(random_cases& random, session_uid uid, std::string id) {
  session_record r;
  r.uid = uid;
  r.key.id = std::move(id);
  r.model_identity = any_label(random);
  r.initial_state = any_label(random);
  r.last_version = any_number<version_id>(random);
  r.head = r.last_version == 0 ? 0 : random.below(r.last_version);
  r.versions = r.last_version / 2;
  r.total_tokens = any_number<std::uint64_t>(random);
  r.log_bytes = any_number<std::uint64_t>(random);
  r.created_ms = any_number<std::int64_t>(random);
  r.used_ms = any_number<std::int64_t>(random);
  r.title = any_label(random, session_title_bytes_max);
  for (std::uint32_t i = random.below(4); i > 0; --i)
    r.metadata.emplace_back(any_label(random, metadata_name_bytes_max), any_label(random, metadata_value_bytes_max));
  return r;
}

random_tree random_tree_of(random_cases& random, session_uid uid, std::string id, std::uint32_t count) {
  random_tree tree{random_session(random, uid, std::move(id)), {}};
  auto& s = tree.session;
  s.log_bytes = 0;
  for (std::uint32_t i = 1; i <= count; ++i) {
    auto v = random_version(random, i, random.below(i));
    v.deleted = false;
    v.total_tokens = v.tokens.size() + (v.parent == beginning ? 0 : tree.versions[v.parent - 1].total_tokens);
    s.log_bytes += v.tokens.size() * sizeof(token_id) + v.text.size();
    tree.versions.push_back(std::move(v));
  }
  s.head = s.last_version = s.versions = count;
  s.total_tokens = count == 0 ? 0 : tree.versions.back().total_tokens;
  return tree;
}

model::state_value random_state(random_cases& random, const model::state_layout& layout) {
  std::vector<float> state(layout.floats());
  std::ranges::generate(state, [&] { return static_cast<float>(random.below(4001)) / 1000 - 2; });
  return model::state_of(layout, state);
}

std::shared_ptr<database> opened(const std::filesystem::path& folder) {
  auto db = database::open({.directory = folder});
  BOOST_REQUIRE_MESSAGE(db, (db ? "" : db.error().message));
  return *db;
}

}  // namespace skein::test
