#include "actors/persistence/keeper/session_files.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "actors/persistence/keeper/named_version.hpp"
#include "actors/persistence/keeper/refusals.hpp"
#include "base/check.hpp"
#include "base/log/log.hpp"
#include "storage/sessions/session_file.hpp"
#include "storage/states/state_record.hpp"

namespace skein::persistence {

/// A session read from a file.
struct imported_session {
  session_tree tree;
  std::vector<std::pair<version_id, state_buffer>> states;
};

namespace {

/// The memory that reading a file takes beside the file. That of states is counted without a limit: it is bounded by
/// the file, and one file is read at a time. Errors: as size_of_session_file and no_room.
result<std::vector<byte_budget::lease>> room_to_read(const import_session& q) {
  const auto size = storage::size_of_session_file(q.file);
  if (!size) return size.error();
  auto room = room_for(q, size->bytes + size->versions * version_overhead);
  if (!room) return room.error();
  return std::vector{std::move(*room), q.share.lease_anyway(size->state_bytes)};
}

/// Reads and checks a file; returns the session under its new name.
result<imported_session> read_file(std::string_view bytes, bool trusted, const persistence_options& options,
                                   const storage::model_table& models, session_name as, std::int64_t now_ms) {
  const std::string key = trusted ? std::string() : options.sessions.signature_key;
  auto file = storage::read_session_file(bytes, {"", key, options.sessions.file_bytes_max});
  if (!file) return file.error();
  const auto model = models.find(file->session.model_identity);
  if (!model && !file->versions.empty()) return models.unknown("the session", file->session.model_identity);
  for (const auto& v : file->versions)
    if (std::ranges::any_of(v.tokens, [&](token_id t) { return t < 0 || std::cmp_greater_equal(t, model->vocab); }))
      return error{error_kind::bad_file,
                   "session file: version " + std::to_string(v.id) + " has a token outside the model's vocabulary", ""};
  file->session.uid = as.uid;
  file->session.key = std::move(as.key);
  file->session.used_ms = now_ms;
  auto tree = session_tree::restore(std::move(file->session), std::move(file->versions));
  if (!tree) return error{error_kind::bad_file, tree.error().message, ""};
  imported_session in{std::move(*tree), {}};
  for (std::string& record : file->states) {
    auto state = storage::decode_state(record, models);
    if (!state) return error{error_kind::bad_file, "the session file is damaged: " + state.error().message, ""};
    in.states.emplace_back(version_of(state->label.key),
                           std::make_shared<const model::state_value>(std::move(state->state)));
    record = std::string();
  }
  return in;
}

/// Writes the versions ahead of the session from the worker, so that the persistence thread writes only the record.
result<imported_session> staged(result<imported_session> in, storage::database& db) {
  if (!in) return in;
  if (auto ok = storage::stage_versions(db, in->tree.record().uid, in->tree.all()); !ok) return ok.error();
  return in;
}

}  // namespace

void session_files::handle(export_session&& q) {
  const auto named = find_named(sessions_, q.session, q.version);
  if (!named) return replies_.refuse(q.reply, named.error());
  if (!*named) return replies_.refuse(q.reply, unknown(q.session));
  const session_tree& tree = (*named)->tree();
  std::optional<state_key> key;
  const auto model = ports_.states->models().find(tree.record().model_identity);
  if (q.with_state && model) key = states_.state_of(tree.record().uid, tree.record().head);
  state_buffer held = key ? cache_.buffer(*key) : nullptr;
  const storage::state_label label{tree.record().model_identity,
                                   q.session.tenant,
                                   {tree.record().uid, tree.record().head},
                                   tree.record().total_tokens};
  // The state of a broken answer, which has not processed all of it, is left out.
  if (held && cache_.label_of(*key).tokens != label.tokens) held = nullptr, key.reset();

  const std::size_t state_bytes = key ? storage::state_record_bytes(label, model->state, options_.file_type) : 0;
  const std::size_t file_bytes = tree.bytes() + state_bytes;
  auto memory = room_for(q, file_bytes);
  if (!memory) return replies_.refuse(q.reply, memory.error());
  // Beside the file: the record of the state, and the state if it is read from disk. One file is written at a time.
  const std::size_t work_bytes = state_bytes + (key && !held ? model->state.bytes() : 0);
  ports_.runner.run([this, record = tree.record(), all = tree.all(), key, held, label, file_bytes, reply = q.reply,
                     share = q.share, memory = std::move(*memory), work_bytes, states = ports_.states]() -> aftermath {
    const auto work = share.lease_anyway(work_bytes);
    auto bytes = std::make_shared<result<std::string>>(guarded(error_kind::overloaded, [&]() -> result<std::string> {
      std::vector<std::string> state;
      if (held) {
        state.push_back(storage::encode_state(label, held->view(), options_.file_type));
      } else if (key) {
        // An unreadable state is left out: the tokens are enough.
        if (auto stored = states->get(*key); stored && *stored && (*stored)->label.tokens == label.tokens)
          state.push_back(storage::encode_state(label, (*stored)->state.view(), options_.file_type));
      }
      return storage::write_session_file(record, all, state, options_.sessions.signature_key, file_bytes);
    }));
    return [this, bytes, reply, memory] {
      if (!*bytes) return replies_.refuse(reply, bytes->error());
      replies_.deliver(answer{reply, session_bytes{std::move(**bytes)}, memory});
    };
  });
}

void session_files::handle(import_session&& q) {
  auto question = std::make_shared<import_session>(std::move(q));
  const session_name as{log_.new_uid(), question->as};
  ports_.runner.run([this, question, as, db = ports_.db, now_ms = ports_.wall()]() -> aftermath {
    std::vector<byte_budget::lease> room;
    auto in =
        std::make_shared<result<imported_session>>(guarded(error_kind::overloaded, [&]() -> result<imported_session> {
          auto taken = room_to_read(*question);
          if (!taken) return taken.error();
          room = std::move(*taken);
          const auto& models = ports_.states->models();
          return staged(read_file(question->file, question->trusted, options_, models, as, now_ms), *db);
        }));
    question->file = {};
    question->memory.reset();
    return [this, question, as, in, room] {
      auto why = *in ? take_in(*question, std::move(**in)) : result<void>(in->error());
      if (why) return;
      replies_.refuse(question->reply, why.error());
      unstage(as.uid);
    };
  });
}

result<void> session_files::take_in(const import_session& q, imported_session&& in) {
  auto found = sessions_.entry_of(q.as);
  if (!found) return found.error();
  open_entry& entry = **found;
  if (entry.busy()) return session_busy();
  if (entry.tree && !q.replace)
    return error{error_kind::conflict, "session '" + q.as.id + "' already exists; set replace=true to overwrite it",
                 "replace"};
  const session_record& record = in.tree.record();
  if (auto ok = quota_.allows(q.as.tenant, entry.stored, storage::amount_of(record)); !ok) return ok;
  const session_record* const replaced = entry.tree ? &entry.tree->record() : nullptr;
  if (auto ok = log_.commit_staged(record, replaced, ports_.time.now()); !ok) {
    if (replaced)
      log_.disown(record, replaced, entry.tree->all());
    else
      log_.disown(record);
    entry.unsaved = replaced && log_.has_unsaved(entry.uid);
    return ok;
  }
  if (entry.tree) removals_.replace_content(entry);
  entry.hold(std::move(in.tree));
  sessions_.made(entry);
  for (auto& [version, state] : in.states)
    states_.put(entry, {entry.uid, version}, std::move(state), entry.tree->total_tokens(version));
  shelf_.put(entry.tree->record());
  replies_.deliver(answer{q.reply, done{entry.tree->record()}});
  removals_.trim_shelf();
  return {};
}

/// Removes the staged versions of a session that was not committed; if the disk fails, the next start removes them.
void session_files::unstage(session_uid uid) {
  ports_.runner.run([db = ports_.db, uid]() -> aftermath {
    if (!db->failing()) ignore(storage::unstage_versions(*db, uid), "the next start removes them");
    return [] {};
  });
}

}  // namespace skein::persistence
