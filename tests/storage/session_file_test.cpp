// Shows that a session goes through a file unchanged, also one that another server signed, and that files which are
// damaged, forged, foreign or too large are refused with the reason. By writing and reading in memory.
#include "storage/sessions/session_file.hpp"

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>

#include "storage/records/session_check.hpp"
#include "storage/states/state_store.hpp"
#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"

using namespace skein;
using namespace skein::storage;
using test::random_cases;

namespace {

using test::refused;

session_file random_file(random_cases& random, std::uint32_t versions) {
  auto tree = test::random_tree_of(random, 1 + random.below(1000), "session", versions);
  tree.session.model_identity = "model";
  tree.session.log_bytes = 0;  // as it is counted when a file is read
  for (const auto& version : tree.versions) tree.session.log_bytes += content_bytes(version);
  session_file file{tree.session, tree.versions, {}};
  for (const auto& version : tree.versions)
    if (random.below(2) == 0)
      file.states.push_back(encode_state(
          {"model", default_tenant, {tree.session.uid, version.id}, version.total_tokens},
          test::random_state(random, test::small_layout()), random.below(2) == 0 ? dtype::f16 : dtype::f32));
  return file;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_session_comes_back_from_its_file) {
  random_cases random;
  for (std::uint32_t versions = 0; versions < 20; ++versions) {
    const auto file = random_file(random, versions);
    BOOST_TEST((read_session_file(write_session_file(file, ""), {.model_identity = "model"}).value() == file));
    BOOST_TEST((read_session_file(write_session_file(file, "key"), {.model_identity = "model", .signature_key = "key"})
                    .value() == file));
    BOOST_TEST((read_session_file(write_session_file(file, "key"), {}).value() == file));
  }
}

BOOST_AUTO_TEST_CASE(a_state_that_is_not_finite_is_refused) {
  random_cases random;
  auto file = random_file(random, 1);
  const auto& version = file.versions.front();
  const float bad[] = {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()};
  for (const float value : bad)
    for (const dtype type : {dtype::f16, dtype::f32}) {
      model::state_value state(test::random_state(random, test::small_layout()));
      std::vector<float> floats = model::floats_of(state);
      floats.back() = value;
      state = model::state_of(test::small_layout(), floats);
      file.states = {
          encode_state({"model", default_tenant, {file.session.uid, version.id}, version.total_tokens}, state, type)};
      const auto read = read_session_file(write_session_file(file, ""), {.model_identity = "model"});
      // fp16 saturates infinity.
      if (type == dtype::f16 && value == bad[0])
        BOOST_TEST(read.has_value());
      else
        refused(read, error_kind::bad_file, "NaN or infinite");
    }
}

BOOST_AUTO_TEST_CASE(no_damaged_file_passes) {
  random_cases random;
  const auto good = write_session_file(random_file(random, 2), "");
  for (std::size_t bit = 0; bit < 8 * good.size(); bit += 5) {
    auto bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    refused(read_session_file(bad, {}), error_kind::bad_file, "checksum");
  }
  for (std::size_t bytes = 0; bytes < good.size(); bytes += 11)
    refused(read_session_file(good.substr(0, bytes), {}), error_kind::bad_file, "session file");
}

BOOST_AUTO_TEST_CASE(a_server_with_a_key_takes_what_is_signed_with_it_alone) {
  random_cases random;
  const auto file = random_file(random, 3);
  refused(read_session_file(write_session_file(file, ""), {.model_identity = "model", .signature_key = "key"}),
          error_kind::forbidden, "not signed");
  refused(read_session_file(write_session_file(file, "other"), {.model_identity = "model", .signature_key = "key"}),
          error_kind::forbidden, "another key");
  // Changed by an attacker who can compute checksums but does not know the key.
  auto changed = file;
  changed.versions[0].answer += "!";
  const auto own = write_session_file(changed, "key of the forger");
  refused(read_session_file(own, {.model_identity = "model", .signature_key = "key"}), error_kind::forbidden,
          "another key");
}

BOOST_AUTO_TEST_CASE(files_of_other_models_and_files_that_are_too_large_are_refused) {
  random_cases random;
  const auto bytes = write_session_file(random_file(random, 3), "");
  refused(read_session_file(bytes, {.model_identity = "other"}), error_kind::conflict,
          "belongs to model model; this server has model other");
  session_file_rules small;
  small.bytes_max = bytes.size() - 1;
  refused(read_session_file(bytes, small), error_kind::too_large, std::to_string(bytes.size()) + " bytes");
  small.bytes_max = bytes.size();
  BOOST_TEST(read_session_file(bytes, small).has_value());
}

BOOST_AUTO_TEST_CASE(parts_that_do_not_agree_are_refused) {
  random_cases random;
  const auto refused_when = [&](const std::string& needle, const std::function<void(session_file&)>& spoil) {
    auto file = random_file(random, 6);
    file.states = {encode_state({"model", default_tenant, {file.session.uid, 2}, file.versions[1].total_tokens},
                                test::random_state(random, test::small_layout()), dtype::f32)};
    BOOST_TEST(read_session_file(write_session_file(file, ""), {}).has_value());
    spoil(file);
    refused(read_session_file(write_session_file(file, ""), {}), error_kind::bad_file, needle);
  };
  refused_when(" follows version ", [](auto& f) {
    f.versions[3].parent = beginning;  // else it is missed first
    f.versions[3].total_tokens = f.versions[3].tokens.size();
    std::swap(f.versions[2], f.versions[3]);
  });
  refused_when(" follows version ", [](auto& f) { f.versions[3] = f.versions[2]; });
  refused_when("parent of version 6", [](auto& f) {
    f.versions[5].parent = 5;
    f.versions.erase(f.versions.begin() + 4);
  });
  refused_when("do not add up", [](auto& f) { ++f.versions[1].total_tokens; });
  refused_when("do not add up", [](auto& f) { ++f.session.total_tokens; });
  refused_when("head", [](auto& f) { f.session.head = f.session.last_version + 1; });
  refused_when("head is missing", [](auto& f) {
    f.session.last_version = 20;
    f.session.head = 15;
  });
  refused_when("never given out", [](auto& f) { f.session.last_version = f.session.versions = f.session.head = 5; });
  refused_when("should have 5 versions", [](auto& f) { f.session.versions = 5; });
  refused_when("none of its versions", [](auto& f) { f.session.uid += 1; });
  refused_when("two states", [](auto& f) { f.states.push_back(f.states[0]); });
  refused_when("more states than versions", [](auto& f) { f.states.assign(7, f.states[0]); });
  refused_when("another model", [](auto& f) { f.session.model_identity = "other"; });
  refused_when("state record", [](auto& f) { f.states[0].back() = static_cast<char>(~f.states[0].back()); });
  refused_when("different number of tokens", [](auto& f) {
    f.versions[1].tokens.push_back(1);
    ++f.versions[1].total_tokens;
    f.versions[1].parent = 0;
    f.versions[1].total_tokens = f.versions[1].tokens.size();
    f.versions.resize(2);
    f.session.versions = f.session.head = 2;
    f.session.total_tokens = f.versions[1].total_tokens;
  });
}

BOOST_AUTO_TEST_CASE(labels_are_held_to_the_limits_of_the_api) {
  random_cases random;
  const auto file = random_file(random, 3);
  const auto read_with = [&](const std::function<void(session_file&)>& change) {
    auto changed = file;
    change(changed);
    for (const auto& version : changed.versions) changed.session.log_bytes += content_bytes(version);
    return read_session_file(write_session_file(changed, ""), {});
  };
  const auto refused_for = [&](const std::string& field, const std::string& needle, auto change) {
    const auto got = read_with(change);
    refused(got, error_kind::bad_file, needle);
    BOOST_TEST(got.error().field == field);
  };
  const auto text = [](std::size_t bytes) { return std::string(bytes, 'x'); };
  refused_for("title", "257 bytes", [&](auto& f) { f.session.title = text(257); });
  refused_for("metadata", "65 bytes", [&](auto& f) { f.session.metadata = {{text(65), "v"}}; });
  refused_for("metadata", "513 bytes", [&](auto& f) { f.session.metadata = {{"k", text(513)}}; });
  refused_for("metadata", "17 members", [&](auto& f) { f.session.metadata.assign(17, {"k", "v"}); });
  refused_for("model_identity", "5000 bytes", [&](auto& f) {
    f.session.model_identity = text(5000);
    f.states.clear();
  });
  refused_for("initial_state", "5000 bytes", [&](auto& f) { f.session.initial_state = text(5000); });
  refused_for("version 2.request_key", "257 bytes", [&](auto& f) { f.versions[1].request_key = text(257); });
  refused_for("version 3.role", "257 bytes", [&](auto& f) { f.versions[2].messages = {{text(257), "content"}}; });
  refused_for("version 1.stop_reason", "100000 bytes", [&](auto& f) { f.versions[0].stop_reason = text(100'000); });
  refused_for("version 1.finish_reason", "257 bytes", [&](auto& f) { f.versions[0].finish_reason = text(257); });
  refused_for("version 1.sampling", "16777217 bytes", [&](auto& f) { f.versions[0].sampling = text(16777217); });
  refused_for("version 1.template_name", "257 bytes", [&](auto& f) { f.versions[0].template_name = text(257); });

  const auto largest = read_with([&](auto& f) {
    f.session.title = text(256);
    f.session.metadata.assign(16, {text(64), text(512)});
    f.versions[1].request_key = text(256);
  });
  BOOST_TEST(largest.has_value());
}

BOOST_AUTO_TEST_CASE(a_session_gets_another_number_and_name) {
  random_cases random;
  auto file = random_file(random, 8);
  const auto moved = readdressed(file, 12345, {"tenant", "copy"});
  BOOST_TEST(moved.session.uid == 12345u);
  BOOST_TEST((moved.session.key == session_key{"tenant", "copy"}));
  BOOST_TEST((moved.versions == file.versions));
  BOOST_TEST((read_session_file(write_session_file(moved, ""), {}).value() == moved));
  for (std::size_t i = 0; i < file.states.size(); ++i) {
    const auto before = decode_state(file.states[i], test::small_layout(), "model").value();
    const auto after = decode_state(moved.states[i], test::small_layout(), "model").value();
    BOOST_TEST((before.state == after.state));
    BOOST_TEST((after.label.key == state_key{12345, before.label.key.number}));
    BOOST_TEST(after.label.tenant == "tenant");
  }
}

// With a search from the first version for each state this takes hours.
BOOST_AUTO_TEST_CASE(a_file_with_very_many_states_is_read_at_once) {
  random_cases random;
  constexpr version_id count = 100'000;
  session_file file;
  file.session.uid = 5;
  file.session.key.id = "s";
  file.session.model_identity = "model";
  file.session.head = file.session.last_version = file.session.versions = count;
  const auto state = test::random_state(random, test::small_layout());
  for (version_id v = 1; v <= count; ++v) {
    file.versions.emplace_back().id = v;
    file.states.push_back(encode_state({"model", default_tenant, {5, v}, 0}, state, dtype::f16));
  }
  const auto bytes = write_session_file(file, "");
  const auto began = std::chrono::steady_clock::now();
  const auto read = read_session_file(bytes, {});
  BOOST_TEST((std::chrono::steady_clock::now() - began < std::chrono::seconds(20)));
  BOOST_REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  BOOST_TEST(read->states.size() == count);
}

BOOST_AUTO_TEST_CASE(the_memory_of_a_file_is_known_before_it_is_read) {
  random_cases random;
  for (std::uint32_t versions = 0; versions < 20; ++versions) {
    const auto file = random_file(random, versions);
    const auto size = size_of_session_file(write_session_file(file, versions % 2 == 0 ? "" : "key")).value();
    BOOST_TEST(size.versions == versions);
    std::uint64_t bytes = 0;
    for (const auto& v : file.versions) bytes += sizeof v + content_bytes(v);
    for (const auto& state : file.states) bytes += sizeof state;
    for (const auto& pair : file.session.metadata) bytes += sizeof pair + pair.first.size() + pair.second.size();
    BOOST_TEST(size.bytes >= bytes);
    std::uint64_t state_bytes = 0;
    for (const auto& state : file.states) state_bytes += state.size();
    BOOST_TEST(size.state_bytes == state_bytes);
  }
  auto file = random_file(random, 1);
  file.states.clear();
  file.versions[0].messages.assign(100'000, {});
  const auto bytes = write_session_file(file, "");
  BOOST_TEST(bytes.size() < 300'000u);
  BOOST_TEST(size_of_session_file(bytes)->bytes >= 100'000 * sizeof(message));
  BOOST_TEST(read_session_file(bytes, {})->session.log_bytes >= 100'000 * sizeof(message));
  refused(size_of_session_file(bytes.substr(1)), error_kind::bad_file, "session file");
}

BOOST_AUTO_TEST_CASE(shared_versions_are_written_as_others) {
  random_cases random;
  const auto file = random_file(random, 9);
  std::vector<shared_version> shared;
  for (const auto& v : file.versions) shared.push_back(std::make_shared<const version_record>(v));
  for (const char* key : {"", "key"})
    BOOST_TEST(write_session_file(file.session, shared, file.states, key, 10'000) == write_session_file(file, key));
}
