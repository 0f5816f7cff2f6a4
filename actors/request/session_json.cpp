#include "actors/request/session_json.hpp"

#include <ctime>
#include <span>

#include "protocol/metadata_fields.hpp"
#include "protocol/response_id.hpp"

namespace skein::request {
namespace {

using persistence::tier;
using protocol::json_writer;

std::string_view to_string(tier t) {
  switch (t) {
    case tier::vram: return "vram";
    case tier::ram: return "ram";
    case tier::disk: return "disk";
    case tier::none: break;
  }
  return "none";
}

/// As the older servers name them; what has no state is in the log.
std::string_view level_of(tier t) {
  switch (t) {
    case tier::vram: return "L1 (VRAM)";
    case tier::ram: return "L2 (RAM)";
    case tier::disk:
    case tier::none: break;
  }
  return "Database (Disk)";
}

std::int64_t seconds(std::int64_t ms) { return ms / 1000; }

void write_members(json_writer& out, const persistence::session_record& s) {
  out.key("id").value(s.key.id).key("object").value("session");
  out.key("created_at").value(seconds(s.created_ms)).key("used_at").value(seconds(s.used_ms));
  out.key("head").value(s.head).key("last_version").value(s.last_version).key("versions").value(s.versions);
  out.key("total_tokens").value(s.total_tokens).key("log_bytes").value(s.log_bytes);
  out.key("model_identity").value(s.model_identity).key("initial_state");
  s.initial_state.empty() ? out.null() : out.value(s.initial_state);
  out.key("title");
  s.title.empty() ? out.null() : out.value(s.title);
  protocol::write_metadata(out.key("metadata"), s.metadata);
}

void write_members(json_writer& out, const persistence::listed_session& s) {
  write_members(out, s.record);
  out.key("tier").value(to_string(s.fastest)).key("state_bytes").value(s.state_bytes);
}

void write_version(json_writer& out, const persistence::version_record& v, bool texts) {
  out.begin_object().key("version").value(v.id).key("object").value("session.version");
  out.key("parent").value(v.parent).key("created_at").value(seconds(v.created_ms));
  out.key("prompt_tokens").value(v.prompt_tokens).key("total_tokens").value(v.total_tokens);
  if (protocol::conversation_of(v.request_key)) out.key("response_id").value(v.request_key);
  out.key("finish_reason").value(v.finish_reason);
  if (!v.stop_reason.empty()) out.key("stop_reason").value(v.stop_reason);
  if (v.deleted) out.key("deleted").value(true);
  out.key("unfinished").value(v.unfinished).key("template").value(v.template_name);
  if (texts) {
    out.key("messages").begin_array();
    for (const auto& m : v.messages)
      out.begin_object().key("role").value(m.role).key("content").value(m.content).end_object();
    out.end_array();
    if (v.messages.empty()) out.key("prompt").value(std::string_view(v.text).substr(0, v.prompt_bytes));
    if (!v.reasoning.empty()) out.key("reasoning_content").value(v.reasoning);
    out.key("answer").value(v.answer);
  }
  out.end_object();
}

std::size_t text_bytes(const persistence::version_record& v) {
  std::size_t bytes = v.prompt_bytes + v.reasoning.size() + v.answer.size();
  for (const auto& m : v.messages) bytes += m.content.size();
  return bytes;
}

/// The last of them that go into so many bytes of text; one does in any case.
std::span<const persistence::shared_version> last_of(std::span<const persistence::shared_version> versions,
                                                     std::size_t bytes_max) {
  std::size_t first = versions.size(), bytes = 0;
  while (first > 0) {
    bytes += text_bytes(*versions[first - 1]);
    if (bytes > bytes_max && first < versions.size()) break;
    --first;
  }
  return versions.subspan(first);
}

void write_versions(json_writer& out, std::span<const persistence::shared_version> versions, bool texts) {
  out.begin_array();
  for (const auto& v : versions) write_version(out, *v, texts);
  out.end_array();
}

template <typename Session>
std::string body_of(const Session& session) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_members(out, session);
  out.end_object();
  return json;
}

std::string local_time(std::int64_t ms) {
  const std::time_t at = seconds(ms);
  std::tm parts{};
  localtime_r(&at, &parts);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts)};
}

}  // namespace

std::string session_body(const persistence::listed_session& session) { return body_of(session); }
std::string session_body(const persistence::session_record& session) { return body_of(session); }

std::string session_list_body(const persistence::session_list& list) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("list").key("data").begin_array();
  for (const auto& s : list.sessions) {
    out.begin_object();
    write_members(out, s);
    out.end_object();
  }
  out.end_array();
  const auto id = [&](std::string_view name, const auto* session) {
    out.key(name);
    session ? out.value(session->record.key.id) : out.null();
  };
  id("first_id", list.sessions.empty() ? nullptr : &list.sessions.front());
  id("last_id", list.sessions.empty() ? nullptr : &list.sessions.back());
  out.key("has_more").value(list.more).end_object();
  return json;
}

std::string session_details_body(const persistence::session_description& d, const told_details& details) {
  std::string json;
  json_writer out(json);
  out.begin_object();
  write_members(out, d.session);
  if (details.transcript) {
    const auto last = last_of(d.versions, details.transcript_bytes);
    write_versions(out.key("transcript"), last, true);
    out.key("has_more").value(last.size() < d.versions.size());
  }
  if (details.tree) write_versions(out.key("tree"), d.versions, false);
  out.end_object();
  return json;
}

std::string version_list_body(const std::vector<persistence::shared_version>& versions) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("list");
  write_versions(out.key("data"), versions, false);
  out.end_object();
  return json;
}

std::string state_status_body(const persistence::tiers_report& report) {
  std::uint64_t l1 = 0, l2 = 0, l3 = 0;
  for (const auto& s : report.sessions) ++(s.fastest == tier::vram ? l1 : s.fastest == tier::ram ? l2 : l3);
  std::string json;
  json_writer out(json);
  out.begin_object().key("status").value("success").key("total_sessions").value(report.sessions.size());
  out.key("l1_cache_count").value(l1).key("l2_cache_count").value(l2).key("database_count").value(l3);
  out.key("sessions").begin_array();
  for (const auto& s : report.sessions) {
    out.begin_object().key("session_id").value(s.record.key.id).key("cache_level").value(level_of(s.fastest));
    out.key("last_updated").value(local_time(s.record.used_ms));
    out.key("timestamp").value(static_cast<double>(s.record.used_ms) / 1000.0);
    out.key("bytes").value(s.state_bytes).key("tokens").value(s.record.total_tokens).end_object();
  }
  out.end_array().end_object();
  return json;
}

}  // namespace skein::request
