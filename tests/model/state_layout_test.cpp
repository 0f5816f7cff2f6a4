// The arrays of a state lie back to back in the canonical order and cover it exactly.
#include "model/state_layout.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <numeric>

namespace skein::model {

BOOST_AUTO_TEST_CASE(the_arrays_of_a_state_lie_back_to_back) {
  const state_layout layout{3, 128, 2, 64};
  const auto arrays = layout.arrays();
  BOOST_REQUIRE(arrays.size() == 9u);
  std::size_t offset = 0;
  for (const auto& array : arrays) {
    BOOST_TEST(array.offset == offset);
    offset += std::accumulate(array.shape.begin(), array.shape.end(), std::size_t{1}, std::multiplies<>());
  }
  BOOST_TEST(offset == layout.floats());
  BOOST_TEST(arrays[3].name == "blocks.1.att.x_prev");
  BOOST_TEST(arrays[4].name == "blocks.1.ffn.x_prev");
  BOOST_TEST(arrays[5].name == "blocks.1.att.wkv");
  BOOST_TEST(arrays[5].offset == layout.wkv(1));
  BOOST_TEST((arrays[5].shape == std::vector<std::int64_t>{2, 64, 64}));
}

}  // namespace skein::model
