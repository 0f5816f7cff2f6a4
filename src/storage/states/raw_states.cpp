// Records are written in two ways. A small record goes through the write-ahead log together with its entry. A large one
// would be written twice that way and delay every commit of a turn, so its parts bypass the log: first an entry that
// marks the state as incomplete, then the parts into the write buffer, a flush of the buffer to blob files, then the
// entry that marks it as complete. A crash in between loses a checkpoint, which is computed again. The flush syncs the
// log written so far, so no state on disk is newer than its turn, and every state on disk has an entry by which it can
// be erased.
#include "storage/states/raw_states.hpp"

#include <array>
#include <chrono>
#include <thread>
#include <utility>

#include "storage/database/quarantine.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/states/state_record.hpp"

namespace skein::storage {
namespace {

using keys::number_at;

constexpr std::uint32_t flushes_before_all = 32;  ///< each flush begins a log file; flushing all families releases them

family family_of(const state_key& key) { return key.owner == 0 ? family::prefixes : family::states; }

std::string part_key(const state_key& key, std::uint64_t part) {
  std::string made = keys::of_state(key);
  keys::append(made, static_cast<std::uint32_t>(part));
  return made;
}

std::uint64_t parts_of(const state_entry& entry) { return (entry.bytes + state_part_bytes - 1) / state_part_bytes; }

void put_entry(change_list& changes, const state_entry& entry) {
  changes.put(family::state_index, keys::of_state(entry.key), encode_entry(entry));
}

result<void> flush_blobs(database::impl& db, family blobs) {
  const std::array one{blobs};
  if (db.buffered_flushes.fetch_add(1) % flushes_before_all == flushes_before_all - 1) return db.flush({});
  return db.flush(one);
}

/// If the disk is slower than the writers, pending data would take unlimited memory. This limits it to the size of the
/// write buffers once more.
void wait_for_disk(database::impl& db, family blobs) {
  constexpr auto pause = std::chrono::milliseconds(2), patience = std::chrono::milliseconds(2000);
  for (auto waited = pause * 0; waited < patience && !db.failure.is_on(); waited += pause) {
    if (db.buffered_bytes(blobs) <= 2 * db.options.write_buffer_bytes) return;
    std::this_thread::sleep_for(pause);
  }
}

result<std::vector<state_entry>> entries(database::impl& db, const std::string& first, const std::string& end) {
  struct unreadable {
    std::string key, record;
    error why;
  };
  std::vector<state_entry> all;
  std::vector<unreadable> bad;
  const auto looked = db.scan(family::state_index, first, end, [&](std::string_view key, std::string_view value) {
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

}  // namespace

std::string name_of(const state_key& key) {
  if (key.owner == 0) return "state of prefix " + std::to_string(key.number);
  return "state of version " + std::to_string(version_of(key)) + " of session number " + std::to_string(key.owner);
}

result<std::optional<state_entry>> find_entry(database::impl& db, const state_key& key) {
  const std::string at = keys::of_state(key);
  std::string bytes;
  const auto found = db.read(family::state_index, at, [&](std::string_view value) { bytes = value; });
  if (!found) return found.error();
  if (!*found) return std::optional<state_entry>();
  auto entry = decode_entry(bytes, key);
  if (!entry && !is_damage(entry.error())) return entry.error();
  if (!entry) return set_aside(db, family::state_index, at, bytes, "index entry of the " + name_of(key), entry.error());
  return entry->complete ? std::optional(std::move(*entry)) : std::nullopt;
}

result<void> write_raw_state(database::impl& db, state_entry entry, std::string_view record) {
  entry.bytes = record.size();
  const family blobs = family_of(entry.key);
  const auto put_part = [&](change_list& changes, std::uint64_t part) {
    changes.put(blobs, part_key(entry.key, part), record.substr(part * state_part_bytes, state_part_bytes));
  };
  if (parts_of(entry) <= 1) {
    const auto logged = db.write(safety::logged, [&](change_list& changes) {
      put_part(changes, 0);
      put_entry(changes, entry);
    });
    if (logged) wait_for_disk(db, blobs);
    return logged;
  }
  entry.complete = false;
  const auto announced = db.write(safety::logged, [&](change_list& changes) { put_entry(changes, entry); });
  if (!announced) return announced.error();
  for (std::uint64_t part = 0; part < parts_of(entry); ++part) {
    const auto buffered = db.write(safety::buffered, [&](change_list& changes) { put_part(changes, part); });
    if (!buffered) return buffered.error();
  }
  if (const auto flushed = flush_blobs(db, blobs); !flushed) return flushed.error();
  entry.complete = true;
  return db.write(safety::logged, [&](change_list& changes) { put_entry(changes, entry); });
}

result<void> read_raw_state(database::impl& db, const state_entry& entry, std::string& record) {
  record.clear();
  for (std::uint64_t part = 0; part < parts_of(entry); ++part) {
    // The record has its own checksum. The first part is still verified, and with it the block that locates the parts.
    const auto found = db.read(
        family_of(entry.key), part_key(entry.key, part), [&](std::string_view value) { record.append(value); },
        part == 0);
    if (!found) return found.error();
    if (!*found) return error{error_kind::damaged, "part " + std::to_string(part) + " of its record is missing", {}};
  }
  if (record.size() != entry.bytes)
    return error{
        error_kind::damaged,
        "its record has " + std::to_string(record.size()) + " bytes; the index says " + std::to_string(entry.bytes),
        {}};
  return {};
}

result<std::string> checked_raw_state(database::impl& db, const state_entry& entry) {
  std::string record;
  if (const auto read = read_raw_state(db, entry, record); !read) return read.error();
  const auto contents = read_state_record(record);
  if (!contents) return contents.error();
  if (contents->label.key != entry.key)
    return error{error_kind::damaged, "it is the " + name_of(contents->label.key), {}};
  return record;
}

void erase_state(change_list& changes, const state_entry& entry) {
  for (std::uint64_t part = 0; part < parts_of(entry); ++part)
    changes.erase(family_of(entry.key), part_key(entry.key, part));
  changes.erase(family::state_index, keys::of_state(entry.key));
}

result<std::vector<state_entry>> entries_of_sessions(database::impl& db) { return entries(db, keys::of_number(1), {}); }
result<std::vector<state_entry>> entries_of_session(database::impl& db, session_uid uid) {
  return entries(db, keys::of_number(uid), keys::after_all(keys::of_number(uid)));
}
result<std::vector<state_entry>> entries_of_prefixes(database::impl& db) { return entries(db, {}, keys::of_number(1)); }

}  // namespace skein::storage
