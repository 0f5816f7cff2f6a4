#pragma once
#include <algorithm>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "actors/persistence/sessions/session_tree.hpp"
#include "actors/persistence/sessions/turn_start.hpp"
#include "actors/request/shared/request_hub.hpp"

namespace skein::test {

/// The persistence actor as far as one call sees it: answers each message at once, keeps sessions in memory. A state is
/// the list of tokens that it has swallowed, so that a wrong one shows as wrong text.
class memory_sessions {
 public:
  explicit memory_sessions(persistence::mailbox& inbox) : inbox_(inbox) {}

  /// Answers what has come. True when there was something.
  bool pump(request::request_hub& hub) {
    std::vector<persistence::message_in> messages;
    inbox_.drain(messages);
    std::vector<persistence::reply> replies;
    for (auto& m : messages) std::visit([&](auto& one) { on(one, replies); }, m);
    if (!replies.empty()) hub.dispatch(std::move(replies));
    return !messages.empty();
  }

  /// The tokens themselves are the state.
  [[nodiscard]] static storage::state_buffer state_of(const std::vector<token_id>& tokens) {
    const auto bytes = std::as_bytes(std::span(tokens));
    return std::make_shared<const model::state_value>(model::state_value{{}, {bytes.begin(), bytes.end()}});
  }
  [[nodiscard]] static std::vector<token_id> tokens_of(const storage::state_buffer& state) {
    std::vector<token_id> tokens(state->bytes.size() / sizeof(token_id));
    std::memcpy(tokens.data(), state->bytes.data(), state->bytes.size());
    return tokens;
  }
  [[nodiscard]] const persistence::session_tree* find(const std::string& id) const {
    const auto it = trees.find(id);
    return it == trees.end() ? nullptr : &it->second;
  }
  [[nodiscard]] const persistence::version_record& head(const std::string& id) const {
    return *trees.at(id).find(trees.at(id).record().head);
  }
  /// All tokens from the beginning to a version.
  [[nodiscard]] std::vector<token_id> tokens(const std::string& id, persistence::version_id version) const {
    return trees.at(id).tokens_between(storage::beginning, version);
  }
  /// Those that the state of a version has processed.
  [[nodiscard]] std::vector<token_id> processed(const std::string& id, persistence::version_id version) const {
    auto all = tokens(id, version);
    all.resize(all.size() - lacks.at({trees.at(id).record().uid, version}));
    return all;
  }

  std::map<std::string, persistence::session_tree> trees;
  std::map<persistence::state_key, storage::state_buffer> states;
  std::map<persistence::state_key, std::uint32_t> lacks;  ///< the last tokens of its version that a state does not have
  std::map<persistence::lease_id, persistence::session_opened> leases;
  std::vector<std::string> segments;                ///< of the turns that were committed
  std::vector<persistence::note_running> notes;     ///< of turns that run
  std::vector<persistence::find_prefix> looked_up;  ///< prefixes that were asked for
  std::vector<persistence::state_key> never;        ///< keys that were told not to come
  std::vector<persistence::open_session> opened;    ///< questions that came
  persistence::prefix_found known_prefix;           ///< what find_prefix answers
  persistence::durability durable = persistence::durability::process;
  std::optional<error> refuses_open, refuses_commit;
  int releases = 0;
  bool keeps_states = true;  ///< false: every state is rebuilt from the log
  bool holds_back = false;   ///< commits are answered later: see commit_now

  /// Answers the commits that were held back.
  void commit_now(request::request_hub& hub) {
    std::vector<persistence::reply> replies;
    for (auto& c : std::exchange(held_, {})) commit(c, replies);
    hub.dispatch(std::move(replies));
  }

 private:
  void on(persistence::open_session& q, std::vector<persistence::reply>& replies) {
    opened.push_back(q);
    const auto* tree = find(q.session.id);
    if (refuses_open) return replies.emplace_back(persistence::refused{q.reply, *refuses_open}), void();
    if (tree)
      if (const auto known = tree->with_request_key(q.request_key); known && !goes_on_with(*known, q))
        return replies.emplace_back(persistence::session_replayed{q.reply, *known, durable}), void();
    auto start = persistence::start_turn(tree, q);
    if (!start) return replies.emplace_back(persistence::refused{q.reply, start.error()}), void();
    persistence::session_opened o;
    o.reply = q.reply;
    o.lease = ++last_lease_;
    o.state = start->state;
    o.base = start->base;
    o.number = tree ? tree->record().last_version + 1 : 1;
    o.history_from = start->history_from;
    o.repeats_system = start->repeats_system;
    o.repeats_answer = start->repeats_answer;
    o.unfinished = start->unfinished;
    const auto uid = tree ? tree->record().uid : trees.size() + 1;
    o.key = {uid, o.number};
    const persistence::state_key base{uid, o.base};
    const persistence::state_key broken{uid, o.unfinished ? o.unfinished->id : storage::beginning};
    if (keeps_states && states.contains(broken) && lacks[broken] > 0) {
      o.resume = {broken, states.at(broken), {}, tree->total_tokens(o.base)};
      o.resume.ahead = o.unfinished->tokens.size() - lacks[broken];
    } else if (o.base != storage::beginning && keeps_states && states.contains(base)) {
      o.resume = {base, states.at(base), {}, tree->total_tokens(o.base)};
    } else if (o.base != storage::beginning) {
      o.resume.feed = tree->tokens_between(storage::beginning, o.base);
      o.resume.parts = tree->parts_between(storage::beginning, o.base);
    }
    leases[o.lease] = o;
    by_lease_[o.lease] = q.session;
    initial_[o.lease] = q.initial_state;
    replies.emplace_back(std::move(o));
  }
  /// Tells of turns by their request key, and transcripts.
  void on(persistence::describe_session& q, std::vector<persistence::reply>& replies) {
    const auto* tree = find(q.session.id);
    if (tree && q.transcript) {
      auto path = tree->path(q.version.value_or(tree->record().head));
      persistence::session_description found{{tree->record()}, std::move(path)};
      return replies.emplace_back(persistence::answer{q.reply, std::move(found)}), void();
    }
    const auto turn = tree ? tree->with_request_key(q.turn) : nullptr;
    if (!turn)
      return replies.emplace_back(persistence::refused{q.reply, {error_kind::not_found, "no turn", ""}}), void();
    replies.emplace_back(persistence::answer{q.reply, persistence::session_description{{tree->record()}, {turn}}});
  }
  void on(persistence::commit_turn& c, std::vector<persistence::reply>& replies) {
    if (holds_back) return held_.push_back(std::move(c));
    commit(c, replies);
  }
  void commit(persistence::commit_turn& c, std::vector<persistence::reply>& replies) {
    const auto lease = leases.extract(c.lease);
    if (!lease)
      return replies.emplace_back(persistence::refused{c.reply, {error_kind::conflict, "no lease", ""}}), void();
    if (refuses_commit) return replies.emplace_back(persistence::refused{c.reply, *refuses_commit}), void();
    const auto& key = by_lease_.at(c.lease);
    if (!trees.contains(key.id)) {
      storage::session_record record;
      record.key = key;
      record.initial_state = initial_.at(c.lease);
      record.uid = trees.size() + 1;
      trees.emplace(key.id, persistence::session_tree(record));
    }
    auto& tree = trees.at(key.id);
    lacks[lease.mapped().key] = c.state_lacks;
    c.version.id = lease.mapped().number;
    c.version.parent = lease.mapped().base;
    tree.place(c.version, c.segment);
    segments.push_back(c.segment);
    const auto number = c.version.id;
    tree.add(std::move(c.version), 0);
    replies.emplace_back(persistence::turn_committed{c.reply, number, durable});
  }
  void on(persistence::find_prefix& q, std::vector<persistence::reply>& replies) {
    auto found = known_prefix;
    found.reply = q.reply;
    looked_up.push_back(std::move(q));
    replies.emplace_back(std::move(found));
  }
  void on(persistence::release& r, std::vector<persistence::reply>&) {
    ++releases;
    std::erase_if(leases, [&](const auto& l) {
      return l.first == r.lease || (r.lease == 0 && l.second.reply.number == r.reply.number);
    });
  }
  void on(persistence::note_running& n, std::vector<persistence::reply>&) { notes.push_back(std::move(n)); }
  void on(persistence::state_kept& s, std::vector<persistence::reply>&) {
    s.state ? void(states[s.key] = s.state) : never.push_back(s.key);
  }
  template <typename Other>
  void on(Other&, std::vector<persistence::reply>&) {}

  persistence::mailbox& inbox_;
  std::map<persistence::lease_id, persistence::session_key> by_lease_;
  std::map<persistence::lease_id, std::string> initial_;
  std::vector<persistence::commit_turn> held_;
  persistence::lease_id last_lease_ = 0;
};

}  // namespace skein::test
