#pragma once
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
/// As session_body, with the member `transcript` (what was said on the way to a version, in order) or `tree` (all
/// versions with their parents), where wanted.
[[nodiscard]] std::string session_details_body(const persistence::session_description& description, bool transcript,
                                               bool tree);
/// {"object":"list","data":[versions]}
[[nodiscard]] std::string version_list_body(const std::vector<persistence::shared_version>& versions);
/// The answer of /state/status.
[[nodiscard]] std::string state_status_body(const persistence::tiers_report& report);

}  // namespace skein::request
