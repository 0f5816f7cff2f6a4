#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "protocol/requests/generation_request.hpp"
#include "protocol/requests/metadata_fields.hpp"

/// Bodies of the routes that manage sessions and tuned states. Errors: as read_request. An empty body counts as {}.
namespace skein::protocol {

/// {"to": id, "version"?: n}
struct fork_request {
  std::string to;
  std::optional<std::uint32_t> version;
};
[[nodiscard]] result<fork_request> parse_fork(std::string_view body, const request_limits& limits);

/// The version in {"version": n}.
[[nodiscard]] result<std::uint32_t> parse_rollback(std::string_view body, const request_limits& limits);

/// {"title"?: text, "metadata"?: {}}: at least one of them.
struct label_request {
  std::optional<std::string> title;
  std::optional<metadata_fields> metadata;
};
[[nodiscard]] result<label_request> parse_labels(std::string_view body, const request_limits& limits);

/// {"session_id": id, "delete_prefix"?: bool} of the older servers.
struct state_delete_request {
  std::string session_id;
  bool with_prefix = false;
};
[[nodiscard]] result<state_delete_request> parse_state_delete(std::string_view body, const request_limits& limits);

/// An empty body, or an object.
[[nodiscard]] result<void> parse_nothing(std::string_view body, const request_limits& limits);

/// Numbers may be strings.
struct load_state_request {
  std::string name;
  std::vector<std::string> files;
  std::optional<float> temperature, top_p;
  bool mixture = false;
  bool with_original = false;  ///< append the zero state to the mixture
  std::vector<float> weights;  ///< of the mixture's states; missing weights are 0
};
/// {"state_filename", "state_viewname", "default_temperature"?, "default_top_p"?}
[[nodiscard]] result<load_state_request> parse_load_state(std::string_view body, const request_limits& limits);
/// {"state_filenames": [], "state_viewname", "contain_originalstate"?, "state_gatingweight"?: [], defaults as above}
[[nodiscard]] result<load_state_request> parse_load_mixture(std::string_view body, const request_limits& limits);
/// {"state_viewname", "state_gatingweight": [], defaults as above}
[[nodiscard]] result<load_state_request> parse_set_weights(std::string_view body, const request_limits& limits);

/// The state in {"state_viewname"?: name}; empty: all.
[[nodiscard]] result<std::string> parse_remove_state(std::string_view body, const request_limits& limits);

/// Errors: invalid_argument naming `field` for an id that is empty or longer than session_id_bytes_max.
[[nodiscard]] result<void> check_session_id(std::string_view id, const std::string& field);

}  // namespace skein::protocol
