#include "actors/request/sessions/admin_routes.hpp"

#include <charconv>
#include <filesystem>
#include <utility>

#include "actors/request/call/route.hpp"
#include "app/state_reading.hpp"
#include "app/state_report.hpp"
#include "storage/database/database.hpp"

namespace skein::request {
namespace {

namespace fs = std::filesystem;
using cli::state_action;
using cli::state_command;
using persistence::message_in;
using persistence::return_address;
using persistence::tended;

std::optional<state_action> action_named(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(state_action::backup); ++i)
    if (cli::name_of(static_cast<state_action>(i)) == name) return static_cast<state_action>(i);
  return std::nullopt;
}

result<state_command> read_command(const session_routes::route_input& in) {
  const auto action = action_named(in.path.front());
  if (!action) return error{error_kind::not_found, "there is no action " + in.path.front(), ""};
  const auto field = [&](std::string_view name) { return query_field(in.query, name); };
  state_command what;
  what.action = *action;
  what.tenant = field("tenant").value_or(default_tenant);
  what.id = field("id").value_or("");
  what.new_id = field("to").value_or("");
  what.file = field("into").value_or("");
  what.replace = field("replace") == "true";
  what.with_states = field("states") != "false";
  what.json = field("json") == "true";
  if (const auto text = field("version")) {
    std::uint32_t version = 0;
    const auto [end, code] = std::from_chars(text->data(), text->data() + text->size(), version);
    if (code != std::errc() || end != text->data() + text->size())
      return error{error_kind::invalid_argument, "version must be a whole number", "version"};
    what.version = version;
  }
  if (*action == state_action::backup && !what.file.is_absolute())
    return error{error_kind::invalid_argument, "into must be an absolute path", "into"};
  return what;
}

tended outcome_of(const result<void>& ended, std::string output = {}) {
  return {std::move(output), ended ? std::nullopt : std::optional(ended.error())};
}

/// Reads a copy: the store changes meanwhile, and its records and their index must match.
tended look(storage::database& db, state_command what, const std::string& key, const std::stop_token& stop) {
  if (!db.on_disk()) return outcome_of(error{error_kind::unsupported, "this server stores nothing on disk", ""});
  const fs::path copy = cli::looked_at(db.directory().parent_path());
  std::error_code ignored;
  fs::remove_all(copy, ignored);  // a crash may have left one
  result<void> ended = cli::back_up(db, copy);
  std::string output;
  if (ended) {
    what.state_dir = copy;
    ended = cli::read_state(what, key, output, stop);
  }
  fs::remove_all(copy, ignored);
  return outcome_of(ended, std::move(output));
}

message_in message_for(const state_command& what, std::string body, return_address reply) {
  using storage::session_key;
  const session_key named{what.tenant, what.id}, made{what.tenant, what.new_id};
  switch (what.action) {
    case state_action::import_session:
      return persistence::import_session{reply, made, std::move(body), what.replace, true};
    case state_action::remove: return persistence::remove_session{reply, named, false};
    case state_action::fork: return persistence::fork_session{reply, named, made, what.version};
    case state_action::compact:
      return persistence::tend_store{
          reply, [](storage::database& db, const std::stop_token& stop) { return outcome_of(db.compact(stop)); }};
    case state_action::backup:
      return persistence::tend_store{reply, [into = what.file](storage::database& db, const std::stop_token&) {
                                       return outcome_of(cli::back_up(db, into));
                                     }};
    default: break;
  }
  return persistence::tend_store{reply,
                                 [what, key = std::move(body)](storage::database& db, const std::stop_token& stop) {
                                   return look(db, what, key, stop);
                                 }};
}

plain_answer told(const std::optional<error>& trouble, const std::string& output) {
  std::string line = trouble ? std::string(to_string(trouble->kind)) + ' ' + trouble->message : "ok";
  std::ranges::replace(line, '\n', ' ');
  return {200, line + '\n' + output, "application/octet-stream"};
}

}  // namespace

session_question administer(const session_routes::route_input& in) {
  const auto what = read_command(in);
  session_question q;
  q.takes_file = true;
  q.ask = [what](std::string body, return_address reply, const tenant_id&) -> result<message_in> {
    if (!what) return what.error();
    return message_for(*what, std::move(body), reply);
  };
  q.tell = [what](persistence::answer_body& body) {
    if (const auto* work = std::get_if<tended>(&body)) return told(work->trouble, work->output);
    const bool is_named = what->action == state_action::import_session;
    return told(std::nullopt, is_named ? cli::printable(what->new_id) + '\n' : "");
  };
  q.refuse = [](const error& why) { return std::optional(told(why, "")); };
  return q;
}

}  // namespace skein::request
