// Shows that config/skein.toml is what the table of keys generates, and what it says of itself: every key is in it with
// its default; by loading it.
#include <boost/test/unit_test.hpp>
#include <fstream>

#include "config/keys.hpp"
#include "config/load.hpp"
#include "config/shipped_file.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;

namespace {

const std::string shipped = SKEIN_SOURCE_DIR "/config/skein.toml";

std::string content() { return test::content_of(shipped); }

/// The file with its example of a model section made active.
std::string with_model_section() {
  std::string text = content();
  for (auto at = text.find("# [models."); at != std::string::npos; at = text.find("\n# ", at)) {
    if (text[at] == '\n') ++at;
    text.erase(at, 2);
  }
  return text;
}

void expect_default_of(const config::key& k, const config::loaded& merged) {
  BOOST_TEST_CONTEXT(k.path) {
    const auto from = merged.origins.find(k.path);
    BOOST_TEST((from != merged.origins.end() && from->second.kind == config::origin_kind::file));
    BOOST_TEST(config::to_toml(k.get(merged.settings)) == config::to_toml(k.standard()));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_key_is_present_with_its_default) {
  const test::temporary_folder folder;
  const auto path = folder.path() / "skein.toml";
  std::ofstream(path) << with_model_section();
  const auto merged = config::load({path, {}, {}});
  for (const auto& fault : merged.faults) BOOST_ERROR(config::to_string(fault));
  for (const auto& k : config::keys())
    if (!k.for_tests) expect_default_of(k, merged);
  for (const auto& k : config::model_keys("my-model")) expect_default_of(k, merged);
}

BOOST_AUTO_TEST_CASE(the_file_is_what_the_table_generates) {
  BOOST_TEST(content() == config::shipped_file(),
             "config/skein.toml is not what config/keys.cpp gives: docs/configuration.py build/dev/skein --write");
}

BOOST_AUTO_TEST_CASE(settings_for_tests_are_not_in_the_file) {
  BOOST_TEST(content().find("fake") == std::string::npos);
  const bool exist = config::find_key("engine.fake_tick_us").has_value();
  BOOST_TEST(!config::find_key("engine.device")->objection(std::string("fake")).has_value() == exist);
}

BOOST_AUTO_TEST_CASE(every_default_is_legal_and_every_spelling_unique) {
  std::map<std::string_view, std::string_view> owners;
  for (const auto& k : config::keys()) {
    const auto wrong = k.objection(k.standard());
    BOOST_TEST(!wrong.has_value(), k.path << ' ' << wrong.value_or(""));
    for (const auto flag : k.flags) BOOST_TEST(owners.emplace(flag, k.path).second, flag << " stands twice");
  }
}
