#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "actors/persistence/shared/persistence_mailbox.hpp"
#include "base/result.hpp"

/// JSON of sessions, for /v1/sessions and the older servers' state routes.
namespace skein::request {

/// {"id","object":"session","created_at","used_at","head","versions","total_tokens",...}
[[nodiscard]] std::string session_body(const persistence::listed_session& session);
[[nodiscard]] std::string session_body(const persistence::session_record& session);
/// A page of sessions, like OpenAI's lists: {"object":"list","data":[...],"first_id","last_id","has_more"}. The page is
/// cut at bytes_max, but has at least one session.
[[nodiscard]] std::string session_list_body(const persistence::session_list& list, std::size_t bytes_max);
/// What session_details_body adds to the members of session_body.
struct told_details {
  bool transcript = false;            ///< the messages and answers up to a version, in order
  bool tree = false;                  ///< versions with their parents
  persistence::version_id after = 0;  ///< only versions of the tree with higher numbers
  std::size_t bytes_max = 0;          ///< of the answer
};
/// Transcript and tree have `has_more`, which is true if not all versions fit into bytes_max. A transcript has the last
/// versions; ask for the parent of its first one to get the earlier ones. A tree has the first versions; ask with
/// `after` set to its last one to get the next.
/// Errors: too_large if not even the transcript's last version fits.
[[nodiscard]] result<std::string> session_details_body(const persistence::session_description& description,
                                                       const told_details& details);
/// {"object":"list","data":[versions],"has_more"}, as above.
[[nodiscard]] std::string version_list_body(std::span<const persistence::shared_version> versions,
                                            persistence::version_id after, std::size_t bytes_max);
/// The answer of /state/status.
[[nodiscard]] std::string state_status_body(const persistence::tiers_report& report);

}  // namespace skein::request
