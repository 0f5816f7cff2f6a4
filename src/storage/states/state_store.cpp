#include "storage/states/state_store.hpp"

#include <utility>

#include "base/check.hpp"
#include "storage/database/quarantine.hpp"
#include "storage/records/scratch.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/records/wall_time.hpp"
#include "storage/states/raw_states.hpp"
#include "storage/states/state_record.hpp"

namespace skein::storage {

state_store::state_store(std::shared_ptr<database> db, std::shared_ptr<const model_table> models,
                         std::optional<dtype> type)
    : db_(std::move(db)), models_(std::move(models)), type_(type), scratch_(std::make_shared<scratch>()) {}

state_store::state_store(std::shared_ptr<database> db, const model::state_format& format, std::string model_identity,
                         std::optional<dtype> type)
    : state_store(std::move(db), std::make_shared<const model_table>(std::move(model_identity), known_model{format}),
                  type) {}

result<void> state_store::encode(const state_label& label, const model::state_view& state, std::string& record) const {
  const auto model = models_->find(label.model_identity);
  if (!model) return models_->unknown("the state", label.model_identity);
  check(state.format.layout == model->state.layout);
  encode_state(label, state, type_, record);
  return {};
}

result<void> state_store::put(const state_label& label, const model::state_view& state) {
  const auto record = scratch_->lend();
  if (auto ok = encode(label, state, *record); !ok) return ok;
  return write_raw_state(db_->internals(), {label.key, 0, wall_time_ms(), true, {}, {}, {}}, *record);
}

result<void> state_store::put_prefix(const state_label& label, std::span<const token_id> tokens,
                                     std::string_view initial_state, const model::state_view& state) {
  const auto record = scratch_->lend();
  if (auto ok = encode(label, state, *record); !ok) return ok;
  return write_raw_state(
      db_->internals(),
      {label.key, 0, wall_time_ms(), true, label.tenant, std::string(initial_state), {tokens.begin(), tokens.end()}},
      *record);
}

result<std::optional<decoded_state>> state_store::get(const state_key& key) {
  auto& db = db_->internals();
  const auto entry = find_entry(db, key);
  if (!entry) return entry.error();
  if (!*entry) return std::optional<decoded_state>();
  const auto record = scratch_->lend();
  error why;
  if (const auto read = read_raw_state(db, **entry, *record); !read) {
    why = read.error();
  } else {
    auto decoded = decode_state(*record, *models_);
    if (decoded && decoded->label.key == key) return std::optional(std::move(*decoded));
    why = decoded ? error{error_kind::damaged, "it is the " + name_of(decoded->label.key), {}} : decoded.error();
  }
  if (!is_damage(why)) return error{why.kind, name_of(key) + ": " + why.message, {}};
  return set_aside(db, family::state_index, keys::of_state(key), *record, name_of(key), why,
                   [&](change_list& changes) { erase_state(changes, **entry); });
}

result<void> state_store::remove(const state_key& key) {
  auto& db = db_->internals();
  const auto found = find_entry(db, key);
  if (!found) return found.error();
  if (!*found) return {};
  return db.write(safety::logged, [&](change_list& changes) { erase_state(changes, **found); });
}

result<std::vector<stored_state>> state_store::list() {
  const auto all = entries_of_sessions(db_->internals());
  if (!all) return all.error();
  std::vector<stored_state> states;
  for (const auto& entry : *all)
    if (entry.complete) states.push_back({entry.key, entry.bytes, entry.used_ms});
  return states;
}

result<void> state_store::drop_incomplete() {
  auto& db = db_->internals();
  for (const auto entries : {entries_of_sessions, entries_of_prefixes}) {
    auto all = entries(db);
    if (!all) return all.error();
    std::erase_if(*all, [](const state_entry& entry) { return entry.complete; });
    if (all->empty()) continue;
    const auto dropped = db.write(safety::logged, [&](change_list& changes) {
      for (const auto& entry : *all) erase_state(changes, entry);
    });
    if (!dropped) return dropped;
  }
  return {};
}

result<std::vector<state_store::stored_prefix>> state_store::list_prefixes() {
  auto all = entries_of_prefixes(db_->internals());
  if (!all) return all.error();
  std::vector<stored_prefix> prefixes;
  for (auto& e : *all)
    if (e.complete)
      prefixes.push_back(
          {e.key, std::move(e.tenant), std::move(e.initial_state), std::move(e.tokens), e.bytes, e.used_ms});
  return prefixes;
}

std::size_t state_store::record_bytes(std::string_view model_identity) const {
  const auto model = models_->find(model_identity);
  if (!model) return 0;
  return state_record_bytes({std::string(model_identity), default_tenant, {1, 1}, 0}, model->state, type_);
}

}  // namespace skein::storage
