#pragma once
#include <cstddef>

namespace skein::grammar {

/// Tables of the Unicode character database, written by make_unicode_tables.mjs, which describes the form of the runs.
extern const char* const unicode_category_runs;
/// Each script's names with a space between them, and a semicolon between scripts. The first name is the tag of its
/// runs.
extern const char* const unicode_script_names;
extern const char* const unicode_script_runs;

/// The code points of some categories, those with the tag `a` added and those with the tag `r` removed.
struct unicode_binary_property {
  const char* name;
  const char* short_name;
  const char* categories;
  const char* changes;
};
extern const unicode_binary_property unicode_binary_properties[];
extern const std::size_t unicode_binary_property_count;

}  // namespace skein::grammar
