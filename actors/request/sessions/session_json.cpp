#include "actors/request/sessions/session_json.hpp"

#include <algorithm>
#include <ctime>
#include <span>

#include "protocol/requests/metadata_fields.hpp"
#include "protocol/responses_api/response_id.hpp"

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

/// Names of the older servers. A session without a state is in the log.
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

/// Upper bounds of everything else that write_version and write_members write, with the longest numbers.
constexpr std::size_t version_frame_bytes = 448, message_frame_bytes = 32, members_frame_bytes = 640;

/// An upper bound of what write_version writes, with the comma.
std::size_t version_bytes(const persistence::version_record& v, bool texts) {
  using protocol::json_bytes;
  std::size_t bytes = version_frame_bytes + json_bytes(v.request_key) + json_bytes(v.finish_reason) +
                      json_bytes(v.stop_reason) + json_bytes(v.template_name);
  if (!texts) return bytes;
  for (const auto& m : v.messages) bytes += message_frame_bytes + json_bytes(m.role) + json_bytes(m.content);
  if (v.messages.empty()) bytes += json_bytes(std::string_view(v.text).substr(0, v.prompt_bytes));
  return bytes + json_bytes(v.reasoning) + json_bytes(v.answer);
}

std::size_t members_bytes(const persistence::session_record& s) {
  using protocol::json_bytes;
  std::size_t bytes = members_frame_bytes + json_bytes(s.key.id) + json_bytes(s.model_identity) +
                      json_bytes(s.initial_state) + json_bytes(s.title);
  for (const auto& [name, value] : s.metadata) bytes += 8 + json_bytes(name) + json_bytes(value);
  return bytes;
}

using versions_span = std::span<const persistence::shared_version>;

/// The last versions whose JSON fits into `bytes_max`.
versions_span last_of(versions_span versions, std::size_t bytes_max) {
  std::size_t first = versions.size(), bytes = 0;
  while (first > 0) {
    bytes += version_bytes(*versions[first - 1], true);
    if (bytes > bytes_max) break;
    --first;
  }
  return versions.subspan(first);
}

/// The first versions after `after` whose JSON, without texts, fits into `bytes_max`; at least one.
versions_span first_of(versions_span versions, persistence::version_id after, std::size_t bytes_max) {
  const auto begin = std::ranges::upper_bound(versions, after, {}, [](const auto& v) { return v->id; });
  versions = versions.subspan(static_cast<std::size_t>(begin - versions.begin()));
  std::size_t count = 0, bytes = 0;
  while (count < versions.size()) {
    bytes += version_bytes(*versions[count], false);
    if (bytes > bytes_max && count > 0) break;
    ++count;
  }
  return versions.first(count);
}

bool more_after(versions_span page, versions_span all) { return !page.empty() && page.back() != all.back(); }

void write_versions(json_writer& out, versions_span versions, bool texts) {
  out.begin_array();
  for (const auto& v : versions) write_version(out, *v, texts);
  out.end_array();
}

error too_long(const persistence::version_record& v, std::size_t bytes_max) {
  return {error_kind::too_large,
          "the transcript of version " + std::to_string(v.id) + " alone is longer than limits.response_bytes_max (" +
              std::to_string(bytes_max) + " bytes); export the session instead",
          ""};
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

std::string session_list_body(const persistence::session_list& list, std::size_t bytes_max) {
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("list").key("data").begin_array();
  const persistence::listed_session* last = nullptr;
  for (const auto& s : list.sessions) {
    if (last && json.size() + members_bytes(s.record) > bytes_max) break;
    out.begin_object();
    write_members(out, s);
    out.end_object();
    last = &s;
  }
  out.end_array();
  const auto id = [&](std::string_view name, const auto* session) {
    out.key(name);
    session ? out.value(session->record.key.id) : out.null();
  };
  id("first_id", list.sessions.empty() ? nullptr : &list.sessions.front());
  id("last_id", last);
  out.key("has_more").value(list.more || (last && last != &list.sessions.back())).end_object();
  return json;
}

result<std::string> session_details_body(const persistence::session_description& d, const told_details& details) {
  std::string json;
  const std::size_t members = members_bytes(d.session.record);
  const std::size_t room = details.bytes_max - std::min(details.bytes_max, members);
  json_writer out(json);
  out.begin_object();
  write_members(out, d.session);
  if (details.transcript) {
    const auto last = last_of(d.versions, room);
    if (last.empty() && !d.versions.empty()) return too_long(*d.versions.back(), details.bytes_max);
    write_versions(out.key("transcript"), last, true);
    out.key("has_more").value(last.size() < d.versions.size());
  }
  if (details.tree) {
    const auto first = first_of(d.versions, details.after, room);
    write_versions(out.key("tree"), first, false);
    out.key("has_more").value(more_after(first, d.versions));
  }
  out.end_object();
  return json;
}

std::string version_list_body(versions_span versions, persistence::version_id after, std::size_t bytes_max) {
  const auto first = first_of(versions, after, bytes_max);
  std::string json;
  json_writer out(json);
  out.begin_object().key("object").value("list");
  write_versions(out.key("data"), first, false);
  out.key("has_more").value(more_after(first, versions)).end_object();
  return json;
}

std::string state_status_body(const persistence::tiers_report& report) {
  const auto in = [&](tier t) {
    return static_cast<std::uint64_t>(std::ranges::count(report.sessions, t, &persistence::listed_session::fastest));
  };
  const std::uint64_t l1 = in(tier::vram), l2 = in(tier::ram);
  std::string json;
  json_writer out(json);
  out.begin_object().key("status").value("success").key("total_sessions").value(report.total);
  out.key("l1_cache_count")
      .value(l1)
      .key("l2_cache_count")
      .value(l2)
      .key("database_count")
      .value(report.total - l1 - l2);
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
