#include "actors/persistence/sessions/history_hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <iterator>

namespace skein::persistence {

struct chained_hash::state {
  XXH3_state_t xxh;
};

chained_hash::chained_hash(const history_hash& before) : state_(std::make_unique<state>()) {
  XXH3_128bits_reset(&state_->xxh);
  XXH3_128bits_update(&state_->xxh, before.data(), before.size());
}

chained_hash::~chained_hash() = default;

void chained_hash::feed(std::string_view text) { XXH3_128bits_update(&state_->xxh, text.data(), text.size()); }

history_hash chained_hash::digest() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  history_hash out;
  std::copy(std::begin(canonical.digest), std::end(canonical.digest), out.begin());
  return out;
}

history_hash chained(const history_hash& before, std::string_view segment) {
  chained_hash h(before);
  h.feed(segment);
  return h.digest();
}

}  // namespace skein::persistence
