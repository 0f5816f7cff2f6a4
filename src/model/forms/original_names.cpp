#include "model/forms/original_names.hpp"

#include "model/forms/prefixes.hpp"

namespace skein::model {
namespace {

/// One value and one function for each form; `original` also stands for tuned states and unknown names.
enum class form { original };

form recognise_form(const found_model&) { return form::original; }

}  // namespace

result<void> to_original(found_model& found) {
  strip_prefix(found.tensors);
  switch (recognise_form(found)) {
    case form::original: break;
  }
  return {};
}

}  // namespace skein::model
