// The main of every test program; the cases are in the program's other files.
#define BOOST_TEST_MODULE skein
#include <boost/test/unit_test.hpp>

#include "base/log/log.hpp"

namespace {

/// What the tested parts log about ordinary work would bury a failure; errors still go to stderr.
struct errors_only {
  errors_only() {
    skein::log::start({.minimum = skein::log::level::error});
    skein::log::stop();
  }
};

BOOST_TEST_GLOBAL_FIXTURE(errors_only);

}  // namespace
