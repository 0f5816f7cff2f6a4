// Shows that records come back as they were written, and that no other bytes pass for one: each bit, each length, each
// owner and format is tried. By encoding and decoding in memory.
#include "storage/records/record_codec.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>

#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/failing_new.hpp"

using namespace skein;
using namespace skein::storage;
using test::failing_new;
using test::random_cases;

namespace {

using test::refused;

/// The record with other fields but a right checksum, as a program with a mistake would write it.
std::string resealed(record_kind kind, const std::function<void(record_writer&)>& fields,
                     std::uint32_t format = record_format) {
  record_writer out(kind, format);
  fields(out);
  return std::move(out).sealed();
}

}  // namespace

BOOST_AUTO_TEST_CASE(records_come_back_as_they_were) {
  random_cases random;
  for (int round = 0; round < 300; ++round) {
    const session_uid uid = random.below(1000);
    auto session = test::random_session(random, uid, random.bytes(1 + random.below(256)));
    session.made_empty = random.below(2) == 1;
    BOOST_TEST((decode_session(encode_session(session)).value() == session));
    const auto version = test::random_version(random, 1 + random.below(1000), 0);
    BOOST_TEST((decode_version(encode_version(uid, version), uid).value() == version));
    const running_turn turn{version};
    BOOST_TEST((decode_running(encode_running(uid, turn), uid).value() == turn));
    const state_entry prefix{{0, 7}, 33'000'000, -1, true, "tenant", "state", version.tokens};
    BOOST_TEST((decode_entry(encode_entry(prefix), {0, 7}).value() == prefix));
    const state_entry state{{uid + 1, 7}, 1, 2, false, {}, {}, {}};
    BOOST_TEST((decode_entry(encode_entry(state), {uid + 1, 7}).value() == state));
    const set_aside_record aside{"reason", 5, random.bytes(50)};
    BOOST_TEST((decode_set_aside(encode_set_aside(aside)).value() == aside));
  }
}

BOOST_AUTO_TEST_CASE(no_damaged_record_passes) {
  random_cases random;
  auto version = test::random_version(random, 3, 2);
  version.text.resize(20);
  version.prompt_bytes = 4;
  version.tokens = {1, 2, 3};
  version.prompt_tokens = 2;
  const std::string good = encode_version(9, version);
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    refused(decode_version(bad, 9), error_kind::damaged, "checksum");
  }
  for (std::size_t bytes = 0; bytes < good.size(); ++bytes)
    refused(decode_version(good.substr(0, bytes), 9), error_kind::damaged, "version record");
  refused(decode_version(good + '\0', 9), error_kind::damaged, "checksum");
}

BOOST_AUTO_TEST_CASE(a_record_under_another_key_or_of_another_kind_is_seen) {
  random_cases random;
  const auto version = test::random_version(random, 3, 2);
  refused(decode_version(encode_version(9, version), 8), error_kind::damaged, "session number 9");
  refused(decode_running(encode_version(9, version), 9), error_kind::damaged, "another kind");
  refused(decode_entry(encode_entry({{4, 5}, 1, 1, true, {}, {}, {}}), {4, 6}), error_kind::damaged, "another state");
  refused(decode_entry(encode_entry({{4, 5}, 1, 1, true, {}, {}, {}}), {0, 5}), error_kind::damaged, "another kind");
}

BOOST_AUTO_TEST_CASE(another_format_is_named) {
  for (const std::uint32_t format : {0u, 2u, 0xffffffffu}) {
    const auto got = decode_number(resealed(
                                       record_kind::counter, [](auto& out) { out.number(1u); }, format),
                                   record_kind::counter);
    refused(got, error_kind::conflict, "format " + std::to_string(format) + "; this program reads format 1");
  }
}

BOOST_AUTO_TEST_CASE(a_session_of_the_first_format_has_no_title) {
  const auto old = resealed(
      record_kind::session,
      [](record_writer& out) {
        out.number(session_uid{3});
        for (const char* text : {"tenant", "anna", "model", ""}) out.text(text);
        for (const std::uint64_t n : {2, 2, 2, 40, 99}) out.number(n);
        for (const std::int64_t ms : {5, 6}) out.number(ms);
      },
      1);
  const auto session = decode_session(old);
  BOOST_REQUIRE(session);
  BOOST_TEST(session->key.id == "anna");
  BOOST_TEST(session->used_ms == 6);
  BOOST_TEST((session->title.empty() && session->metadata.empty()));
  const auto found = session_at(old + "what follows");
  BOOST_REQUIRE(found);
  BOOST_TEST(found->whole);
  BOOST_TEST((decode_session(encode_session(*session)).value() == *session));
}

BOOST_AUTO_TEST_CASE(only_a_session_that_was_made_empty_has_the_third_format) {
  random_cases random;
  auto session = test::random_session(random, 3, "anna");
  const auto format = [&] { return encode_session(session)[4]; };
  BOOST_TEST(format() == 2);
  session.made_empty = true;
  BOOST_TEST(format() == 3);
  const auto found = session_at(encode_session(session) + "what follows");
  BOOST_REQUIRE(found);
  BOOST_TEST((found->whole && found->session == session));
}

BOOST_AUTO_TEST_CASE(fields_that_cannot_be_true_are_refused) {
  random_cases random;
  const auto refused_version = [&](const std::string& needle, const std::function<void(version_record&)>& spoil) {
    auto version = test::random_version(random, 3, 2);
    spoil(version);
    refused(decode_version(encode_version(9, version), 9), error_kind::damaged, needle);
  };
  refused_version("parent", [](auto& v) { v.parent = 3; });
  refused_version("parent", [](auto& v) { v.id = v.parent = 0; });
  refused_version("prompt has more",
                  [](auto& v) { v.prompt_tokens = static_cast<std::uint32_t>(v.tokens.size()) + 1; });
  refused_version("prompt is longer", [](auto& v) { v.prompt_bytes = v.text.size() + 1; });
  refused_version("than the session", [](auto& v) {
    v.tokens = {1, 2};
    v.prompt_tokens = 0;
    v.total_tokens = 1;
  });
  auto session = test::random_session(random, 1, "");
  refused(decode_session(encode_session(session)), error_kind::damaged, "name is empty or too long");
  session.key.id = std::string(257, 'a');
  refused(decode_session(encode_session(session)), error_kind::damaged, "name is empty or too long");
  session.key.id = "a";
  session.head = session.last_version + 1;
  refused(decode_session(encode_session(session)), error_kind::damaged, "head");
}

BOOST_AUTO_TEST_CASE(lengths_beyond_the_end_are_refused_before_memory_is_taken) {
  const auto counter = [](const std::function<void(record_writer&)>& fields) {
    return decode_set_aside(resealed(record_kind::set_aside, fields));
  };
  refused(counter([](auto& out) { out.number(~std::uint64_t{0}); }), error_kind::damaged, "beyond the end");
  refused(counter([](auto& out) { out.raw(std::string_view("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f")); }),
          error_kind::damaged, "does not end");
  refused(counter([](auto& out) { out.raw(std::string_view("\xff")); }), error_kind::damaged, "does not end");
  refused(counter([](auto& out) {
            out.text("why");
            out.number(1);
            out.text("record");
            out.text("more");
          }),
          error_kind::damaged, "left over");
  const auto entry = resealed(record_kind::prefix_entry, [](auto& out) {
    for (const unsigned n : {0u, 7u, 1u, 1u, 1u}) out.number(n);
    out.text("tenant");
    out.text("");
    out.number(~std::uint64_t{0} >> 2);  // tokens
  });
  refused(decode_entry(entry, {0, 7}), error_kind::damaged, "longer than the record");
}

// A search through damaged files meets records whose numbers are anything.
BOOST_AUTO_TEST_CASE(runs_of_deleted_versions_are_expanded_only_behind_a_right_checksum) {
  fork_origin origin{3, 0xfffffff0, 0xfffffff0, {}};
  for (version_id v = 2; v < 1000; ++v) origin.deleted.push_back(v + v / 100);
  const auto good = encode_origin(8, origin);
  BOOST_TEST((decode_origin(good, 8).value() == origin));
  const auto found = origin_at(good + "what follows");
  BOOST_REQUIRE(found);
  BOOST_TEST((found->origin == origin));
  auto bad = resealed(record_kind::fork_origin, [](record_writer& out) {
    for (const std::uint64_t n : {8ull, 3ull, 0xfffffff0ull, 0xfffffff0ull, 1ull, 1ull, 0xffffffe0ull}) out.number(n);
  });
  bad.back() = static_cast<char>(~bad.back());
  const failing_new lack(1 << 20);
  BOOST_TEST(!origin_at(bad).has_value());
}
