#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "actors/persistence/persistence_mailbox.hpp"
#include "base/result.hpp"

/// What /v1/sessions and the older servers' state routes say of sessions, as JSON.
namespace skein::request {

/// {"id","object":"session","created_at","used_at","head","versions","total_tokens",...}
[[nodiscard]] std::string session_body(const persistence::listed_session& session);
[[nodiscard]] std::string session_body(const persistence::session_record& session);
/// A page of them, as OpenAI's lists: {"object":"list","data":[...],"first_id","last_id","has_more"}. One that is
/// longer than bytes_max ends before, but has one session.
[[nodiscard]] std::string session_list_body(const persistence::session_list& list, std::size_t bytes_max);
/// What session_details_body tells beside the members of session_body.
struct told_details {
  bool transcript = false;            ///< what was said on the way to a version, in order
  bool tree = false;                  ///< versions with their parents
  persistence::version_id after = 0;  ///< of the tree only those with higher numbers
  std::size_t bytes_max = 0;          ///< of the answer
};
/// With both goes `has_more`, where all versions would be more than bytes_max: a transcript then has the last ones, and
/// one of the parent of its first version has those before; a tree has the first ones, and one `after` its last version
/// has the next.
/// Errors: too_large for a transcript of which not even one version fits.
[[nodiscard]] result<std::string> session_details_body(const persistence::session_description& description,
                                                       const told_details& details);
/// {"object":"list","data":[versions],"has_more"}, as above.
[[nodiscard]] std::string version_list_body(std::span<const persistence::shared_version> versions,
                                            persistence::version_id after, std::size_t bytes_max);
/// The answer of /state/status.
[[nodiscard]] std::string state_status_body(const persistence::tiers_report& report);

}  // namespace skein::request
