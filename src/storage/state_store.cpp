// Two ways onto the disk. A small state goes through the write-ahead log together with its index entry, as any record.
// A large one would be written twice that way, and every commit of a turn would wait behind it, so it goes into a
// buffer, the buffer into a blob file, and then its index entry into the log. A crash in between loses a checkpoint,
// which is rebuilt, or leaves a blob without an entry, which its next writer replaces. The flush syncs the log as far
// as it has been written, so no state on disk is newer than the turn that it belongs to.
#include "storage/state_store.hpp"

#include <array>
#include <utility>

#include "storage/database_impl.hpp"
#include "storage/quarantine.hpp"
#include "storage/raw_states.hpp"
#include "storage/record_codec.hpp"
#include "storage/state_record.hpp"
#include "storage/storage_keys.hpp"
#include "storage/wall_time.hpp"

namespace skein::storage {
namespace {

constexpr std::size_t logged_bytes_max = 1u << 20;
constexpr std::uint32_t flushes_before_all = 32;  ///< each of them begins a file of the log, which this ends

family family_of(const state_key& key) { return key.owner == 0 ? family::prefixes : family::states; }
std::string blob_key(const state_key& key) {
  return key.owner == 0 ? keys::of_number(key.number) : keys::of_state(key);
}

std::string name_of(const state_key& key) {
  if (key.owner == 0) return "state of prefix " + std::to_string(key.number);
  return "state of version " + std::to_string(key.number) + " of session number " + std::to_string(key.owner);
}

std::uint64_t number_at(std::string_view key, std::size_t at) {
  std::uint64_t n = 0;
  for (std::size_t i = 0; i < sizeof n && at + i < key.size(); ++i) n = n << 8 | static_cast<std::uint8_t>(key[at + i]);
  return n;
}

result<void> flush_blobs(database::impl& db, family blobs) {
  const std::array one{blobs};
  if (db.buffered_flushes.fetch_add(1) % flushes_before_all == flushes_before_all - 1) return db.flush({});
  return db.flush(one);
}

}  // namespace

result<void> write_raw_state(database& database, const state_entry& entry, std::string_view record) {
  auto& db = database.internals();
  const family blobs = family_of(entry.key);
  const std::string key = blob_key(entry.key), index_key = keys::of_state(entry.key);
  const auto add_blob = [&](change_list& changes) { changes.put(blobs, key, record); };
  const auto add_entry = [&](change_list& changes) {
    changes.put(family::state_index, index_key, encode_entry(entry));
  };
  if (record.size() <= logged_bytes_max)
    return db.write(safety::logged, [&](change_list& changes) {
      add_blob(changes);
      add_entry(changes);
    });
  if (const auto buffered = db.write(safety::buffered, add_blob); !buffered) return buffered.error();
  if (const auto flushed = flush_blobs(db, blobs); !flushed) return flushed.error();
  return db.write(safety::logged, add_entry);
}

result<std::vector<state_entry>> state_entries(database& database, states_of which) {
  auto& db = database.internals();
  const bool of_prefixes = which == states_of::prefixes;
  struct unreadable {
    std::string key, record;
    error why;
  };
  const std::string first_session = keys::of_number(1);
  std::vector<state_entry> all;
  std::vector<unreadable> bad;
  const auto looked =
      db.scan(family::state_index, of_prefixes ? std::string() : first_session,
              of_prefixes ? first_session : std::string(), [&](std::string_view key, std::string_view value) {
                auto entry = decode_entry(value, {number_at(key, 0), number_at(key, 8)});
                if (entry)
                  all.push_back(std::move(*entry));
                else
                  bad.push_back({std::string(key), std::string(value), entry.error()});
                return true;
              });
  if (!looked) return looked.error();
  for (const auto& one : bad)
    if (is_damage(one.why))
      (void)set_aside(db, family::state_index, one.key, one.record,
                      "index entry of the " + name_of({number_at(one.key, 0), number_at(one.key, 8)}), one.why);
  return all;
}

result<std::optional<std::string>> read_raw_state(database& db, const state_key& key) {
  std::string record;
  const auto found =
      db.internals().read(family_of(key), blob_key(key), [&](std::string_view value) { record = value; });
  if (!found) return found.error();
  if (!*found) return std::optional<std::string>();
  const auto contents = read_state_record(record);
  if (!contents) return error{contents.error().kind, name_of(key) + ": " + contents.error().message, {}};
  if (contents->label.key != key)
    return error{error_kind::damaged, name_of(key) + ": it is the " + name_of(contents->label.key), {}};
  return std::optional(std::move(record));
}

state_store::state_store(std::shared_ptr<database> db, model::state_layout layout, std::string model_identity,
                         state_type type)
    : db_(std::move(db)), layout_(layout), model_identity_(std::move(model_identity)), type_(type) {}

result<void> state_store::put(const state_label& label, std::span<const float> state) {
  const std::string record = encode_state(label, layout_, state, type_);
  return write_raw_state(*db_, {label.key, record.size(), wall_time_ms(), {}, {}, {}}, record);
}

result<void> state_store::put_prefix(const state_label& label, std::span<const token_id> tokens,
                                     std::string_view initial_state, std::span<const float> state) {
  const std::string record = encode_state(label, layout_, state, type_);
  return write_raw_state(*db_,
                         {label.key,
                          record.size(),
                          wall_time_ms(),
                          label.tenant,
                          std::string(initial_state),
                          {tokens.begin(), tokens.end()}},
                         record);
}

result<std::optional<decoded_state>> state_store::get(const state_key& key) {
  auto& db = db_->internals();
  const family blobs = family_of(key);
  const std::string at = blob_key(key);
  std::optional<decoded_state> state;
  std::optional<error> why;
  std::string bad;
  const auto found = db.read(blobs, at, [&](std::string_view record) {
    auto decoded = decode_state(record, layout_, model_identity_);
    if (decoded && decoded->label.key != key)
      why = error{error_kind::damaged, "it is the " + name_of(decoded->label.key), {}};
    else if (decoded)
      state = std::move(*decoded);
    else
      why = decoded.error();
    if (why && is_damage(*why)) bad = record;
  });
  if (!found) return found.error();
  if (!why) return state;
  if (!is_damage(*why)) return error{why->kind, name_of(key) + ": " + why->message, {}};
  ignore(
      db.write(safety::logged, [&](change_list& changes) { changes.erase(family::state_index, keys::of_state(key)); }),
      "the damage is reported in any case");
  return set_aside(db, blobs, at, bad, name_of(key), *why);
}

result<void> state_store::remove(const state_key& key) {
  return db_->internals().write(safety::logged, [&](change_list& changes) {
    changes.erase(family_of(key), blob_key(key));
    changes.erase(family::state_index, keys::of_state(key));
  });
}

result<std::vector<stored_state>> state_store::list() {
  auto all = state_entries(*db_, states_of::sessions);
  if (!all) return all.error();
  std::vector<stored_state> states;
  for (const auto& entry : *all) states.push_back({entry.key, entry.bytes, entry.used_ms});
  return states;
}

result<std::vector<state_store::stored_prefix>> state_store::list_prefixes() {
  auto all = state_entries(*db_, states_of::prefixes);
  if (!all) return all.error();
  std::vector<stored_prefix> prefixes;
  for (auto& e : *all)
    prefixes.push_back(
        {e.key, std::move(e.tenant), std::move(e.initial_state), std::move(e.tokens), e.bytes, e.used_ms});
  return prefixes;
}

std::size_t state_store::record_bytes() const {
  return state_record_bytes({model_identity_, default_tenant, {1, 1}, 0}, layout_, type_);
}

}  // namespace skein::storage
