#pragma once
#include <string>
#include <string_view>

namespace skein::grammar {

/// The metaschema of draft 4, 6 or 7, without its annotations: the schemas of that draft. Schemas may refer to it by
/// the name that metaschema_name gives.
[[nodiscard]] std::string metaschema(int draft);

/// http://json-schema.org/draft-07/schema, for example.
[[nodiscard]] std::string metaschema_name(int draft);

}  // namespace skein::grammar
