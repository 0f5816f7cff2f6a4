#include "actors/supervisor/check.hpp"

#include <utility>

#include "actors/listener/tls_door.hpp"
#include "actors/supervisor/models/open_engine.hpp"
#include "actors/supervisor/models/open_states.hpp"
#include "actors/supervisor/settings/open_keys.hpp"

namespace skein::supervisor {

/// In the order of serve(), so that both name the same error first.
std::vector<error> check(const config::config& settings) {
  std::vector<error> faults;
  if (const auto keys = open_keys(settings); !keys) faults.push_back(keys.error());
  if (const auto& s = settings.server; !s.tls_certificate.empty())
    if (const auto ok = listener::tls_door().load(s.tls_certificate, s.tls_key); !ok) faults.push_back(ok.error());
  if (auto model = check_engine(settings, faults)) {
    opened_engine opened;
    opened.model = std::move(*model);
    if (const auto ok = open_states(settings, opened); !ok) faults.push_back(ok.error());
  }
  return faults;
}

}  // namespace skein::supervisor
