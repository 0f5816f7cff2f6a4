#pragma once
#include <string>
#include <vector>

#include "grammar/automata/limits.hpp"
#include "grammar/schema/format_rule.hpp"

namespace skein::grammar {

struct options {
  limits bounds;
  /// For a schema without $schema or with one that is not known. `unknown`: keywords of drafts 4 and later count, and
  /// where these disagree, the rules of 2020-12.
  dialect otherwise = dialect::unknown;
  format_rule formats = format_rule::automatic;
  std::vector<std::string> notes = {};  ///< of a schema: precede those of grammar::notes()
};

}  // namespace skein::grammar
