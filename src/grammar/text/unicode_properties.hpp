#pragma once
#include <optional>
#include <string_view>

#include "grammar/automata/code_set.hpp"

namespace skein::grammar {

/// The code points of what `\p{...}` of ECMA-262 has between its braces: a general category (`Lu`, `Uppercase_Letter`,
/// `gc=Lu`), a script (`sc=Grek`, `Script=Greek`), or a binary property of unicode_tables.cpp, `Any`, `ASCII` or
/// `Assigned`. Names are case-sensitive. nullopt: there is no such property here.
[[nodiscard]] std::optional<code_set> unicode_property(std::string_view expression);

}  // namespace skein::grammar
