#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace skein {

void check_failed(const char* what, const std::source_location& where) {
  std::fprintf(stderr, "skein: %s at %s:%u in %s\n", what, where.file_name(), static_cast<unsigned>(where.line()),
               where.function_name());
  std::abort();
}

}  // namespace skein
