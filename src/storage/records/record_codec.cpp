#include "storage/records/record_codec.hpp"

#include <algorithm>

namespace skein::storage {
namespace {

// The fields in their order on disk; Record is const for writing.

template <typename Io, typename Record>
void session_fields(Io& io, Record& r) {
  io.number(r.uid);
  io.text(r.key.tenant);
  io.text(r.key.id);
  io.text(r.model_identity);
  io.text(r.initial_state);
  io.number(r.head);
  io.number(r.last_version);
  io.number(r.versions);
  io.number(r.total_tokens);
  io.number(r.log_bytes);
  io.number(r.created_ms);
  io.number(r.used_ms);
  if (io.format() < 2) return;
  io.text(r.title);
  io.list(r.metadata, [](auto& field, auto& entry) {
    field.text(entry.first);
    field.text(entry.second);
  });
  if (io.format() >= 3) io.number(r.made_empty);
}

template <typename Io, typename Record>
void version_fields(Io& io, Record& r) {
  io.number(r.id);
  io.number(r.parent);
  io.number(r.created_ms);
  io.tokens(r.tokens);
  io.number(r.prompt_tokens);
  io.number(r.total_tokens);
  io.text(r.text);
  io.number(r.prompt_bytes);
  io.number(r.segment_bytes);
  io.raw(r.history);
  io.list(r.messages, [](auto& field, auto& m) {
    field.text(m.role);
    field.text(m.content);
  });
  io.text(r.reasoning);
  io.text(r.answer);
  io.text(r.finish_reason);
  io.text(r.stop_reason);
  io.text(r.template_name);
  io.text(r.sampling);
  io.text(r.request_key);
  std::uint32_t marks = (r.unfinished ? 1u : 0u) | (r.deleted ? 2u : 0u);
  io.number(marks);
  if constexpr (!std::is_const_v<Record>) {
    r.unfinished = (marks & 1) != 0;
    r.deleted = (marks & 2) != 0;
    if (marks > 3) io.fault("a version has unknown flags");
  }
}

template <typename Io, typename Entry>
void entry_fields(Io& io, Entry& e) {
  io.number(e.key.owner);
  io.number(e.key.number);
  io.number(e.bytes);
  io.number(e.used_ms);
  io.number(e.complete);
  if (e.key.owner != 0) return;
  io.text(e.tenant);
  io.text(e.initial_state);
  io.tokens(e.tokens);
}

/// Decodes a record that belongs to a session.
template <typename Record, typename Fields>
result<Record> decode_owned(std::string_view bytes, record_kind kind, session_uid owner, Fields&& fields) {
  auto in = record_reader::open(bytes, kind);
  if (!in) return in.error();
  session_uid of = 0;
  in->number(of);
  if (of != owner) in->fault("it belongs to session number " + std::to_string(of));
  Record record;
  fields(*in, record);
  if (const auto whole = in->end(); !whole) return whole.error();
  return record;
}

/// The bytes of a record whose fields have been read.
std::string_view up_to(std::string_view bytes, const record_reader& fields) {
  return bytes.substr(0, bytes.size() - fields.rest().size() + sizeof(std::uint64_t));
}

}  // namespace

void write_fields(record_writer& out, const session_record& record) { session_fields(out, record); }
void write_fields(record_writer& out, const version_record& record) { version_fields(out, record); }

void size_session_fields(record_sizer& in) {
  session_record skipped;
  session_fields(in, skipped);
}

void size_version_fields(record_sizer& in) {
  version_record skipped;
  version_fields(in, skipped);
}

void read_fields(record_reader& in, session_record& r) {
  session_fields(in, r);
  if (in.faulty()) return;
  if (r.key.id.empty() || r.key.id.size() > session_id_bytes_max) in.fault("the session's name is empty or too long");
  if (r.head > r.last_version) in.fault("the head is beyond the last version");
  if (r.versions > r.last_version) in.fault("there are more versions than version numbers");
}

void read_fields(record_reader& in, version_record& r) {
  version_fields(in, r);
  if (in.faulty()) return;
  if (r.id == beginning || r.parent >= r.id) in.fault("the version's number is not above its parent's");
  if (r.prompt_tokens > r.tokens.size()) in.fault("the prompt has more tokens than the version");
  if (r.tokens.size() > r.total_tokens) in.fault("the version has more tokens than the session");
  if (r.prompt_bytes > r.text.size()) in.fault("the prompt is longer than the text");
}

namespace {

/// Reads a stored session. A session file has the same fields; check_labels limits them.
void read_stored(record_reader& in, session_record& r) {
  read_fields(in, r);
  if (in.faulty()) return;
  if (r.title.size() > session_title_bytes_max) in.fault("the title is too long");
  if (r.metadata.size() > metadata_pairs_max) in.fault("there are too many metadata pairs");
}

}  // namespace

/// In format 2, which earlier programs read, unless the session needs format 3.
std::string encode_session(const session_record& record) {
  record_writer out(record_kind::session, record.made_empty ? 3 : 2);
  session_fields(out, record);
  return std::move(out).sealed();
}

result<session_record> decode_session(std::string_view bytes) {
  auto in = record_reader::open(bytes, record_kind::session);
  if (!in) return in.error();
  session_record record;
  read_stored(*in, record);
  if (const auto whole = in->end(); !whole) return whole.error();
  return record;
}

std::string mark_of(record_kind kind) { return record_writer(kind).bytes().substr(0, 4); }

std::optional<found_session> session_at(std::string_view bytes) {
  auto in = record_reader::unsealed(bytes, record_kind::session);
  found_session found;
  read_stored(in, found.session);
  if (in.faulty()) return {};
  found.whole = decode_session(up_to(bytes, in)).has_value();
  return found;
}

std::optional<found_version> version_at(std::string_view bytes) {
  auto in = record_reader::unsealed(bytes, record_kind::version);
  found_version found;
  in.number(found.owner);
  version_record skipped;
  read_fields(in, skipped);
  if (in.faulty()) return {};
  auto version = decode_version(up_to(bytes, in), found.owner);
  if (!version) return {};
  found.version = std::move(*version);
  return found;
}

std::string encode_version(session_uid owner, const version_record& record) {
  record_writer out(record_kind::version);
  out.number(owner);
  version_fields(out, record);
  return std::move(out).sealed();
}

result<version_record> decode_version(std::string_view bytes, session_uid owner) {
  return decode_owned<version_record>(bytes, record_kind::version, owner,
                                      [](record_reader& in, version_record& r) { read_fields(in, r); });
}

std::string encode_kept(session_uid owner, const version_record& record) {
  record_writer out(record_kind::kept_version);
  out.number(owner);
  version_fields(out, record);
  return std::move(out).sealed();
}

bool is_kept(std::string_view version) { return version.starts_with(mark_of(record_kind::kept_version)); }

result<version_record> decode_any_version(std::string_view bytes, session_uid owner) {
  if (!is_kept(bytes)) return decode_version(bytes, owner);
  return decode_owned<version_record>(bytes, record_kind::kept_version, owner,
                                      [](record_reader& in, version_record& r) { read_fields(in, r); });
}

std::string encode_running(session_uid owner, const running_turn& turn) {
  record_writer out(record_kind::running);
  out.number(owner);
  version_fields(out, turn.so_far);
  return std::move(out).sealed();
}

result<running_turn> decode_running(std::string_view bytes, session_uid owner) {
  return decode_owned<running_turn>(bytes, record_kind::running, owner,
                                    [](record_reader& in, running_turn& t) { version_fields(in, t.so_far); });
}

std::string encode_entry(const state_entry& entry) {
  record_writer out(entry.key.owner == 0 ? record_kind::prefix_entry : record_kind::state_entry);
  entry_fields(out, entry);
  return std::move(out).sealed();
}

result<state_entry> decode_entry(std::string_view bytes, const state_key& key) {
  auto in = record_reader::open(bytes, key.owner == 0 ? record_kind::prefix_entry : record_kind::state_entry);
  if (!in) return in.error();
  state_entry entry;
  entry_fields(*in, entry);
  if (!in->faulty() && entry.key != key) in->fault("it is the entry of another state");
  if (const auto whole = in->end(); !whole) return whole.error();
  return entry;
}

std::string encode_shares(session_uid borrower, const std::vector<state_key>& states) {
  record_writer out(record_kind::state_shares);
  out.number(borrower);
  out.list(states, [](record_writer& io, const state_key& key) {
    io.number(key.owner);
    io.number(key.number);
  });
  return std::move(out).sealed();
}

result<std::vector<state_key>> decode_shares(std::string_view bytes, session_uid borrower) {
  const auto fields = [](record_reader& in, std::vector<state_key>& states) {
    in.list(states, [](record_reader& io, state_key& key) {
      io.number(key.owner);
      io.number(key.number);
      if (!io.faulty() && (key.owner == 0 || !key)) io.fault("a shared state has no name");
    });
  };
  return decode_owned<std::vector<state_key>>(bytes, record_kind::state_shares, borrower, fields);
}

result<version_place> decode_place(std::string_view bytes, session_uid owner) {
  auto in = record_reader::open(bytes, is_kept(bytes) ? record_kind::kept_version : record_kind::version);
  if (!in) return in.error();
  session_uid of = 0;
  version_place place;
  in->number(of);
  in->number(place.id);
  in->number(place.parent);
  if (of != owner || place.id == beginning || place.parent >= place.id)
    in->fault("it is not a version of session number " + std::to_string(owner));
  if (in->faulty()) return in->end().error();
  return place;
}

namespace {

/// Consecutive version numbers, so that long ranges of deleted versions take few bytes.
struct run {
  version_id gap = 0, length = 0;  ///< gap: from the end of the previous run
};

std::vector<run> runs_of(const std::vector<version_id>& ascending) {
  std::vector<run> runs;
  version_id next = 0;
  for (const version_id v : ascending) {
    if (runs.empty() || v != next) runs.push_back({v - next, 0});
    ++runs.back().length;
    next = v + 1;
  }
  return runs;
}

}  // namespace

std::string encode_origin(session_uid fork, const fork_origin& origin) {
  record_writer out(record_kind::fork_origin);
  out.number(fork);
  out.number(origin.owner);
  out.number(origin.last);
  out.number(origin.shown);
  out.list(runs_of(origin.deleted), [](record_writer& io, const run& r) {
    io.number(r.gap);
    io.number(r.length);
  });
  return std::move(out).sealed();
}

namespace {

/// Returns the deleted versions as runs: expanded they may take gigabytes, so only for a record with a checksum.
std::vector<run> read_origin_runs(record_reader& in, fork_origin& origin) {
  in.number(origin.owner);
  in.number(origin.last);
  in.number(origin.shown);
  std::vector<run> runs;
  in.list(runs, [](record_reader& io, run& r) {
    io.number(r.gap);
    io.number(r.length);
  });
  if (in.faulty()) return runs;
  if (origin.owner == 0) in.fault("the fork has no origin");
  if (origin.last == beginning || origin.shown > origin.last)
    in.fault("the last shared version is missing or beyond the last kept one");
  std::uint64_t next = 0;
  for (const run& r : runs) {
    const std::uint64_t first = next + r.gap;
    next = first + r.length;
    if (first == beginning || next > std::uint64_t{origin.shown} + 1)
      in.fault("a deleted version is beyond the last shared one");
    if (in.faulty()) break;
  }
  return runs;
}

void read_origin(record_reader& in, fork_origin& origin) {
  const std::vector<run> runs = read_origin_runs(in, origin);
  if (in.faulty()) return;
  version_id next = 0;
  for (const run& r : runs) {
    next += r.gap;
    for (version_id i = 0; i < r.length; ++i) origin.deleted.push_back(next++);
  }
}

}  // namespace

result<fork_origin> decode_origin(std::string_view bytes, session_uid fork) {
  return decode_owned<fork_origin>(bytes, record_kind::fork_origin, fork, read_origin);
}

std::optional<found_origin> origin_at(std::string_view bytes) {
  auto in = record_reader::unsealed(bytes, record_kind::fork_origin);
  found_origin found;
  in.number(found.fork);
  fork_origin skipped;
  (void)read_origin_runs(in, skipped);
  if (in.faulty()) return {};
  auto origin = decode_origin(up_to(bytes, in), found.fork);
  if (!origin) return {};
  found.origin = std::move(*origin);
  return found;
}

std::string encode_number(record_kind kind, std::uint64_t number) {
  record_writer out(kind);
  out.number(number);
  return std::move(out).sealed();
}

result<std::uint64_t> decode_number(std::string_view bytes, record_kind kind) {
  auto in = record_reader::open(bytes, kind);
  if (!in) return in.error();
  std::uint64_t number = 0;
  in->number(number);
  if (const auto whole = in->end(); !whole) return whole.error();
  return number;
}

std::string encode_set_aside(const set_aside_record& what) {
  record_writer out(record_kind::set_aside);
  out.text(what.reason);
  out.number(what.at_ms);
  out.text(what.record);
  return std::move(out).sealed();
}

result<set_aside_record> decode_set_aside(std::string_view bytes) {
  auto in = record_reader::open(bytes, record_kind::set_aside);
  if (!in) return in.error();
  set_aside_record what;
  in->text(what.reason);
  in->number(what.at_ms);
  in->text(what.record);
  if (const auto whole = in->end(); !whole) return whole.error();
  return what;
}

}  // namespace skein::storage
