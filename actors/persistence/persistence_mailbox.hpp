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
#include "base/error.hpp"
#include "base/ids.hpp"
#include "engine/prompt_parts.hpp"
#include "storage/records.hpp"

namespace skein::storage {
class database;
}

/// Everything the persistence actor can be told, and everything it answers.
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

/// Which conversation a question belongs to: given out by the asker, unique on its io thread, in every answer.
using ticket = std::uint64_t;
struct return_address {
  std::uint32_t io_thread = 0;
  ticket number = 0;
};

/// The right to add one version to a session; who may hold one beside others, session_book says. Ends with commit_turn
/// or release.
using lease_id = std::uint64_t;

/// A copy of a state that somebody wants from the device: after so many tokens of the prompt that is submitted.
struct wanted_copy {
  state_key key;
  std::uint32_t position = 0;
};

/// From where a sequence goes on. `feed` comes before any new tokens of the request.
struct resume_point {
  state_key key;                             ///< of `state`; none: the beginning
  state_buffer state;                        ///< null: the beginning, that is zero or the request's tuned state
  std::vector<token_id> feed;                ///< tokens of the session that this state has not swallowed
  std::uint64_t cached_tokens = 0;           ///< tokens of the session that it has
  std::vector<engine::prompt_part> parts{};  ///< of `feed`: of each turn what the client brought, and the answer
};

// ---- sessions: a turn is open_session, then commit_turn or release ----

/// How the text of a request relates to what the session holds.
enum class turn_text : std::uint8_t {
  increment,      ///< it is what comes next
  chat_messages,  ///< a whole history, if it begins with one that the session has; else, with a single user message and
                  ///< no answer in it, an increment; else a history that starts anew
  raw_text,       ///< likewise for raw prompts: a history where it begins with one, else an increment
};

/// Wants to add a turn. Answered by session_opened, session_replayed or refused. Waits for turns that it cannot run
/// beside (bounded; or refused with conflict where the configuration says so).
struct open_session {
  return_address reply;
  session_key session;
  std::string model;          ///< identity of the model that runs it; another than the session's is a conflict
  std::string initial_state;  ///< identity of the tuned state; another than the session began with is a conflict
  turn_text kind = turn_text::increment;
  std::string history;  ///< rendered text of the whole request, without the opening of the answer (chat), or the
                        ///< prompt (raw)
  std::uint64_t system_bytes = 0;    ///< chat: of `history` that are the system text it begins with; 0: none
  bool opening_follows = false;      ///< chat: the template's opening of an answer is fed after `history`; else
                                     ///< some of it must be new, so that there is something to feed
  bool single_user_message = false;  ///< chat: exactly one user message and no assistant message
  std::optional<version_id> from;    ///< continue this version in place of the head; 0: the beginning
  std::string from_key;              ///< continue the turn with this request key, in place of a version
  std::optional<version_id> expected_version;  ///< If-Match: the head must be this one, else conflict
  std::string request_key;                     ///< Idempotency-Key; a turn that has it already is replayed
  bool continue_unfinished = false;            ///< say the answer that broke last (or that with the request key) once
                                               ///< more, as far as it had come, and go on with it; history is empty
  bool beyond_limit = false;                   ///< with that: also the answer of `from_key` that ended at its limit
  bool must_exist = false;                     ///< not_found for an unknown session or version
  steady_time deadline{};                      ///< not open by then: refused with timeout
};

/// How a session was found; the header X-Session-State.
enum class session_state : std::uint8_t { fresh, continued, rebuilt };

struct session_opened {
  return_address reply;
  lease_id lease = 0;
  session_state state = session_state::fresh;
  version_id base = storage::beginning;  ///< that the turn continues
  version_id number = 0;                 ///< that the new version will have
  state_key key;                         ///< under which the state of the new version will be kept
  std::uint64_t history_from = 0;        ///< bytes of open_session::history that the base holds already
  bool repeats_system = false;           ///< an increment that begins with the system text that the session began with
  resume_point resume;
  std::optional<version_record> unfinished;  ///< with continue_unfinished: what there is of the turn, which `base` and
                                             ///< `resume` do not have
};
/// The turn with this Idempotency-Key was committed before; no lease.
struct session_replayed {
  return_address reply;
  version_record version;
  durability durable = durability::process;
};
/// The field of a conflict says which: "session_id" (another turn runs), "expected_version", "model" (of another
/// model), "state_name" (began with another tuned state), "to" or "as" (exists already).
struct refused {
  return_address reply;
  error why;
};

/// The tokens of a running answer so far, for the log; best effort, not answered.
struct note_running {
  lease_id lease = 0;
  version_record so_far;
  std::string segment{};  ///< as commit_turn's, up to here; empty: not known
};
/// The turn is over. Answered by turn_committed, after the log has it as safely as was asked (or by refused, when
/// neither disk nor memory takes it). `version.id`, `parent`, `total_tokens` and `history` are filled in by the actor,
/// which ends the lease.
struct commit_turn {
  return_address reply;
  lease_id lease = 0;
  version_record version;
  std::string segment;  ///< what this turn adds to the history as a client resends it: hashed, not kept
  durability wanted = durability::process;
};
struct turn_committed {
  return_address reply;
  version_id version = 0;
  durability durable = durability::memory;
};
/// Gives a lease back without a version, or takes back an open_session that still waits. Harmless for others.
struct release {
  return_address reply;  ///< of the open_session
  lease_id lease = 0;    ///< 0: it was not answered yet
};

// ---- prefixes: every route ----

/// The longest prefix of `tokens` whose state is known, and where copies of states are wanted. Answered by
/// prefix_found.
struct find_prefix {
  return_address reply;
  tenant_id tenant = default_tenant;
  std::string model;  ///< identity, as in open_session
  std::string initial_state;
  std::shared_ptr<const std::vector<token_id>> tokens;
  std::uint32_t system_tokens = 0;  ///< where the system text ends; 0: none
  std::uint32_t turn_tokens = 0;    ///< where the last turn ends and the opening of the answer begins; 0: none
  std::uint32_t chunk_tokens = 0;   ///< of the model's engine: then only states between chunks serve, and only those of
  std::uint32_t first_part = 0;     ///< length of the first prompt: what follows was fed another way
};
struct prefix_found {
  return_address reply;
  std::uint32_t position = 0;  ///< tokens that the state has swallowed; 0: none found. Below the number of tokens
  state_key key;
  state_buffer state;
  std::vector<wanted_copy> keep;  ///< positions in `tokens`, ascending, beyond `position`
};

// ---- from the device ----

/// A state that was wanted, or null where it will never come (cancelled, no room): every key is answered once.
struct state_kept {
  state_key key;
  state_buffer state;
};
/// A slot in VRAM holds this state since now, or no more.
struct slot_kept {
  state_key key;
};
struct slot_dropped {
  state_key key;
};

// ---- looking after sessions; each answered by one `answer` or by refused ----
// `share`: of the memory that an answer takes; one that finds no room there is not made, but refused.

struct list_sessions {
  return_address reply;
  tenant_id tenant = default_tenant;
  std::string after;
  std::uint32_t count = 20;
  std::size_t bytes_max = static_cast<std::size_t>(-1);  ///< a longer page ends here, at the earliest behind a session
  byte_share share{};
};
struct describe_session {  ///< with the tree of its versions
  return_address reply;
  session_key session;
  bool transcript = false;  ///< only the path to `version`
  std::optional<version_id> version;
  std::string turn{};  ///< only the version with this request key, whole
  byte_share share{};
};
struct fork_session {
  return_address reply;
  session_key from, to;
  std::optional<version_id> version;  ///< default: the head
};
/// Sets what clients call a session and keep beside it; what is absent stays.
struct label_session {
  return_address reply;
  session_key session;
  std::optional<std::string> title;
  std::optional<storage::session_metadata> metadata;
  bool make = false;  ///< one that is not there is made: its first turn decides of which model it is
};
struct rollback_session {
  return_address reply;
  session_key session;
  version_id version = 0;
};
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
  byte_share share{};
};
struct import_session {
  return_address reply;
  session_key as;
  std::string file;
  bool replace = false;
  bool trusted = false;         ///< its sender may write the database as well: it needs no signature
  byte_budget::lease memory{};  ///< of the file; goes with the question
};
/// How work on the store as a whole ended, and what it has to say.
struct tended {
  std::string output;
  std::optional<error> trouble;
};
/// Work of whoever looks after the store as a whole: on a thread of its own, one at a time, while turns go on. It
/// writes no record, and ends soon after its token is asked to stop. Answered by tended; refused as overloaded behind
/// others.
struct tend_store {
  return_address reply;
  std::function<tended(storage::database&, const std::stop_token&)> work;
};
/// Which state is in which tier, and what they hold.
struct tiers_status {
  return_address reply;
  tenant_id tenant = default_tenant;
  byte_share share{};
};

enum class tier : std::uint8_t { vram, ram, disk, none };
struct listed_session {
  session_record record;
  tier fastest = tier::none;  ///< where the head's state is
  std::uint64_t state_bytes = 0;
};
struct session_list {
  std::vector<listed_session> sessions;
  bool more = false;
};
struct session_description {
  listed_session session;
  std::vector<shared_version> versions;  ///< whole, whatever was asked for
};
struct tiers_report {
  std::vector<listed_session> sessions;       ///< newest use first; without titles and metadata
  std::uint32_t vram = 0, ram = 0, disk = 0;  ///< states of sessions in each tier
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

/// Write everything that is dirty until `deadline`, then the thread ends.
struct shutdown {
  steady_time deadline{};
};

/// From the actor's own worker: what it was told to do is done. For nobody else.
struct work_done {};

using message_in =
    std::variant<open_session, note_running, commit_turn, release, find_prefix, state_kept, slot_kept, slot_dropped,
                 list_sessions, describe_session, fork_session, label_session, rollback_session, remove_session,
                 export_session, import_session, tend_store, tiers_status, shutdown, work_done>;
using mailbox = bounded_mailbox<message_in>;

using reply = std::variant<session_opened, session_replayed, refused, turn_committed, prefix_found, answer>;

/// Where replies go; implemented by the io threads, and by vectors in tests. Called on the persistence thread; must not
/// block.
class reply_sink {
 public:
  virtual ~reply_sink() = default;
  virtual void deliver(reply&& r) = 0;
};

}  // namespace skein::persistence
