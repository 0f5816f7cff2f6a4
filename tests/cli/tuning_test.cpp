// What `skein tune` chooses, from made-up times, and the file that keeps it.
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <sstream>

#include "app/tuning/tuning_file.hpp"
#include "cli/tune/tuning_search.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::cli;
using kernels::gpu::gpu_tuning;

namespace {

const auto for_ever = [] { return true; };

/// Times that depend on the tuning: fastest with `best` blocks per SM; shared launches take `led` times as long.
struct card {
  double best;
  decode_times led;
  decode_times operator()(const gpu_tuning& tuning) const {
    const double blocks = tuning.blocks_per_sm > 0 ? tuning.blocks_per_sm : 2.5;
    const double slower = 1 + 0.05 * std::abs(blocks - best);
    decode_times times{};
    for (std::size_t i = 0; i < times.size(); ++i)
      times[i] = slower * 1e-3 * (tuning.led_rows && tuned_rows[i] <= *tuning.led_rows ? led[i] : 1);
    return times;
  }
};

tuning_found search(const card& on, const gpu_tuning& from = {}, const std::function<bool()>& may_go_on = for_ever) {
  auto found = search_tuning(
      from, [&](const gpu_tuning& tuning) -> result<decode_times> { return on(tuning); }, may_go_on);
  BOOST_REQUIRE(found.has_value());
  return *found;
}

std::string write(const test::temporary_folder& folder, const std::string& text) {
  const auto path = folder.path() / "t.json";
  std::ofstream(path) << text;
  return path;
}

const tuning_key h100{"NVIDIA H100", "bf16"}, h100_int4{"NVIDIA H100", "int4"}, t4{"T4", "fp16"};

}  // namespace

BOOST_AUTO_TEST_CASE(the_fastest_number_of_blocks_is_kept) {
  for (const double best : {1.0, 3.0, 6.0}) BOOST_TEST(search({best, {1, 1, 1}}).tuning.blocks_per_sm == best);
}

BOOST_AUTO_TEST_CASE(what_is_hardly_faster_changes_nothing) {
  BOOST_TEST((search({2.5, {0.995, 0.995, 0.995}}).tuning == gpu_tuning{}));
}

BOOST_AUTO_TEST_CASE(launches_are_shared_as_long_as_it_is_faster) {
  BOOST_TEST((search({2.5, {0.9, 0.95, 1.1}}).tuning.led_rows == 8u));
  BOOST_TEST((search({2.5, {0.9, 0.9, 0.9}}).tuning.led_rows == 16u));
  BOOST_TEST((search({2.5, {1.1, 0.9, 0.9}}).tuning.led_rows == std::nullopt));
}

BOOST_AUTO_TEST_CASE(rates_before_and_now_are_those_of_the_choice) {
  const card on{3, {0.9, 0.95, 1.1}};
  const auto found = search(on);
  BOOST_TEST((found.before == on({})));
  BOOST_TEST((found.after == on(found.tuning)));
}

BOOST_AUTO_TEST_CASE(no_candidate_begins_after_the_time) {
  int left = 3;
  const auto found = search({1.5, {1, 1, 1}}, {}, [&] { return left-- > 0; });
  BOOST_TEST(found.out_of_time);
  BOOST_TEST(found.tried == 4u);
}

BOOST_AUTO_TEST_CASE(what_was_measured_before_is_kept) {
  gpu_tuning from;
  from.tile_us[2] = 0.5;
  BOOST_TEST(search({3, {1, 1, 1}}, from).tuning.tile_us[2] == 0.5);
}

BOOST_AUTO_TEST_CASE(an_error_ends_the_search) {
  const auto lost = search_tuning(
      {},
      [](const gpu_tuning&) {
        return error{error_kind::unavailable, "lost", {}};
      },
      for_ever);
  BOOST_TEST((!lost && lost.error().message == "lost"));
}

BOOST_AUTO_TEST_CASE(a_file_has_an_entry_for_each_gpu_and_format) {
  const test::temporary_folder folder;
  const auto path = folder.path() / "m.pth.tuning.json";
  gpu_tuning one, two;
  one.blocks_per_sm = 1.5, one.led_rows = 0, one.tile_us = {0.25, 0.5, 0.75, 0, 1.25};
  two.led_rows = 32;
  BOOST_TEST((read_tuning(path, h100).value() == gpu_tuning{}));
  BOOST_REQUIRE(write_tuning(path, h100, two).has_value());
  BOOST_REQUIRE(write_tuning(path, h100_int4, two).has_value());
  BOOST_REQUIRE(write_tuning(path, h100, one).has_value());
  BOOST_TEST((read_tuning(path, h100).value() == one));
  BOOST_TEST((read_tuning(path, h100_int4).value() == two));
  BOOST_TEST((read_tuning(path, t4).value() == gpu_tuning{}));
}

BOOST_AUTO_TEST_CASE(a_damaged_file_is_named) {
  const test::temporary_folder folder;
  const std::string begin = R"({"entries": [{"device": "T4", "weights": "fp16")";
  const std::pair<std::string, std::string> rows[] = {
      {"", "is not JSON"},
      {"{", "is not JSON"},
      {"[]", "has no list"},
      {"{}", "has no list"},
      {R"({"entries": 1})", "has no list"},
      {R"({"entries": [1]})", "entries[0] is not an object"},
      {R"({"entries": [{}]})", "entries[0].device"},
      {R"({"entries": [{"device": "T4", "weights": 4}]})", "entries[0].weights"},
      {begin + R"(, "blocks_per_sm": 0}]})", "entries[0].blocks_per_sm"},
      {begin + R"(, "blocks_per_sm": 1e300}]})", "entries[0].blocks_per_sm"},
      {begin + R"(, "blocks_per_sm": "2"}]})", "entries[0].blocks_per_sm"},
      {begin + R"(, "led_rows": -1}]})", "entries[0].led_rows"},
      {begin + R"(, "led_rows": 4294967297}]})", "entries[0].led_rows"},
      {begin + R"(, "tile_us": []}]})", "entries[0].tile_us"},
      {begin + R"(, "tile_us": {"flat": -1}}]})", "entries[0].tile_us"},
      {begin + R"(}, {"device": 1}]})", "entries[1].device"}};
  for (const auto& [text, needle] : rows) BOOST_TEST_CONTEXT(text) {
      const auto path = write(folder, text);
      const auto read = read_tuning(path, t4);
      BOOST_REQUIRE(!read.has_value());
      BOOST_TEST((read.error().kind == error_kind::bad_file));
      BOOST_TEST(read.error().message.find(needle) != std::string::npos, read.error().message);
      BOOST_TEST(!write_tuning(path, t4, {}).has_value());  // and is not lost
      std::stringstream kept;
      kept << std::ifstream(path).rdbuf();
      BOOST_TEST(kept.str() == text);
    }
}
