#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "grammar/machine/program.hpp"
#include "grammar/options.hpp"

namespace skein::grammar {

class language_pool;

/// What a JSON Schema compiles to, with the notes of grammar::notes().
struct compiled_schema {
  program made;
  std::vector<std::string> notes;
};

/// Compiles a schema. Several of one grammar share the budget and the languages. Errors: those of
/// grammar::from_json_schema.
[[nodiscard]] result<compiled_schema> compile_schema(std::string_view schema, const options& how, budget& work,
                                                     language_pool& languages);

}  // namespace skein::grammar
