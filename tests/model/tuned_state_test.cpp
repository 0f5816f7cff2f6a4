// A state-tuning file becomes a state in the model's layout: its matrices at their places, zeros elsewhere.
#include <boost/test/unit_test.hpp>
#include <limits>

#include "model/model_info.hpp"
#include "tests/model/checkpoint_builders.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

model::model_info two_layers() {
  model::model_info info;
  info.layers = 2;
  info.state = {2, 3, 1, 2};
  return info;
}

std::string floats(std::initializer_list<float> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(float)};
}

struct state_file {
  temporary_folder folder;
  std::filesystem::path path = folder.path() / "state.pth";

  result<std::vector<float>> load(const std::vector<tensor_plan>& plan, const model::model_info& info = two_layers()) {
    write_file(path, pth_of(plan));
    return model::load_tuned_state(path, info);
  }
};

tensor_plan layer(std::uint32_t index, std::initializer_list<float> values = {1, 2, 3, 4}) {
  return {"blocks." + std::to_string(index) + ".att.time_state", dtype::f32, {1, 2, 2}, floats(values)};
}

void check_refused(const result<std::vector<float>>& state, error_kind kind, std::string_view reason) {
  BOOST_REQUIRE(!state);
  BOOST_TEST((state.error().kind == kind));
  BOOST_TEST_CONTEXT(state.error().message) BOOST_TEST(state.error().message.find(reason) != std::string::npos);
}

BOOST_FIXTURE_TEST_SUITE(tuned_state, state_file)

BOOST_AUTO_TEST_CASE(matrices_come_to_their_places) {
  const auto state = load({layer(1, {5, 6, 7, 8}), layer(0)});
  BOOST_REQUIRE(state);
  const std::vector<float> expected = {0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 5, 6, 7, 8};
  BOOST_TEST(*state == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_state_of_fewer_layers_is_refused) {
  check_refused(load({layer(0)}), error_kind::bad_file, "'blocks.1.att.time_state' is missing (the model has 2 layers");
}

BOOST_AUTO_TEST_CASE(a_state_of_more_layers_is_refused) {
  check_refused(load({layer(0), layer(1), layer(2)}), error_kind::bad_file,
                "a model with more layers (the model has 2");
}

BOOST_AUTO_TEST_CASE(a_state_of_other_shape_is_refused_with_both_shapes) {
  auto wide = layer(1);
  wide.shape = {4, 1, 1};
  check_refused(load({layer(0), wide}), error_kind::bad_file, "has shape (4, 1, 1), expected (1, 2, 2)");
}

BOOST_AUTO_TEST_CASE(a_state_with_nan_or_infinity_is_refused_with_its_name) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    check_refused(load({layer(0), layer(1, {1, 2, bad, 4})}), error_kind::bad_file,
                  "tensor 'blocks.1.att.time_state' has NaN or infinity");
    BOOST_TEST(model::load_tuned_state(path, two_layers(), true).has_value());
  }
}

BOOST_AUTO_TEST_CASE(a_missing_file_is_told_from_a_bad_one) {
  check_refused(model::load_tuned_state(folder.path() / "absent", two_layers()), error_kind::missing_file, "absent");
}

BOOST_AUTO_TEST_CASE(a_version_without_such_states_is_unsupported) {
  model::model_info v4;
  v4.version = model::rwkv_version::v4;
  check_refused(load({layer(0)}, v4), error_kind::unsupported, "RWKV-4");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::test
