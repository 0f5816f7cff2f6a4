#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/grammar.hpp"

namespace skein::grammar {

/// A schema of a grammar of several. Its references, draft and identifiers are its own.
struct schema_part {
  std::string_view schema;
  std::string_view relaxed;  ///< taken if `schema` has what is not supported; empty: that is an error
  std::string_view field;    ///< the field of its errors; precedes its notes
};

/// What an answer with tools may be.
struct call_schemas {
  struct function {
    std::string_view name;
    schema_part arguments;  ///< only its objects
  };
  std::vector<function> functions;
  std::size_t calls_max = 1;          ///< above 1: also a list of 1 to this number of calls
  std::optional<schema_part> answer;  ///< a JSON value in place of calls
};

/// The JSON texts that are a call, {"name":NAME,"arguments":OBJECT}, with the name before the arguments, or a list of
/// calls, or an answer. Limits, apart from those of one schema's text, hold for all parts together. Errors: those of
/// grammar::from_json_schema, with the part's field where one part is at fault, and no field otherwise.
[[nodiscard]] result<std::shared_ptr<const grammar>> compile_calls(const call_schemas& of, const options& how = {});

}  // namespace skein::grammar
