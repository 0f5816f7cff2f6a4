#include "tests/model/opened.hpp"

#include <sys/resource.h>

#include <boost/test/unit_test.hpp>

#include "model/model_info.hpp"
#include "tests/model/allocation_meter.hpp"
#include "tests/model/memory_file.hpp"
#include "tests/model/read_in_place.hpp"

namespace skein::test {
namespace {

constexpr std::size_t most_bytes = 64u << 20;

/// A file that makes a reader spin ends the program. All tests together need about a second.
struct cpu_ceiling {
  cpu_ceiling() {
    const rlimit seconds{120, 120};
    setrlimit(RLIMIT_CPU, &seconds);
  }
};
BOOST_TEST_GLOBAL_FIXTURE(cpu_ceiling);

}  // namespace

result<model::checkpoint> opened(std::string_view bytes) {
  return model::checkpoint::open(memory_file(bytes).path());  // the mapping outlives the file
}

void check_refused(const std::vector<hostile_file>& files) {
  for (const auto& [what, bytes, reason] : files) {
    BOOST_TEST_CONTEXT(what) {
      const allocation_meter memory;
      const auto file = opened(bytes);
      BOOST_TEST(memory.peak_bytes() < most_bytes);
      BOOST_TEST(!file);
      if (file) continue;
      const std::string& text = file.error().message;
      BOOST_TEST_INFO(text);
      BOOST_TEST((file.error().kind == error_kind::bad_file));
      BOOST_TEST_INFO(text);
      BOOST_TEST(text.find(reason) != std::string::npos);
      BOOST_TEST_INFO(text);
      BOOST_TEST(text.find(": at byte ") != std::string::npos);
      BOOST_TEST_INFO(text);
      BOOST_TEST(text.starts_with("/proc/self/fd/"));
      BOOST_TEST(text.size() < 500u);
    }
  }
}

void check_survived(std::string_view bytes) {
  const std::vector<char> exact(bytes.begin(), bytes.end());
  read_in_place(std::as_bytes(std::span(exact)));
  const allocation_meter memory;
  if (const auto file = opened(bytes)) {
    BOOST_TEST(model::identity(*file, "").size() == 32u);
    if (const auto info = model::describe(*file)) ignore(model::bind(*file, *info), "either answer is right");
  }
  BOOST_TEST(memory.peak_bytes() < most_bytes);
}

}  // namespace skein::test
