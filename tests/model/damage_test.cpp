// Damage of every kind in good files: each cut is refused, and no flipped, removed or doubled byte crashes a reader,
// makes it read outside the file (seen under AddressSanitizer) or take much memory.
#include <boost/test/unit_test.hpp>
#include <random>

#include "tests/model/checkpoint_builders.hpp"
#include "tests/model/gguf_builders.hpp"
#include "tests/model/opened.hpp"
#include "tests/support/oracle.hpp"
#include "tests/support/random_cases.hpp"

namespace skein::test {
namespace {

std::vector<std::string> good_files() {
  const kernels::model_dims one_layer{1, 4, 1, 4, 8, 3, 1, 1, 1, 1};
  const auto plan = filled(rwkv7_plan(one_layer, dtype::bf16));
  const gguf_model_form form{.head_size = 4};
  auto gguf = gguf_model_of(gguf_plan_of(random_rwkv7(one_layer), form), form, 1, 4, 8);
  add_vocabulary(gguf, {"a", R"(\xff)"}, 1);
  return {safetensors_of(plan), pth_of(plan), gguf.file()};
}

void check_cuts(const std::string& good, std::size_t cuts) {
  for (std::size_t i = 0; i < cuts; ++i) {
    const std::size_t length = 1 + i * (good.size() - 1) / cuts;
    BOOST_TEST_CONTEXT("cut to " << length << " of " << good.size() << " bytes")
    check_refused({{"cut", good.substr(0, length), ""}});
  }
}

/// Changes one to eight places; half of the time near an end, where formats keep their directories.
std::string damaged_copy(std::string bytes, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (std::size_t times = 1 + below(8); times-- > 0;) {
    const std::size_t near = std::min<std::size_t>(bytes.size(), 4096);
    const std::size_t window = below(2) == 0 ? bytes.size() : near;
    const std::size_t at = below(2) == 0 ? below(window) : bytes.size() - 1 - below(window);
    switch (below(5)) {
      case 0: bytes[at] = static_cast<char>(random()); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << below(8))); break;
      case 2: bytes[at] = below(2) == 0 ? '\0' : '\xff'; break;
      case 3: bytes.insert(at, bytes.substr(at, below(16))); break;
      case 4: bytes.erase(at, below(16)); break;
    }
    if (bytes.empty()) bytes = " ";
  }
  return bytes;
}

void check_damage(const std::vector<std::string>& files, int rounds) {
  const std::uint64_t start = given_seed().value_or(std::random_device()());
  BOOST_TEST_CONTEXT("SKEIN_SEED=" << start) {
    std::mt19937 random(static_cast<std::uint32_t>(start));
    for (int i = 0; i < rounds; ++i)
      BOOST_TEST_CONTEXT("round " << i) check_survived(damaged_copy(files[random() % files.size()], random));
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(damage)

BOOST_AUTO_TEST_CASE(every_cut_is_refused) {
  for (const std::string& good : good_files()) {
    BOOST_REQUIRE(opened(good));
    check_cuts(good, good.size() - 1);
  }
}

BOOST_AUTO_TEST_CASE(cuts_of_real_files_are_refused, *boost::unit_test::precondition(have_oracle)) {
  for (const char* name : {"quirk-base.safetensors", "quirk-views.pth", "quirk-torch2.pth", "tiny-7v0-bf16.pth"})
    check_cuts(test::content_of(oracle() / "models" / name), 200);
}

BOOST_AUTO_TEST_CASE(changed_bytes_do_no_harm) { check_damage(good_files(), 4000); }

BOOST_AUTO_TEST_CASE(changed_bytes_of_real_files_do_no_harm, *boost::unit_test::precondition(have_oracle)) {
  std::vector<std::string> files;
  for (const char* name : {"quirk-base.safetensors", "quirk-metadata.pth", "quirk-parameters.pth", "quirk-views.pth",
                           "quirk-mixed.pth", "quirk-torch2.pth", "quirk-legacy.pth"})
    files.push_back(test::content_of(oracle() / "models" / name));
  check_damage(files, 1000);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace skein::test
