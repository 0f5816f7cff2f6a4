#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <variant>
#include <vector>

#include "actors/byte_share.hpp"
#include "actors/mailbox.hpp"
#include "base/clock.hpp"
#include "base/device_id.hpp"
#include "base/error.hpp"
#include "base/ids.hpp"
#include "engine/prompt_parts.hpp"
#include "storage/records/records.hpp"

namespace skein::storage {
class database;
}

/// All messages to the persistence actor, and all its replies.
namespace skein::persistence {

using storage::durability;
using storage::message;
using storage::session_key;
using storage::session_record;
using storage::shared_version;
using storage::state_buffer;
using storage::state_key;
using storage::version_id;
using storage::version_record;

/// Identifies a request: chosen by the sender, unique on its io thread, repeated in every reply.
using ticket = std::uint64_t;
struct return_address {
  std::uint32_t io_thread = 0;
  ticket number = 0;
};

/// The right to add one version to a session; session_book decides which leases may exist at the same time. Ends with
/// commit_turn or release.
using lease_id = std::uint64_t;

/// A copy of a state that the device is to send: the state after `position` tokens of the submitted prompt.
struct wanted_copy {
  state_key key;
  std::uint32_t position = 0;
};

/// The point from which a sequence resumes. `feed` precedes all new tokens of the request.
struct resume_point {
  state_key key;                             ///< of `state`; empty: the beginning
  state_buffer state;                        ///< null: the beginning, that is zero or the request's tuned state
  std::vector<token_id> feed;                ///< tokens of the session that `state` has not processed
  std::uint64_t cached_tokens = 0;           ///< tokens of the session that `state` has processed
  std::vector<engine::prompt_part> parts{};  ///< of `feed`: for each turn, the client's tokens and the answer
  std::optional<device_id> device{};         ///< had `state` in a slot when this was sent; none: no device had
  std::uint64_t ahead =
      0;  ///< tokens of session_opened::unfinished that `state` has processed too; `feed` is empty then
};

// ---- sessions: a turn is open_session, then commit_turn or release ----

/// How the text of a request relates to what the session holds.
enum class turn_text : std::uint8_t {
  increment,      ///< it continues the session
  chat_messages,  ///< a whole history if it begins with a history of the session; else an increment if it has
                  ///< `only_new`, or repeats the last answer before results of its calls; else a new history
  raw_text,       ///< the same for raw prompts: a history if it begins with one, else an increment
};

/// Starts a turn. Answered by session_opened, session_replayed or refused. Waits for turns that it cannot run beside
/// (the queue is bounded; the configuration may refuse with conflict instead).
struct open_session {
  return_address reply;
  session_key session;
  std::string model;          ///< identity of the model; conflict if the session has a different one
  std::string initial_state;  ///< identity of the tuned state; conflict if the session began with a different one
  turn_text kind = turn_text::increment;
  std::string history;  ///< chat: rendered text of the whole request, without the answer's opening; raw: the prompt
  std::uint64_t system_bytes = 0;  ///< chat: length of the system text at the start of `history`; 0: none
  bool opening_follows = false;    ///< chat: the template's opening of an answer is fed after `history`; if false,
                                   ///< part of `history` must be new, so that there are tokens to feed
  bool only_new = false;           ///< chat: no assistant message, and one user message or results of tools alone
  std::uint64_t answer_at = 0;     ///< chat: where in `history` an answer is that only results of its calls follow
  std::uint64_t answer_bytes = 0;  ///< 0: `history` does not have this form
  std::optional<version_id> from;  ///< continue this version instead of the head; 0: the beginning
  std::string from_key;            ///< continue the turn with this request key instead of a version
  std::optional<version_id> expected_version;  ///< If-Match: conflict unless this is the head
  std::string request_key;                     ///< Idempotency-Key; a committed turn with this key is replayed
  bool continue_unfinished = false;            ///< repeat the last broken answer (or the one with the request key) as
                                               ///< far as it got, then continue it; history is empty
  bool beyond_limit = false;                   ///< with continue_unfinished: also an answer of `from_key` that ended at
                                               ///< its token limit
  bool must_exist = false;                     ///< not_found for an unknown session or version
  steady_time deadline{};                      ///< if the turn is not open by then: refused with timeout
};

/// How a session was found; the header X-Session-State.
enum class session_state : std::uint8_t { fresh, continued, rebuilt };

struct session_opened {
  return_address reply;
  lease_id lease = 0;
  session_state state = session_state::fresh;
  version_id base = storage::beginning;  ///< the version that the turn continues
  version_id number = 0;                 ///< of the new version
  state_key key;                         ///< of the new version's state
  std::uint64_t history_from = 0;        ///< bytes of open_session::history that the base already holds
  bool repeats_system = false;           ///< an increment that begins with the system text that the session began with
  bool repeats_answer = false;           ///< an increment that begins with the base's answer (open_session::answer_at)
  resume_point resume;
  std::optional<version_record> unfinished;  ///< with continue_unfinished: the broken turn so far, not included in
                                             ///< `base` and `resume`
};
/// The turn with this Idempotency-Key was committed before; no lease.
struct session_replayed {
  return_address reply;
  version_record version;
  durability durable = durability::process;
};
/// The field of a conflict names its cause: "session_id" (another turn is running), "expected_version", "model" (the
/// session has another model), "state_name" (it began with another tuned state), "to" or "replace" (the name exists).
struct refused {
  return_address reply;
  error why;
};

/// The tokens of a running answer so far, for the log; best effort, not answered.
struct note_running {
  lease_id lease = 0;
  version_record so_far;
  std::string segment{};  ///< as in commit_turn, up to here; empty: not known
};
/// Ends a turn. Answered by turn_committed once the log holds it with the wanted durability, or by refused if neither
/// disk nor memory can take it. The actor fills in `version.id`, `parent`, `total_tokens` and `history`, and ends the
/// lease.
struct commit_turn {
  return_address reply;
  lease_id lease = 0;
  version_record version;
  std::string segment;  ///< the text that this turn adds to the history as clients resend it: hashed, not stored
  durability wanted = durability::process;
  std::uint32_t state_lacks = 0;  ///< tokens at the end of the version that its state has not processed
};
struct turn_committed {
  return_address reply;
  version_id version = 0;
  durability durable = durability::memory;
};
/// Ends a lease without a version, or cancels a waiting open_session. No effect if neither exists.
struct release {
  return_address reply;  ///< of the open_session
  lease_id lease = 0;    ///< 0: no reply was received yet
};

// ---- prefixes: every route ----

/// Finds the longest prefix of `tokens` that has a state, and the positions at which copies of states are wanted.
/// Answered by prefix_found.
struct find_prefix {
  return_address reply;
  tenant_id tenant = default_tenant;
  std::string model;  ///< identity, as in open_session
  std::string initial_state;
  std::shared_ptr<const std::vector<token_id>> tokens;
  std::uint32_t system_tokens = 0;  ///< end of the system text; 0: none
  std::uint32_t turn_tokens = 0;    ///< end of the last turn, where the opening of the answer begins; 0: none
  std::uint32_t chunk_tokens = 0;   ///< of the model's engine; if not 0, only states at chunk boundaries within
                                    ///< `first_part` are usable
  std::uint32_t first_part = 0;     ///< length of the first prompt; the tokens behind it were fed in another way
};
struct prefix_found {
  return_address reply;
  std::uint32_t position = 0;  ///< tokens that the state has processed, below the number of tokens; 0: none found
  state_key key;
  state_buffer state;
  std::vector<wanted_copy> keep;  ///< positions in `tokens`, ascending, beyond `position`
};

// ---- from the device ----

/// A wanted state, or null if it will never be sent (cancelled, no room). The device sends one for every wanted key.
struct state_kept {
  state_key key;
  state_buffer state;
};
/// A slot in the memory of that device now holds this state, or no longer does.
struct slot_kept {
  state_key key;
  device_id device = 0;
};
struct slot_dropped {
  state_key key;
  device_id device = 0;
};

// ---- administration of sessions; each is answered by one `answer` or by refused ----
// `share`: the budget for the memory of the answer; the request is refused if the answer does not fit.

struct list_sessions {
  return_address reply;
  tenant_id tenant = default_tenant;
  std::string after;
  std::uint32_t count = 20;
  std::size_t bytes_max = static_cast<std::size_t>(-1);  ///< a longer page is cut here, but has at least one session
  byte_share share{};
};
struct describe_session {  ///< with the tree of its versions
  return_address reply;
  session_key session;
  bool transcript = false;  ///< only the path to `version`
  std::optional<version_id> version;
  std::string turn{};  ///< only the version with this request key
  byte_share share{};
};
struct fork_session {
  return_address reply;
  session_key from, to;
  std::optional<version_id> version;  ///< default: the head
};
/// Sets the title and metadata of a session; an absent field keeps its value.
struct label_session {
  return_address reply;
  session_key session;
  std::optional<std::string> title;
  std::optional<storage::session_metadata> metadata;
  bool make = false;  ///< create a missing session; its first turn sets its model
};
struct rollback_session {
  return_address reply;
  session_key session;
  version_id version = 0;
};
/// With a prefix the sessions are removed in pieces. If a turn of one begins meanwhile, or the disk fails, others are
/// gone when this is refused.
struct remove_session {
  return_address reply;
  session_key session;
  bool with_prefix = false;  ///< also every session whose id begins with this id and ':'
  std::string turn{};        ///< only the version with this request key
};
/// A whole session as one file (storage/session_file).
struct export_session {
  return_address reply;
  session_key session;
  bool with_state = true;
  std::optional<version_id> version{};  ///< only the path to it; default: the whole session
  byte_share share{};
};
struct import_session {
  return_address reply;
  session_key as;
  std::string file;
  bool replace = false;
  bool trusted = false;         ///< the sender has write access to the database: no signature needed
  byte_budget::lease memory{};  ///< for the file; released with this message
  byte_share share{};           ///< for the memory that the contents of the file take while it is read
};
/// The result of work on the whole store.
struct tended {
  std::string output;
  std::optional<error> trouble;
};
/// Maintenance work on the whole store: runs on a thread of its own, one at a time, while turns continue. It writes no
/// record and ends soon after a stop request. Answered by tended, or refused as overloaded if too many wait.
struct tend_store {
  return_address reply;
  std::function<tended(storage::database&, const std::stop_token&)> work;
};
/// Reports the number of states in each tier, and the tier of each session's state.
struct tiers_status {
  return_address reply;
  tenant_id tenant = default_tenant;
  byte_share share{};
};

enum class tier : std::uint8_t { vram, ram, disk, none };
struct listed_session {
  session_record record;
  tier fastest = tier::none;  ///< the fastest tier that has the head's state
  std::uint64_t state_bytes = 0;
};
struct session_list {
  std::vector<listed_session> sessions;
  bool more = false;
};
struct session_description {
  listed_session session;
  std::vector<shared_version> versions;  ///< with all their fields
};
/// A tenant with very many sessions gets the first ones by id.
struct tiers_report {
  std::vector<listed_session> sessions;       ///< most recently used first; without titles and metadata
  std::uint32_t vram = 0, ram = 0, disk = 0;  ///< states of sessions in each tier
  std::uint64_t total = 0;                    ///< sessions of the tenant, listed or not
};
struct removed {
  std::uint32_t sessions = 0;
};
struct session_bytes {
  std::string file;
};
struct done {
  session_record session;
};
using answer_body = std::variant<session_list, session_description, tiers_report, removed, session_bytes, tended, done>;
struct answer {
  return_address reply;
  answer_body body;
  byte_budget::lease memory{};
};

/// Writes all dirty data, at most until `deadline`; then the thread ends.
struct shutdown {
  steady_time deadline{};
};

/// A job of the actor's own worker is done. Sent only by the worker.
struct work_done {};

// Moving and destroying a variant takes a table of functions for each operation. These are compiled once, in
// persistence_mailbox.cpp, instead of in every file that sends or receives a message.
struct message_in
    : std::variant<open_session, note_running, commit_turn, release, find_prefix, state_kept, slot_kept, slot_dropped,
                   list_sessions, describe_session, fork_session, label_session, rollback_session, remove_session,
                   export_session, import_session, tend_store, tiers_status, shutdown, work_done> {
  using variant::variant;
  message_in(message_in&&) noexcept;
  message_in& operator=(message_in&&) noexcept;
  ~message_in();
};
using mailbox = bounded_mailbox<message_in>;

struct reply : std::variant<session_opened, session_replayed, refused, turn_committed, prefix_found, answer> {
  using variant::variant;
  reply(reply&&) noexcept;
  reply& operator=(reply&&) noexcept;
  ~reply();
};

/// Receives the replies; implemented by the io threads, and by vectors in tests. Called on the persistence thread; must
/// not block.
class reply_sink {
 public:
  virtual ~reply_sink() = default;
  virtual void deliver(reply&& r) = 0;
};

}  // namespace skein::persistence

extern template class skein::bounded_mailbox<skein::persistence::message_in>;
