#include "actors/persistence/keeper/session_queries.hpp"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "actors/persistence/keeper/named_version.hpp"
#include "actors/persistence/keeper/refusals.hpp"

namespace skein::persistence {
namespace {

constexpr std::uint32_t page_max = 1000;          // sessions of one list
constexpr std::uint32_t report_max = 10'000;      // sessions of one report of tiers
constexpr std::size_t version_answer_bytes = 16;  // texts are shared with the session

/// Memory of a session in a list.
std::size_t record_bytes(const session_record& r) { return sizeof(listed_session) + label_bytes(r); }
std::size_t record_bytes(const std::vector<session_record>& records) {
  std::size_t bytes = 0;
  for (const auto& r : records) bytes += record_bytes(r);
  return bytes;
}

/// The number of leading records that fit into `bytes_max`; at least one.
std::size_t fitting(const std::vector<session_record>& records, std::size_t bytes_max) {
  std::size_t count = 0, bytes = 0;
  while (count < records.size()) {
    bytes += record_bytes(records[count]);
    if (bytes > bytes_max && count > 0) break;
    ++count;
  }
  return count;
}

}  // namespace

listed_session session_queries::listed(session_record of) const {
  listed_session out{std::move(of), tier::none, 0};
  const session_record& record = out.record;
  if (record.head == storage::beginning) return out;
  if (const auto key = states_.state_of(record.uid, record.head)) {
    out.fastest = cache_.fastest(*key);
    const auto model = ports_.states->models().find(record.model_identity);
    out.state_bytes = model ? model->state.bytes() : 0;
  }
  return out;
}

void session_queries::handle(list_sessions&& q) {
  const std::uint32_t count = std::clamp<std::uint32_t>(q.count, 1, page_max);
  auto page = sessions_.all(q.tenant, q.after, count + 1);
  if (!page) return replies_.refuse(q.reply, page.error());
  session_list list;
  list.more = page->size() > count;
  if (list.more) page->resize(count);
  if (const std::size_t fit = fitting(*page, q.bytes_max); fit < page->size()) {
    list.more = true;
    page->resize(fit);
  }
  auto memory = room_for(q, 2 * record_bytes(*page));  // as records and as JSON
  if (!memory) return replies_.refuse(q.reply, memory.error());
  for (auto& record : *page) list.sessions.push_back(listed(std::move(record)));
  replies_.deliver(answer{q.reply, std::move(list), std::move(*memory)});
}

void session_queries::handle(tiers_status&& q) {
  auto all = sessions_.all(q.tenant, {}, report_max);
  if (!all) return replies_.refuse(q.reply, all.error());
  for (auto& record : *all) {
    record.metadata = {};
    record.title = {};
  }
  auto memory = room_for(q, record_bytes(*all));
  if (!memory) return replies_.refuse(q.reply, memory.error());
  std::ranges::sort(*all, std::greater{}, &session_record::used_ms);
  tiers_report report;
  for (auto& record : *all) report.sessions.push_back(listed(std::move(record)));
  report.total = report.sessions.size();
  if (report.total == report_max) report.total = std::max(report.total, quota_.of(q.tenant).sessions);
  const auto counts = cache_.count();
  report.vram = counts.vram;
  report.ram = counts.ram;
  report.disk = counts.disk;
  replies_.deliver(answer{q.reply, std::move(report), std::move(*memory)});
}

void session_queries::handle(describe_session&& q) {
  const auto named = find_named(sessions_, q.session);
  if (!named) return replies_.refuse(q.reply, named.error());
  if (!*named) return replies_.refuse(q.reply, unknown(q.session));
  const session_tree& tree = (*named)->tree();
  const version_id version = q.version.value_or(tree.record().head);
  if (!tree.offers(version)) return replies_.refuse(q.reply, unknown(q.session, version));
  session_description description{listed(tree.record()), {}};
  if (!q.turn.empty()) {
    auto v = tree.with_request_key(q.turn);
    if (!v) return replies_.refuse(q.reply, unknown_turn(q.turn));
    description.versions.push_back(std::move(v));
  } else {
    description.versions = q.transcript ? tree.path(version) : tree.all();
  }
  auto memory = room_for(q, version_answer_bytes * description.versions.size());
  if (!memory) return replies_.refuse(q.reply, memory.error());
  replies_.deliver(answer{q.reply, std::move(description), std::move(*memory)});
}

}  // namespace skein::persistence
