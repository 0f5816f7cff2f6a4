// Shows that states come back bit for bit (fp16: rounded), small through the log and large through blobs, also after a
// restart; that no other model's and no damaged state is taken; and that prefixes keep what leads to them.
#include "storage/states/state_store.hpp"

#include <boost/test/unit_test.hpp>
#include <cmath>
#include <limits>

#include "storage/database/database_impl.hpp"
#include "storage/records/storage_keys.hpp"
#include "storage/states/raw_states.hpp"
#include "storage/states/state_record.hpp"
#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;
using test::random_cases;

namespace {

using test::large_layout;
using test::refused;
using test::succeed;

state_label label_of(state_key key) { return {"model", default_tenant, key, 77}; }

}  // namespace

BOOST_AUTO_TEST_CASE(states_come_back_also_after_a_restart) {
  random_cases random;
  for (const auto& layout : {test::small_layout(), large_layout()}) {
    const test::temporary_folder folder;
    std::vector<model::state_value> all;
    for (int opening = 0; opening < 2; ++opening) {
      state_store states(test::opened(folder.path()), layout, "model", dtype::f32);
      for (std::size_t i = 0; i < all.size(); ++i) BOOST_TEST((states.get({5, i + 1}).value()->state == all[i]));
      for (int i = 0; i < 3; ++i) {
        all.push_back(test::random_state(random, layout));
        succeed(states.put(label_of({5, all.size()}), all.back()));
      }
      const auto got = states.get({5, all.size()}).value();
      BOOST_REQUIRE(got.has_value());
      BOOST_TEST((got->state == all.back()));
      BOOST_TEST(got->label.tokens == 77u);
      BOOST_TEST(got->label.tenant == default_tenant);
      const auto list = states.list().value();
      BOOST_TEST(list.size() == all.size());
      for (const auto& one : list) BOOST_TEST(one.bytes == states.record_bytes("model"));
    }
    state_store states(test::opened(folder.path()), layout, "model", dtype::f32);
    succeed(states.remove({5, 2}));
    BOOST_TEST(!states.get({5, 2}).value());
    BOOST_TEST(!states.get({2, 5}).value());
    BOOST_TEST((states.get({5, 3}).value()->state == all[2]));
    BOOST_TEST(states.list().value().size() == all.size() - 1);
  }
}

BOOST_AUTO_TEST_CASE(prefixes_keep_their_tokens_and_are_apart_from_sessions) {
  random_cases random;
  const test::temporary_folder folder;
  const auto state = test::random_state(random, test::small_layout());
  const std::vector<token_id> tokens{5, 0, 70000};
  {
    state_store states(test::opened(folder.path()), test::small_layout(), "model", dtype::f32);
    succeed(states.put_prefix({"model", "t", {0, 3}, 3}, tokens, "tuned", state));
    succeed(states.put(label_of({3, 1}), state));
  }
  state_store states(test::opened(folder.path()), test::small_layout(), "model", dtype::f32);
  const auto prefixes = states.list_prefixes().value();
  BOOST_REQUIRE(prefixes.size() == 1u);
  BOOST_TEST((prefixes[0].key == state_key{0, 3}));
  BOOST_TEST(prefixes[0].tenant == "t");
  BOOST_TEST(prefixes[0].initial_state == "tuned");
  BOOST_TEST((prefixes[0].tokens == tokens));
  BOOST_TEST((states.get({0, 3}).value()->state == state));
  BOOST_TEST(states.list().value().size() == 1u);
  succeed(states.remove({0, 3}));
  BOOST_TEST(states.list_prefixes().value().empty());
  BOOST_TEST(!states.get({0, 3}).value());
}

BOOST_AUTO_TEST_CASE(what_was_not_written_in_full_goes_at_the_next_start) {
  const test::temporary_folder folder;
  const auto layout = large_layout();
  const state_key whole{1, 1}, half{1, 2}, prefix{0, 3};
  {
    const auto db = test::opened(folder.path());
    state_store store(db, layout, "model", dtype::f32);
    const auto state = model::state_of(layout, std::vector<float>(layout.floats(), 1.0f));
    succeed(store.put(label_of(whole), state));
    for (const state_key& key : {half, prefix}) {  // as far as a process got that died in the middle of it
      succeed(db->internals().write(safety::logged, [&](change_list& changes) {
        state_entry entry;
        entry.key = key;
        entry.bytes = 2 * state_part_bytes;
        entry.complete = false;
        changes.put(family::state_index, keys::of_state(key), encode_entry(entry));
        std::string part = keys::of_state(key);
        keys::append(part, std::uint32_t{0});
        changes.put(key.owner == 0 ? family::prefixes : family::states, part, std::string(state_part_bytes, 'x'));
      }));
    }
  }
  const auto db = test::opened(folder.path());
  state_store store(db, layout, "model", dtype::f32);
  succeed(store.drop_incomplete());
  BOOST_TEST(store.get(whole).value().has_value());
  const auto count = [&](family where) {
    std::size_t records = 0;
    succeed(db->internals().scan(where, {}, {}, [&](auto, auto) { return ++records > 0; }));
    return records;
  };
  BOOST_TEST(count(family::state_index) == 1u);
  BOOST_TEST(count(family::states) == 2u);
  BOOST_TEST(count(family::prefixes) == 0u);
}

BOOST_AUTO_TEST_CASE(half_floats_round_to_nearest_and_stay_finite) {
  const auto layout = test::small_layout();
  model::state_value state = model::state_of(layout, std::vector<float>(layout.floats(), 0.5f));
  const std::vector<std::pair<float, float>> cases{{0.0f, 0.0f},
                                                   {-0.0f, -0.0f},
                                                   {1.0009765625f, 1.0009765625f},
                                                   {1.0004f, 1.0f},
                                                   {65504.0f, 65504.0f},
                                                   {1e9f, 65504.0f},
                                                   {-65520.0f, -65504.0f},
                                                   {6e-8f, 0x1p-24f},
                                                   {1e-30f, 0.0f},
                                                   {std::numeric_limits<float>::infinity(), 65504.0f}};
  for (std::size_t i = 0; i < cases.size(); ++i) model::floats_in(state)[i] = cases[i].first;
  const auto record = encode_state(label_of({1, 1}), state, dtype::f16);
  const auto got = floats_of(decode_state(record, layout, "model").value().state);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    BOOST_TEST(got[i] == cases[i].second);
    BOOST_TEST(std::signbit(got[i]) == std::signbit(cases[i].second));
  }
  BOOST_TEST(got.back() == 0.5f);
  BOOST_TEST(record.size() < encode_state(label_of({1, 1}), state, dtype::f32).size());
}

BOOST_AUTO_TEST_CASE(a_store_reads_states_of_either_type) {
  random_cases random;
  const auto db = test::opened();
  auto state = test::random_state(random, test::small_layout());
  for (float& f : model::floats_in(state)) f = std::round(f * 8) / 8;  // a half float each
  state_store fp32(db, test::small_layout(), "model", dtype::f32);
  state_store fp16(db, test::small_layout(), "model", dtype::f16);
  succeed(fp32.put(label_of({1, 1}), state));
  succeed(fp16.put(label_of({1, 2}), state));
  BOOST_TEST((fp32.get({1, 2}).value()->state == state));
  BOOST_TEST((fp16.get({1, 1}).value()->state == state));
}

// Without a type of its own, a store keeps what it is given.
BOOST_AUTO_TEST_CASE(an_fp16_state_is_stored_bit_for_bit_in_half_the_bytes) {
  random_cases random;
  const auto layout = large_layout();
  const model::state_format format(layout, dtype::f16);
  model::state_value state{format, std::vector<std::byte>(format.bytes())};
  for (std::byte& b : state.bytes) b = static_cast<std::byte>(random.below(256));  // NaNs too
  const test::temporary_folder folder;
  {
    state_store states(test::opened(folder.path()), format, "model", std::nullopt);
    succeed(states.put(label_of({5, 1}), state));
    succeed(states.put_prefix({"model", "t", {0, 1}, 3}, std::vector<token_id>{1, 2, 3}, "", state));
  }
  state_store states(test::opened(folder.path()), format, "model", std::nullopt);
  for (const state_key& key : {state_key{5, 1}, state_key{0, 1}}) BOOST_TEST((states.get(key).value()->state == state));
  const auto stored = states.list().value().front().bytes,
             wide = state_store(test::opened(), layout, "model", {}).record_bytes("model");
  BOOST_TEST(stored == states.record_bytes("model"));
  BOOST_TEST(stored - layout.floats() * 2 == wide - layout.floats() * 4);  // all that is no number
}

BOOST_AUTO_TEST_CASE(a_stored_state_is_converted_to_the_type_of_the_engine) {
  random_cases random;
  const auto db = test::opened();
  const auto layout = test::small_layout();
  const model::state_format narrow(layout, dtype::f16);
  const auto state = test::random_state(random, layout);
  state_store of_fp32(db, layout, "model", {}), of_fp16(db, narrow, "model", {});
  succeed(of_fp32.put(label_of({1, 1}), state));
  const auto narrowed = converted(state, narrow);
  BOOST_TEST((of_fp16.get({1, 1}).value()->state == narrowed));
  succeed(of_fp16.put(label_of({1, 2}), narrowed));
  BOOST_TEST((of_fp32.get({1, 2}).value()->state == converted(narrowed, layout)));
  // A store with a type of its own, between engines with another.
  state_store in_fp16(db, layout, "model", dtype::f16), in_fp32(db, narrow, "model", dtype::f32);
  succeed(in_fp16.put(label_of({1, 3}), state));
  BOOST_TEST((in_fp16.get({1, 3}).value()->state == converted(narrowed, layout)));
  succeed(in_fp32.put(label_of({1, 4}), narrowed));
  BOOST_TEST((in_fp32.get({1, 4}).value()->state == narrowed));
}

// Of a GPU with fp16 states: token shifts in fp16, the memory in fp32.
BOOST_AUTO_TEST_CASE(each_part_of_a_state_of_version_4_keeps_its_type) {
  random_cases random;
  const model::state_layout layout{.layers = 2, .embd = 8, .channels = 8};
  const model::state_format mixed(layout, dtype::f16);
  const auto state = converted(test::random_state(random, layout), mixed);
  for (const std::optional<dtype> type : {std::optional<dtype>(), {dtype::f16}, {dtype::f32}}) {
    const auto record = encode_state(label_of({1, 1}), state, type);
    BOOST_TEST(record[4] == 2);  // the format
    BOOST_TEST(record.size() == state_record_bytes(label_of({1, 1}), mixed, type));
    BOOST_TEST((decode_state(record, mixed, "model").value().state == state));
    BOOST_TEST((decode_state(record, layout, "model").value().state == converted(state, layout)));
    const auto moved = relabelled(read_state_record(record).value(), label_of({8, 9}));
    BOOST_TEST((decode_state(moved, mixed, "model").value().state == state));
    std::string bad = record.substr(0, record.size() - 8);
    bad[bad.find("att.x_prev") + 10] = 2;  // a type that does not exist
    const auto sum = checksum(bad);
    for (int i = 0; i < 8; ++i) bad.push_back(static_cast<char>(sum >> 8 * i));
    refused(decode_state(bad, mixed, "model"), error_kind::damaged, "the type of the floats is unknown");
  }
  const auto wide = test::random_state(random, layout);  // of a CPU
  const auto record = encode_state(label_of({1, 1}), wide, dtype::f16);
  BOOST_TEST(record[4] == 1);
  BOOST_TEST((decode_state(record, layout, "model").value().state == wide));
}

BOOST_AUTO_TEST_CASE(another_models_state_is_refused_with_both_named_and_stays) {
  random_cases random;
  const auto db = test::opened();
  state_store mine(db, test::small_layout(), "model", dtype::f32);
  state_store other(db, test::small_layout(), "other", dtype::f32);
  succeed(mine.put(label_of({1, 1}), test::random_state(random, test::small_layout())));
  refused(other.get({1, 1}), error_kind::conflict, "model model");
  refused(other.get({1, 1}), error_kind::conflict, "model other");
  BOOST_TEST(mine.get({1, 1}).value().has_value());
}

BOOST_AUTO_TEST_CASE(no_damaged_state_record_passes) {
  random_cases random;
  const auto layout = test::small_layout();
  const auto good = encode_state(label_of({1, 1}), test::random_state(random, layout), dtype::f32);
  for (std::size_t bit = 0; bit < 8 * good.size(); bit += 3) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ 1 << bit % 8);
    refused(decode_state(bad, layout, "model"), error_kind::damaged, "checksum");
  }
  for (std::size_t bytes = 0; bytes < good.size(); bytes += 7)
    refused(decode_state(good.substr(0, bytes), layout, "model"), error_kind::damaged, "state record");
  auto wider = layout;
  wider.embd += 8;
  refused(decode_state(good, wider, "model"), error_kind::damaged, "6 arrays");
}

BOOST_AUTO_TEST_CASE(a_damaged_state_is_set_aside_and_then_unknown) {
  random_cases random;
  const auto db = test::opened();
  const auto layout = test::small_layout();
  state_store states(db, layout, "model", dtype::f32);
  const auto state = test::random_state(random, layout);
  for (const std::uint64_t version : {1, 2, 3}) succeed(states.put(label_of({9, version}), state));
  auto bad = encode_state(label_of({9, 2}), state, dtype::f32);
  bad[bad.size() / 2] = static_cast<char>(~bad[bad.size() / 2]);
  const auto overwrite = [&](std::uint64_t version, const std::string& record) {
    succeed(db->internals().write(safety::logged, [&](change_list& changes) {
      changes.put(family::states, keys::of_state({9, version}) + std::string(4, '\0'), record);
    }));
  };
  overwrite(2, bad);
  refused(states.get({9, 2}), error_kind::damaged, "version 2 of session number 9");
  BOOST_TEST(!states.get({9, 2}).value());  // so that it is built again from the log
  BOOST_TEST(states.list().value().size() == 2u);
  overwrite(3, encode_state(label_of({9, 1}), state, dtype::f32));
  refused(states.get({9, 3}), error_kind::damaged, "version 1 of session number 9");
  BOOST_TEST((states.get({9, 1}).value()->state == state));
}

BOOST_AUTO_TEST_CASE(relabelling_keeps_the_floats) {
  random_cases random;
  const auto layout = test::small_layout();
  const auto state = test::random_state(random, layout);
  const auto record = encode_state(label_of({1, 1}), state, dtype::f16);
  const auto contents = read_state_record(record).value();
  const auto moved = relabelled(contents, {"model", "t", {8, 9}, 77});
  BOOST_TEST(
      (decode_state(moved, layout, "model").value().state == decode_state(record, layout, "model").value().state));
  BOOST_TEST((decode_state(moved, layout, "model").value().label.key == state_key{8, 9}));
}
