#include "protocol/json/json_copy.hpp"

namespace skein::protocol {

void copy_json(json_writer& out, json_value value) {
  switch (value.kind()) {
    case json_kind::null: out.null(); break;
    case json_kind::boolean: out.value(*value.boolean()); break;
    case json_kind::string: out.value(*value.text()); break;
    case json_kind::number:
      if (const auto whole = value.integer())
        out.value(*whole);
      else if (const auto large = value.unsigned_integer())
        out.value(*large);
      else
        out.value(*value.number());
      break;
    case json_kind::array:
      out.begin_array();
      for (const auto element : value.elements()) copy_json(out, element);
      out.end_array();
      break;
    case json_kind::object:
      out.begin_object();
      for (const auto [name, member] : value.members()) copy_json(out.key(name), member);
      out.end_object();
      break;
  }
}

}  // namespace skein::protocol
