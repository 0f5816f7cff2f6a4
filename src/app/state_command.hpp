#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "base/ids.hpp"

namespace skein::cli {

/// Actions on the sessions of a server, whether it is running or not.
enum class state_action : std::uint8_t {
  list,
  info,
  export_session,
  import_session,
  remove,
  fork,
  verify,
  compact,
  backup,
  repair
};

struct state_command {
  state_action action = state_action::list;
  std::filesystem::path state_dir;
  std::filesystem::path admin_socket;  ///< of a running server; empty: the default path
  tenant_id tenant = default_tenant;
  std::string id;                        ///< of the session
  std::string new_id;                    ///< fork, import; import: empty: as in the file
  std::optional<std::uint32_t> version;  ///< fork; none: the head
  std::filesystem::path file;            ///< export, import; backup: the directory
  std::filesystem::path key_file;        ///< file with the signature key; empty: none
  bool with_states = true;               ///< export
  bool replace = false;                  ///< import: replace a session of that name
  bool json = false;                     ///< list, info, verify, repair
  bool dry_run = false;                  ///< repair
};

}  // namespace skein::cli
