#pragma once
#include "grammar/automata/limits.hpp"
#include "grammar/schema/format_rule.hpp"

namespace skein::grammar {

struct options {
  limits bounds;
  /// For a schema without $schema. `unknown`: keywords of all drafts count, and what drafts disagree on is refused.
  dialect otherwise = dialect::unknown;
  format_rule formats = format_rule::automatic;
};

}  // namespace skein::grammar
