// Sessions as files. Reading and writing them is a job; what is in a file is believed only as far as it was checked.
#include <algorithm>
#include <utility>

#include "actors/persistence/session_keeper.hpp"
#include "base/check.hpp"
#include "base/log.hpp"
#include "storage/session_file.hpp"

namespace skein::persistence {
namespace {

/// A session that came as a file, checked.
struct imported {
  storage::session_file file;  // without its states
  struct version_state {
    version_id version = 0;
    state_buffer state;
  };
  std::vector<version_state> states;
};

result<imported> read_file(std::string_view bytes, bool trusted, const persistence_options& options,
                           const storage::model_table& models) {
  const std::string key = trusted ? std::string() : options.signature_key;
  auto file = storage::read_session_file(bytes, {"", key, options.file_bytes_max});
  if (!file) return file.error();
  const auto model = models.find(file->session.model_identity);
  if (!model) return models.unknown("the session", file->session.model_identity);
  for (const auto& v : file->versions)
    if (std::ranges::any_of(v.tokens, [&](token_id t) { return t < 0 || std::cmp_greater_equal(t, model->vocab); }))
      return error{error_kind::bad_file,
                   "version " + std::to_string(v.id) + " of the session file has a token that the model does not know",
                   ""};
  imported in;
  for (const std::string& record : std::exchange(file->states, {})) {
    auto state = storage::decode_state(record, models);
    if (!state) return error{error_kind::bad_file, "the session file is damaged: " + state.error().message, ""};
    in.states.push_back(
        {version_of(state->label.key), std::make_shared<const std::vector<float>>(std::move(state->state))});
  }
  in.file = std::move(*file);
  return in;
}

/// Also that there is no memory for a file is an answer.
template <typename Work>
auto guarded(Work work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& trouble) {
    return error{error_kind::overloaded, trouble.what(), ""};
  }
}

}  // namespace

void session_keeper::handle(export_session&& q) {
  auto found = entry_of(q.session);
  if (!found) return refuse(q.reply, found.error());
  if (!(*found)->tree || (*found)->provisional)
    return refuse(q.reply, {error_kind::not_found, "there is no session '" + q.session.id + "'", "session_id"});
  const session_tree& tree = *(*found)->tree;
  auto file = std::make_shared<storage::session_file>();
  file->session = tree.record();
  for (const auto& [id, v] : tree.versions()) file->versions.push_back(v);
  std::optional<state_key> key;
  const auto model = ports_.states->models().find(tree.record().model_identity);
  if (q.with_state && model) key = state_of(tree.record().uid, tree.record().head);
  const state_buffer held = key ? tiers_.cache().buffer(*key) : nullptr;
  const storage::state_label label{tree.record().model_identity,
                                   q.session.tenant,
                                   {tree.record().uid, tree.record().head},
                                   tree.record().total_tokens};
  ports_.runner.run([this, file, key, held, label, model, reply = q.reply, states = ports_.states]() -> aftermath {
    auto bytes = std::make_shared<result<std::string>>(guarded([&]() -> result<std::string> {
      if (held) {
        file->states.push_back(storage::encode_state(label, model->layout, *held, options_.file_type));
      } else if (key) {
        // What cannot be read is left out: the tokens are enough.
        if (auto stored = states->get(*key); stored && *stored)
          file->states.push_back(storage::encode_state(label, model->layout, (*stored)->state, options_.file_type));
      }
      return storage::write_session_file(*file, options_.signature_key);
    }));
    return [this, bytes, reply] {
      if (!*bytes) return refuse(reply, bytes->error());
      deliver(answer{reply, session_bytes{std::move(**bytes)}});
    };
  });
}

void session_keeper::handle(import_session&& q) {
  auto question = std::make_shared<import_session>(std::move(q));
  ports_.runner.run([this, question]() -> aftermath {
    auto in = std::make_shared<result<imported>>(
        guarded([&] { return read_file(question->file, question->trusted, options_, ports_.states->models()); }));
    question->file = {};
    return [this, question, in] {
      if (!*in) return refuse(question->reply, in->error());
      auto& [file, states] = **in;
      std::vector<std::pair<version_id, state_buffer>> kept;
      for (auto& s : states) kept.emplace_back(s.version, std::move(s.state));
      take_in(*question, std::move(file), std::move(kept));
    };
  });
}

void session_keeper::take_in(const import_session& q, storage::session_file&& read,
                             std::vector<std::pair<version_id, state_buffer>> states) {
  auto found = entry_of(q.as);
  if (!found) return refuse(q.reply, found.error());
  open_entry& entry = **found;
  if (entry.busy()) return refuse(q.reply, {error_kind::conflict, "session busy", "session_id"});
  if (entry.tree && !q.replace)
    return refuse(q.reply, {error_kind::conflict, "there is a session '" + q.as.id + "' already", "as"});
  auto file = storage::readdressed(std::move(read), log_.new_uid(), q.as);
  file.session.used_ms = ports_.wall();
  auto tree = session_tree::restore(file.session, file.versions);
  if (!tree) return refuse(q.reply, {error_kind::bad_file, tree.error().message, ""});
  if (auto ok = log_.commit_to_disk(file.session, file.versions, ports_.time.now()); !ok) {
    log_.disown(file.session, entry.tree ? &entry.tree->record() : nullptr);
    entry.unsaved = entry.tree && log_.has_unsaved(entry.uid);
    return refuse(q.reply, ok.error());
  }
  if (entry.tree) replace_content(entry);
  entry.uid = file.session.uid;
  entry.tree = std::move(*tree);
  entry.in_log = true;
  book_.numbered(entry);
  book_.recount(entry);
  for (auto& [version, state] : states)
    put_state(entry, {entry.uid, version}, std::move(state), entry.tree->total_tokens(version));
  shelve(entry);
  deliver(answer{q.reply, done{entry.tree->record()}});
  trim_shelf();
}

/// Another session has this one's name now: what is left of this one goes, behind the states that are being written.
void session_keeper::replace_content(open_entry& entry) {
  session_record old = entry.tree->record();
  forget_states(old.uid);
  ++sessions_removed_;
  unshelve(old.uid);
  book_.forget_content(entry);
  old.key.id.clear();  // nobody's name, so that the new one's record stays
  ports_.runner.run(
      [this, old]() -> aftermath { return [this, old] { ignore(erase(old), "nothing finds it any more"); }; });
}

}  // namespace skein::persistence
