// Shows that threads that write and read states and the owner of the log do not disturb each other.
#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

#include "storage/database/database_impl.hpp"
#include "storage/states/state_store.hpp"
#include "tests/storage/outcomes.hpp"
#include "tests/storage/random_records.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using namespace skein::storage;

namespace {

using test::large_layout;
using test::succeed;

}  // namespace

BOOST_AUTO_TEST_CASE(workers_and_the_owner_of_the_log_do_not_disturb_each_other) {
  const test::temporary_folder folder;
  const auto db = test::opened(folder.path());
  const auto layout = large_layout();
  state_store states(db, layout, "model", dtype::f32);
  std::atomic<int> wrong = 0;
  const auto work = [&](std::uint64_t owner) {
    auto state = model::state_of(layout, std::vector<float>(layout.floats()));
    for (std::uint64_t number = 1; number <= 12; ++number) {
      std::ranges::fill(model::floats_in(state), static_cast<float>(100 * owner + number));
      if (!states.put({"model", default_tenant, {owner, number}, number}, state)) ++wrong;
      const auto got = states.get({owner, number});
      if (!got || !*got || (**got).state != state) ++wrong;
    }
  };
  std::thread first(work, 1), second(work, 2), third(work, 3);
  for (int i = 0; i < 200; ++i)
    succeed(
        db->internals().write(safety::logged, [&](change_list& c) { c.put(family::running, "k", std::to_string(i)); }));
  first.join();
  second.join();
  third.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(states.list().value().size() == 36u);
}
