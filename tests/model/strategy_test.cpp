// Shows that every spelling of a strategy that the older servers know is read as they mean it, and that what this
// version cannot run is refused with what it can, and never run in another precision.
#include "model/strategy.hpp"

#include <boost/test/unit_test.hpp>

namespace {

using namespace skein;
using namespace skein::model;
using w = weight_form;
using a = activation_form;

strategy read(std::string_view text) {
  auto made = parse_strategy(text);
  BOOST_REQUIRE_MESSAGE(made, text << ": " << (made ? "" : made.error().message));
  return *made;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(strategies)

BOOST_AUTO_TEST_CASE(one_form_for_all_layers) {
  struct row {
    std::string_view text;
    w attention, ffn;
    a activations = a::chosen;
  };
  for (const row& r : {row{"", w::as_stored, w::as_stored},
                       row{"None", w::as_stored, w::as_stored},
                       row{"fp32", w::fp32, w::fp32, a::fp32},
                       row{"fp16", w::fp16, w::fp16, a::fp16},
                       row{" bf16 ", w::bf16, w::bf16, a::bf16},
                       row{"int8", w::int8, w::int8},
                       row{"fp16i8", w::int8, w::int8, a::fp16},
                       row{"bf16i8", w::int8, w::int8, a::bf16},
                       row{"quant", w::nf4, w::nf4},
                       row{"nf4", w::nf4, w::nf4},
                       row{"fp8", w::fp8, w::fp8},
                       row{"fp6", w::fp6, w::fp6},
                       row{"fp5", w::fp5, w::fp5},
                       row{"fp5c", w::fp5, w::fp5},
                       row{"int4", w::int4, w::int4},
                       row{"bnb_int4", w::int4, w::int4},
                       row{"hqq4", w::int4, w::int4},
                       row{"attn_int8_ffn_int4", w::int8, w::int4},
                       row{"attn_int8_ffn_fp5", w::int8, w::fp5},
                       row{"attn_int8_ffn_fp6", w::int8, w::fp6},
                       row{"attn_fp8_ffn_int4", w::fp8, w::int4},
                       row{"gemlite", w::int8, w::int8, a::fp16},
                       row{"cutlass", w::int8, w::int8, a::fp16}}) {
    BOOST_TEST_CONTEXT(r.text) {
      const strategy made = read(r.text);
      BOOST_REQUIRE(made.parts.size() == 1u);
      BOOST_TEST((made.parts[0] == strategy::part{"", 0, r.attention, r.ffn, r.activations, false}));
    }
  }
}

BOOST_AUTO_TEST_CASE(devices_and_their_layers) {
  BOOST_TEST((read("cpu fp32").parts[0] == strategy::part{"cpu", 0, w::fp32, w::fp32, a::fp32, false}));
  BOOST_TEST((read("cpu fp32i8").parts[0] == strategy::part{"cpu", 0, w::int8, w::int8, a::fp32, false}));
  const auto two = read("cuda fp16i8 *20 -> cuda fp16");
  BOOST_REQUIRE(two.parts.size() == 2u);
  BOOST_TEST((two.parts[0] == strategy::part{"cuda", 20, w::int8, w::int8, a::fp16, false}));
  BOOST_TEST((two.parts[1] == strategy::part{"cuda", 0, w::fp16, w::fp16, a::fp16, false}));
  BOOST_TEST((read("cuda fp16i8 *20+").parts[0] == strategy::part{"cuda", 20, w::int8, w::int8, a::fp16, true}));
  BOOST_TEST(read("cuda fp16i8 *20 -> cpu fp32").parts[1].device == "cpu");
  BOOST_TEST(read("cuda:0 fp16 *20 -> cuda:1 fp16").parts[1].device == "cuda:1");
}

BOOST_AUTO_TEST_CASE(batching_engines_and_fields) {
  BOOST_TEST(read("albatross workers=1 batch=32").replicas == 1u);
  BOOST_TEST((read("chirrup workers=2 batch=32").parts[0].attention == w::fp16));
  BOOST_TEST(read("chirrup workers=2 batch=32").replicas == 2u);
  const auto some = read("quant=8 quant_type=SF4 precision=Fp16");
  BOOST_REQUIRE(some.parts.size() == 2u);
  BOOST_TEST(some.parts[0].layers == 8u);
  BOOST_TEST((some.parts[0].ffn == w::sf4));
  BOOST_TEST((some.parts[1].ffn == w::fp16));
  BOOST_TEST((read("precision=Fp32").parts[0].ffn == w::fp32));
}

BOOST_AUTO_TEST_CASE(what_is_no_strategy_is_refused_with_what_is_one) {
  for (const char* text : {"fp17", "cuda fp16 fp16", "cuda:x fp16", "tpu fp16", "cuda fp16 *0", "cuda fp16 *x",
                           "cuda fp16 ->", "cuda fp16 -> cpu fp32", "fp16 *3 -> fp16", "albatross workers=x",
                           "albatross speed=9", "quant=3 quant_type=Q5", "precision=int8", "*3"}) {
    const auto made = parse_strategy(text);
    BOOST_REQUIRE_MESSAGE(!made, text);
    BOOST_TEST((made.error().kind == error_kind::invalid_argument));
    BOOST_TEST(made.error().field == "model_strategy");
    BOOST_TEST(made.error().message.find("available: fp32, fp16, bf16, int8") != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(what_is_built_is_run_and_nothing_else) {
  BOOST_TEST(buildable(read("")).value().dtype.empty());
  BOOST_TEST(buildable(read("fp16")).value().dtype == "fp16");
  BOOST_TEST(buildable(read("cpu bf16")).value().device == "cpu");
  BOOST_TEST(buildable(read("cpu bf16")).value().dtype == "bf16");
  BOOST_TEST(buildable(read("cuda:1 fp32")).value().device == "cuda:1");
  BOOST_TEST(buildable(read("hip fp16")).value().device == "hip");
  BOOST_TEST(buildable(read("albatross workers=1 batch=32")).value().dtype == "fp16");
  struct row {
    const char *text, *dtype, *weight_format;
  };
  for (const auto& [text, dtype, weight_format] :
       {row{"int8", "int8", ""}, row{"quant", "nf4", ""}, row{"fp8", "fp8", ""}, row{"fp6", "int8", ""},
        row{"fp5c", "int8", ""}, row{"attn_fp8_ffn_int4", "fp8", "att.*=fp8,ffn.*=int4"}, row{"cpu fp32i8", "int8", ""},
        row{"gemlite", "int8", ""}, row{"int4", "int4", ""}, row{"attn_int8_ffn_int4", "int8", "att.*=int8,ffn.*=int4"},
        row{"cpu fp16i8 *20 -> cpu fp16", "fp16", "att.*@0-19=int8,ffn.*@0-19=int8"},
        row{"quant=8 quant_type=NF4 precision=Fp16", "fp16", "att.*@0-7=nf4,ffn.*@0-7=nf4"}}) {
    BOOST_TEST_CONTEXT(text) {
      const auto plain = buildable(read(text));
      BOOST_REQUIRE(plain);
      BOOST_TEST(plain->dtype == dtype);
      BOOST_TEST(plain->weight_format == weight_format);
    }
  }
  for (const char* text : {"cuda fp16 *20+", "cuda:0 fp16 *20 -> cuda:1 fp16", "cuda fp16 *3", "mps fp16",
                           "chirrup workers=2", "cuda fp16i8 *20 -> cpu fp32"}) {
    const auto plain = buildable(read(text));
    BOOST_REQUIRE_MESSAGE(!plain, text);
    BOOST_TEST((plain.error().kind == error_kind::unsupported));
    BOOST_TEST(plain.error().message.find("available: ") != std::string::npos);
  }
}

BOOST_AUTO_TEST_SUITE_END()
