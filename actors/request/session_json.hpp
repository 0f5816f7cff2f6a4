#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "actors/persistence/persistence_mailbox.hpp"

/// What /v1/sessions and the older servers' state routes say of sessions, as JSON.
namespace skein::request {

/// {"id","object":"session","created_at","used_at","head","versions","total_tokens",...}
[[nodiscard]] std::string session_body(const persistence::listed_session& session);
[[nodiscard]] std::string session_body(const persistence::session_record& session);
/// A page of them, as OpenAI's lists: {"object":"list","data":[...],"first_id","last_id","has_more"}.
[[nodiscard]] std::string session_list_body(const persistence::session_list& list);
/// What session_details_body tells beside the members of session_body.
struct told_details {
  bool transcript = false;           ///< what was said on the way to a version, in order
  bool tree = false;                 ///< all versions with their parents
  std::size_t transcript_bytes = 0;  ///< of texts; what was said first stays out, but for the last version
};
/// With a transcript goes `has_more`: whether something was said before it, which a transcript of the parent of its
/// first version has.
[[nodiscard]] std::string session_details_body(const persistence::session_description& description,
                                               const told_details& details);
/// {"object":"list","data":[versions]}
[[nodiscard]] std::string version_list_body(const std::vector<persistence::shared_version>& versions);
/// The answer of /state/status.
[[nodiscard]] std::string state_status_body(const persistence::tiers_report& report);

}  // namespace skein::request
