#pragma once
#include <boost/system/result.hpp>
#include <stdexcept>

#include "base/error.hpp"

namespace skein {

/// A value or an `error`. Test with `if (!r)`, read with `*r`, propagate the error with `return r.error();`.
template <typename T>
using result = boost::system::result<T, error>;

/// Called by result::value() on an error. Start-up code may rely on it; request paths must test first.
[[noreturn]] inline void throw_exception_from_error(const error& e, const boost::source_location&) {
  throw std::runtime_error(e.message);
}

/// Drops a result on purpose, with the reason: `ignore(r, "client already gone")`.
template <typename T>
void ignore(const result<T>&, const char* /*why*/) {}

}  // namespace skein
