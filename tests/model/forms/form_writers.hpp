#pragma once
#include <functional>
#include <string>
#include <vector>

#include "model/checkpoint.hpp"
#include "tests/model/checkpoint_builders.hpp"

/// Writers of one model in the forms that conversions give it: names, transposes, fused and missing tensors.
namespace skein::test {

using plan = std::vector<tensor_plan>;

/// The tensors of a checkpoint, row-major.
[[nodiscard]] plan plan_of(const model::checkpoint& file);

/// A form, and what is made of a plan with original names.
struct model_form {
  std::string name;  ///< as checkpoint::form() gives it
  std::function<plan(const plan&)> write;
  bool keeps_unused = true;  ///< layer 0's value residual is in the file
};
[[nodiscard]] const std::vector<model_form>& forms_of_7();
[[nodiscard]] const std::vector<model_form>& forms_of_6();
[[nodiscard]] const std::vector<model_form>& forms_of_5();

/// The plan without layer 0's value residual.
[[nodiscard]] plan without_unused(plan tensors);

}  // namespace skein::test
