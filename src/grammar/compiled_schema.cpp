#include "grammar/compiled_schema.hpp"

#include <utility>

#include "grammar/schema/node_builder.hpp"

namespace skein::grammar {

result<compiled_schema> compile_schema(std::string_view schema, const options& how, budget& work,
                                       language_pool& languages) {
  const auto document = schema_document::parse(schema, how.otherwise, how.bounds);
  if (!document) return document.error();
  expander expand(*document, languages, how.formats, work);
  auto made = node_builder(expand, work).build();
  if (!made) return made.error();
  auto notes = document->notes();
  notes.insert(notes.end(), expand.notes().begin(), expand.notes().end());
  return compiled_schema{std::move(*made), std::move(notes)};
}

}  // namespace skein::grammar
