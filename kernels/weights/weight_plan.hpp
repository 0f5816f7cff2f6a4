#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "kernels/weights/tensor_spec.hpp"
#include "kernels/weights/weight_format.hpp"

namespace skein::kernels {

/// The format of each matrix of a model, the same for every back end. Embeddings and the factors of low-rank pairs keep
/// the base type, which has 16 or 32 bits; vectors are fp32 everywhere.
class weight_plan {
 public:
  struct rule {
    std::string pattern;  ///< of a tensor's name without ".weight", e.g. "att.key", "ffn.*", "head"; * is any text
    weight_format format;
    std::uint32_t first_layer = 0, end_layer = ~0u;  ///< only in these layers
    std::string written = {};                        ///< an override's text, "ffn.*@0-7=int8"; empty: another rule

    /// `name` as from pattern_name.
    [[nodiscard]] bool matches(std::string_view name, std::uint32_t layer) const;
  };

  /// Every matrix in one type. A type that is no format of matrices is refused by the maker that gets the plan.
  weight_plan(dtype type);  // NOLINT(google-explicit-constructor): most plans are one type

  /// The plan of a format's name: fp32, bf16, fp16, or a quantised one (weight_format.hpp) with its recipe:
  ///   int8, fp8  all matrices and the head in this format
  ///   int4, nf4  the same in 4 bits, except the head: int8
  /// `overrides`: "PATTERN=FORMAT,..." or empty; the first pattern that matches decides, before the recipe. A pattern
  /// may end in @FIRST-LAST, for these layers only: "ffn.*@0-7=int8". `base`: the floating type of what is not
  /// quantised. Errors: invalid_argument (dtype, weight_format).
  [[nodiscard]] static result<weight_plan> parse(std::string_view name, std::string_view overrides, dtype base);

  /// The plan of a file that stores its matrices in several formats: `rules` before the base type, `overrides` before
  /// them, under a name of its own. Errors: invalid_argument (weight_format).
  [[nodiscard]] static result<weight_plan> of_file(std::string name, std::vector<rule> rules,
                                                   std::string_view overrides, dtype base);

  /// Puts rules before those of the recipe.
  void prefer(std::vector<rule> rules);

  [[nodiscard]] dtype base() const { return base_; }
  [[nodiscard]] bool quantised() const;
  /// Whether a rule has that format, even if it matches no matrix.
  [[nodiscard]] bool has(weight_element element) const;
  /// The format of a matrix of a layer, or of one outside of the layers (layer 0).
  [[nodiscard]] weight_format of(const tensor_spec& spec, std::uint32_t layer) const;
  /// The name of a tensor as patterns name it.
  [[nodiscard]] static std::string_view pattern_name(const tensor_spec& spec);
  [[nodiscard]] const std::vector<rule>& rules() const { return rules_; }
  /// For logs and /v1/models: the name it was parsed from.
  [[nodiscard]] const std::string& name() const { return name_; }

 private:
  dtype base_;
  std::string name_;
  std::vector<rule> rules_;  ///< the first that matches decides; none: the base type
};

}  // namespace skein::kernels
