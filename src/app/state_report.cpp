#include "app/state_report.hpp"

#include <algorithm>
#include <ctime>

#include "base/log/control_character.hpp"
#include "base/utf8.hpp"
#include "protocol/json/json_writer.hpp"

namespace skein::cli {
namespace {

using storage::session_record;
using storage::version_id;
using storage::version_record;

/// "2026-11-21T20:18:00Z"; empty for a time outside the calendar.
std::string utc(std::int64_t unix_ms) {
  const std::time_t seconds = unix_ms / 1000;
  std::tm parts{};
  char text[32];
  if (!gmtime_r(&seconds, &parts) || std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts) == 0) return {};
  return text;
}

bool has_state(std::span<const storage::state_key> stored, version_id version) {
  return std::ranges::find(stored, version, storage::version_of) != stored.end();
}

void write(protocol::json_writer& json, const session_record& s) {
  json.key("id").value(s.key.id).key("tenant").value(s.key.tenant).key("model").value(s.model_identity);
  json.key("initial_state").value(s.initial_state).key("head").value(s.head).key("versions").value(s.versions);
  json.key("tokens").value(s.total_tokens).key("log_bytes").value(s.log_bytes);
  json.key("created").value(utc(s.created_ms)).key("used").value(utc(s.used_ms));
}

std::string line(const std::string& name, const std::string& value) {
  return name + std::string(name.size() < 16 ? 16 - name.size() : 1, ' ') + value + '\n';
}

}  // namespace

std::string printable(std::string_view name) {
  std::string shown;
  while (!name.empty()) {
    const utf8_head head = first_character(name);
    const std::string_view character = name.substr(0, head.bytes);
    name.remove_prefix(head.bytes);
    const bool is_shown = head.is_character() && !control_character(character);
    shown += is_shown ? character : "?";
  }
  return shown;
}

std::string sessions_text(std::span<const session_record> sessions) {
  std::string text;
  for (const auto& s : sessions)
    text += printable(s.key.id) + '\t' + std::to_string(s.versions) + " versions\t" + std::to_string(s.total_tokens) +
            " tokens\tused " + utc(s.used_ms) + '\n';
  return text;
}

std::string amounts_text(const storage::tenant_amounts& amounts) {
  std::string text;
  for (const auto& [tenant, amount] : amounts)
    text += "tenant " + printable(tenant) + ": " + std::to_string(amount.sessions) + " sessions, " +
            std::to_string(amount.versions) + " versions, " + std::to_string(amount.bytes) + " bytes\n";
  return text;
}

std::string sessions_json(std::span<const session_record> sessions) {
  std::string text;
  protocol::json_writer json(text);
  json.begin_array();
  for (const auto& s : sessions) {
    json.begin_object();
    write(json, s);
    json.end_object();
  }
  json.end_array();
  return text + '\n';
}

std::string session_text(const session_record& s, std::span<const version_record> versions,
                         std::span<const storage::state_key> stored) {
  std::string text = line("id", printable(s.key.id)) + line("tenant", printable(s.key.tenant)) +
                     line("model", s.model_identity) + line("initial_state", s.initial_state) +
                     line("head", std::to_string(s.head)) + line("versions", std::to_string(s.versions)) +
                     line("tokens", std::to_string(s.total_tokens)) + line("log_bytes", std::to_string(s.log_bytes)) +
                     line("created", utc(s.created_ms)) + line("used", utc(s.used_ms));
  for (const auto& v : versions)
    text += line("version " + std::to_string(v.id),
                 "after " + std::to_string(v.parent) + ", " + std::to_string(v.prompt_tokens) + " + " +
                     std::to_string(v.tokens.size() - v.prompt_tokens) + " tokens, " + utc(v.created_ms) +
                     (v.unfinished ? ", unfinished" : "") + (v.deleted ? ", deleted" : "") +
                     (has_state(stored, v.id) ? ", state stored" : ""));
  return text;
}

std::string session_json(const session_record& s, std::span<const version_record> versions,
                         std::span<const storage::state_key> stored) {
  std::string text;
  protocol::json_writer json(text);
  json.begin_object();
  write(json, s);
  json.key("tree").begin_array();
  for (const auto& v : versions) {
    json.begin_object().key("version").value(v.id).key("parent").value(v.parent);
    json.key("prompt_tokens").value(v.prompt_tokens).key("tokens").value(v.tokens.size());
    json.key("total_tokens").value(v.total_tokens).key("created").value(utc(v.created_ms));
    json.key("finish_reason").value(v.finish_reason).key("unfinished").value(v.unfinished);
    json.key("deleted").value(v.deleted).key("state_stored").value(has_state(stored, v.id)).end_object();
  }
  json.end_array().end_object();
  return text + '\n';
}

std::string verification_text(const storage::verification& found) {
  std::string text =
      line("sessions", std::to_string(found.sessions)) + line("versions", std::to_string(found.versions)) +
      line("running", std::to_string(found.running)) + line("states", std::to_string(found.states)) +
      line("prefixes", std::to_string(found.prefixes)) + line("state_bytes", std::to_string(found.state_bytes)) +
      line("set_aside", std::to_string(found.set_aside)) + line("damaged", std::to_string(found.damaged_count));
  for (const auto& one : found.damaged) text += printable(one.record) + ": " + printable(one.why) + '\n';
  return text;
}

std::string verification_json(const storage::verification& found) {
  std::string text;
  protocol::json_writer json(text);
  json.begin_object().key("sessions").value(found.sessions).key("versions").value(found.versions);
  json.key("running").value(found.running).key("states").value(found.states).key("prefixes").value(found.prefixes);
  json.key("state_bytes").value(found.state_bytes).key("set_aside").value(found.set_aside);
  json.key("damaged").value(found.damaged_count).key("findings").begin_array();
  for (const auto& one : found.damaged)
    json.begin_object().key("record").value(one.record).key("why").value(one.why).end_object();
  json.end_array().end_object();
  return text + '\n';
}

std::string repair_text(const storage::repair_report& report) {
  const auto list = [](const std::vector<storage::repair_report::finding>& all) {
    std::string lines;
    for (const auto& one : all) lines += "  " + printable(one.what) + ": " + printable(one.why) + '\n';
    return lines;
  };
  std::string text;
  if (!report.trouble.empty()) text += line("does not open", printable(report.trouble));
  text += line("sessions", std::to_string(report.sessions)) + line("versions", std::to_string(report.versions)) +
          line("running", std::to_string(report.running)) + line("states", std::to_string(report.states)) +
          line("prefixes", std::to_string(report.prefixes)) + line("set_aside", std::to_string(report.set_aside)) +
          line("damaged_files", std::to_string(report.files.size())) + list(report.files) +
          line("lost", std::to_string(report.lost_count)) + list(report.lost);
  if (!report.aside.empty()) text += line("old_database", report.aside.string());
  if (report.sound()) text += "the database is sound; nothing was changed\n";
  return text;
}

std::string repair_json(const storage::repair_report& report) {
  std::string text;
  protocol::json_writer json(text);
  const auto list = [&](const char* name, const std::vector<storage::repair_report::finding>& all) {
    json.key(name).begin_array();
    for (const auto& one : all) json.begin_object().key("what").value(one.what).key("why").value(one.why).end_object();
    json.end_array();
  };
  json.begin_object().key("trouble").value(report.trouble).key("sessions").value(report.sessions);
  json.key("versions").value(report.versions).key("running").value(report.running).key("states").value(report.states);
  json.key("prefixes").value(report.prefixes).key("set_aside").value(report.set_aside);
  list("damaged_files", report.files);
  json.key("lost").value(report.lost_count);
  list("findings", report.lost);
  json.key("old_database").value(report.aside.string()).key("sound").value(report.sound()).end_object();
  return text + '\n';
}

}  // namespace skein::cli
