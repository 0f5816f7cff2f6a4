#include "tests/cli/golden_logits.hpp"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

/// The numbers of a list in the description of a case, with commas between them.
std::string list_in(const std::string& model, const std::string& name, const std::string& key) {
  const std::string json = content_of(oracle() / "golden" / model / (name + ".json")), opening = '"' + key + "\":[";
  const auto first = json.find(opening) + opening.size();
  return json.substr(first, json.find(']', first) - first);
}

}  // namespace

std::string golden_tokens(const std::string& model) { return list_in(model, "random-007", "tokens"); }

scored_text golden_text(const std::string& model) {
  scored_text made;
  std::istringstream tokens(list_in(model, "text-300", "tokens")), values(list_in(model, "text-300", "logprob_next"));
  for (std::string each; std::getline(tokens, each, ',');) made.text += static_cast<char>(std::stoi(each));
  for (std::string each; std::getline(values, each, ',');) made.log_probabilities.push_back(std::stod(each));
  return made;
}

std::vector<float> golden_logits(const std::string& model) {
  return floats(oracle() / "golden" / model / "random-007.bin");
}

std::vector<float> floats(const std::filesystem::path& path) {
  const std::string bytes = content_of(path);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  BOOST_REQUIRE_EQUAL(actual.size(), expected.size());
  double difference = 0, largest = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i])) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::abs(static_cast<double>(actual[i]) - expected[i]));
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
  }
  return difference / largest;
}

}  // namespace skein::test
