// The format in which the weights of a quantised file run, and its name, as --dtype and --weight-format choose it.
#include <boost/test/unit_test.hpp>

#include "app/open_model.hpp"
#include "tests/model/gguf_builders.hpp"
#include "tests/support/oracle.hpp"

namespace skein::test {
namespace {

const kernels::model_dims sizes{2, 64, 1, 64, 96, 40, 3, 2, 5, 6};

/// The name of the format in which a file runs.
std::string name_of(std::uint32_t type, const std::string& dtype, const std::string& weight_format = "") {
  const temporary_folder folder;
  const gguf_model_form form{.matrix = type};
  const auto path = folder.path() / "a.gguf";
  write_file(path, gguf_model_of(gguf_plan_of(random_rwkv7(sizes), form), form, 2, 64, 96).file());
  const auto model = cli::open_model(path);
  BOOST_REQUIRE_MESSAGE(model, (model ? "" : model.error().message));
  cli::engine_wish wish;
  wish.device = "cpu", wish.dtype = dtype, wish.weight_format = weight_format;
  wish.slots = 1, wish.max_tick_tokens = 8, wish.threads = 1;
  const auto engine = cli::open_engine(*model, wish);
  return engine ? (*engine)->info().weight_type : engine.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_quantised_file_runs_in_the_format_of_its_size_or_as_it_is_told) {
  BOOST_TEST(name_of(ggml_q8_0, "auto") == "int8-32 (Q8_0)");
  BOOST_TEST(name_of(ggml_q4_0, "auto") == "int4-32 (Q4_0)");
  BOOST_TEST(name_of(ggml_q5_1, "auto") == "int8 (Q5_1)");
  BOOST_TEST(name_of(ggml_q8_0, "auto", "head=fp16") == "int8-32 (Q8_0) (head=fp16)");
  BOOST_TEST(name_of(ggml_q8_0, "fp16") == "fp16");
  BOOST_TEST(name_of(ggml_q8_0, "int4") == "int4");
  BOOST_TEST(name_of(ggml_f16, "auto") == "fp16");
  BOOST_TEST(name_of(ggml_bf16, "auto") == "bf16");
}

}  // namespace skein::test
