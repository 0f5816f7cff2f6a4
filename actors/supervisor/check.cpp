#include "actors/supervisor/check.hpp"

#include <utility>

#include "actors/listener/tls_door.hpp"
#include "actors/supervisor/models/open_engine.hpp"
#include "actors/supervisor/models/open_states.hpp"
#include "actors/supervisor/settings/open_keys.hpp"

namespace skein::supervisor {

/// In the order of serve(), so that both name the same error.
result<void> check(const config::config& settings) {
  if (const auto keys = open_keys(settings); !keys) return keys.error();
  if (const auto& s = settings.server; !s.tls_certificate.empty())
    if (auto ok = listener::tls_door().load(s.tls_certificate, s.tls_key); !ok) return ok;
  auto model = check_engine(settings);
  if (!model) return model.error();
  opened_engine opened;
  opened.model = std::move(*model);
  return open_states(settings, opened);
}

}  // namespace skein::supervisor
