// Shows that the program finds, loads and uses a GPU back end, and how it answers where there is none; by running the
// built program with the emulator in the place of libskein_cuda.so and libskein_hip.so, on the small trained models of
// the oracle folder.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "app/device_choice.hpp"
#include "tests/cli/golden_logits.hpp"
#include "tests/cli/run_skein.hpp"
#include "tests/support/oracle.hpp"

using namespace skein;
using test::floats;
using test::golden_logits;
using test::golden_tokens;
using test::relative_error;
using test::run_skein;

namespace {

const std::vector<const char*> emulated{SKEIN_EMULATED};  // libraries, one for each width of a warp

const auto needs_oracle = boost::unit_test::precondition(test::have_oracle);

std::string tiny(const std::string& ending = ".safetensors") { return test::oracle() / ("models/tiny-7v0" + ending); }

struct logits_of_gpu {
  test::temporary_folder folder;
  std::string library;

  std::vector<float> operator()(const std::string& model, const std::string& dtype, const std::string& chunk) const {
    const std::string ids = folder.path() / "ids", out = folder.path() / "out";
    std::ofstream(ids) << golden_tokens("tiny-7v0");
    const auto ended = run_skein({"logits", "--model", model, "--device", "cuda", "--dtype", dtype, "--chunk", chunk,
                                  "--tokens-file", ids, "--out", out},
                                 {}, {{"SKEIN_CUDA_LIBRARY", library}});
    BOOST_REQUIRE_MESSAGE(ended.exit_code == 0, ended.err);
    return floats(out);
  }
};

/// `skein generate` on a device, with libraries in the place of libskein_cuda.so and libskein_hip.so.
test::outcome generate(const std::string& device, const std::string& cuda, const std::string& hip = "/nonexistent") {
  return run_skein({"generate", "--model", tiny(), "--device", device, "--prompt", "The cat ", "--max-tokens", "12",
                    "--temperature", "0"},
                   {}, {{"SKEIN_CUDA_LIBRARY", cuda}, {"SKEIN_HIP_LIBRARY", hip}});
}

void expect_unavailable(const test::outcome& ended, const std::string& needle) {
  BOOST_TEST(ended.exit_code == 69);
  BOOST_TEST(ended.out == "");
  BOOST_TEST(std::count(ended.err.begin(), ended.err.end(), '\n') == 1);
  BOOST_TEST(ended.err.find(needle) != std::string::npos, ended.err << " lacks " << needle);
}

}  // namespace

BOOST_AUTO_TEST_CASE(logits_agree_with_the_reference, *needs_oracle) {
  for (const char* library : emulated) {
    const logits_of_gpu logits{{}, library};
    const auto expected = golden_logits("tiny-7v0");
    BOOST_TEST(relative_error(logits(tiny(), "fp32", "16"), expected) < 1e-5);
    BOOST_TEST(relative_error(logits(tiny(), "fp16", "16"), expected) < 5e-3);
    const auto bf16 = logits(tiny("-bf16.pth"), "auto", "16");
    BOOST_TEST(relative_error(bf16, expected) < 3e-2);
    BOOST_TEST((logits(tiny("-bf16.pth"), "bf16", "1") == bf16));
  }
}

BOOST_AUTO_TEST_CASE(text_is_what_the_cpu_writes, *needs_oracle) {
  const auto on_cpu = generate("cpu", "/nonexistent");
  BOOST_TEST(on_cpu.out.size() > 0u);
  for (const char* device : {"cuda:0", "auto"}) {
    const auto on_gpu = generate(device, emulated.back());
    BOOST_TEST(on_gpu.exit_code == 0, on_gpu.err);
    BOOST_TEST(on_gpu.out == on_cpu.out);
  }
  for (const char* device : {"hip", "hip:0", "auto"}) {
    const auto on_gpu = generate(device, "/nonexistent", emulated.back());
    BOOST_TEST(on_gpu.exit_code == 0, on_gpu.err);
    BOOST_TEST(on_gpu.out == on_cpu.out);
  }
}

BOOST_AUTO_TEST_CASE(a_quantised_file_gives_the_logits_of_its_original, *needs_oracle) {
  for (const std::string format : {"int8", "fp8", "int4-32", "nf4"}) BOOST_TEST_CONTEXT(format) {
      const test::temporary_folder folder;
      const std::string small = folder.path() / "small.safetensors";
      const auto made = run_skein({"convert", tiny("-bf16.pth"), small, "--dtype", format});
      BOOST_REQUIRE_MESSAGE(made.exit_code == 0, made.err);
      const logits_of_gpu logits{{}, emulated.front()};
      BOOST_TEST((logits(small, "auto", "8") == logits(tiny("-bf16.pth"), format, "8")));
    }
}

BOOST_AUTO_TEST_CASE(a_tuned_model_is_found_when_it_is_loaded, *needs_oracle) {
  const test::temporary_folder folder;
  const std::string model = folder.path() / "m.safetensors";
  std::filesystem::copy_file(test::oracle() / "models/quirk-base.safetensors", model);  // the smallest
  const std::vector<std::pair<std::string, std::string>> on_gpu{{"SKEIN_CUDA_LIBRARY", emulated.front()}};
  const auto tuned = run_skein({"tune", "--model", model, "--device", "cuda", "--seconds", "0"}, {}, on_gpu);
  BOOST_TEST(tuned.exit_code == 0, tuned.err);
  BOOST_TEST(tuned.out.find("Written to " + model + ".tuning.json") != std::string::npos, tuned.out);

  // A damaged file changes nothing.
  const auto logits = [&](const std::string& content) {
    const std::string ids = folder.path() / "ids", out = folder.path() / "out";
    std::ofstream(ids) << "1,2,3,4,5,6,7,8";
    std::ofstream(model + ".tuning.json") << content;
    const auto ended =
        run_skein({"logits", "--model", model, "--device", "cuda", "--chunk", "1", "--tokens-file", ids, "--out", out},
                  {}, on_gpu);
    BOOST_REQUIRE_MESSAGE(ended.exit_code == 0, ended.err);
    return std::pair(floats(out), ended.err);
  };
  const auto [plain, silent] = logits(R"({"entries": []})");
  const auto [same, warned] = logits("{");
  BOOST_TEST((plain == same));
  BOOST_TEST(warned.find("is not JSON") != std::string::npos, warned);

  const auto on_cpu = run_skein({"tune", "--model", model, "--device", "cpu"});
  BOOST_TEST(on_cpu.exit_code != 0);
  BOOST_TEST(on_cpu.err.find("a CPU has nothing to tune") != std::string::npos, on_cpu.err);
}

BOOST_AUTO_TEST_CASE(what_is_not_there_is_said_in_a_line, *needs_oracle) {
  expect_unavailable(generate("cuda", "/nonexistent"), "libskein_cuda.so is not installed");
  expect_unavailable(generate("cuda:1", emulated.front()),
                     "device: cuda:1 is not available: this machine has only cuda:0");
  for (const char* device : {"cuda:0+1", "hip:0+1"})
    expect_unavailable(generate(device, emulated.front(), emulated.front()),
                       "is not supported; accepted: auto, cpu, cuda, cuda:N, hip, hip:N");
  expect_unavailable(generate("hip:0", emulated.front()),
                     "device: hip:0 is not available: libskein_hip.so is not installed");
  expect_unavailable(generate("hip:1", "/nonexistent", emulated.front()),
                     "device: hip:1 is not available: this machine has only hip:0");

  const test::temporary_folder folder;
  const std::string damaged = folder.path() / "damaged.so";
  std::ofstream(damaged) << "no library";
  expect_unavailable(generate("cuda", damaged), "cannot be loaded");
  expect_unavailable(generate("cuda", "/lib/x86_64-linux-gnu/libm.so.6"), "is not a Skein GPU library");
}

#if defined(SKEIN_CUDA_BACK_END)
// The library itself loads anywhere: what is missing then is the driver or the device.
BOOST_AUTO_TEST_CASE(the_cuda_library_loads_without_a_driver, *needs_oracle) {
  const auto ended = generate("cuda", SKEIN_CUDA_BACK_END);
  if (ended.exit_code != 0) expect_unavailable(ended, "device: cuda is not available: GPU: ");
}
#endif

#if defined(SKEIN_HIP_BACK_END)
BOOST_AUTO_TEST_CASE(the_hip_library_loads_without_a_driver, *needs_oracle) {
  const auto ended = generate("hip:0", "/nonexistent", SKEIN_HIP_BACK_END);
  if (ended.exit_code == 0) return;
  expect_unavailable(ended, "device: hip:0 is not available: GPU: ");
  const auto on_cpu = generate("auto", "/nonexistent", SKEIN_HIP_BACK_END);
  BOOST_TEST(on_cpu.exit_code == 0);
  BOOST_TEST(on_cpu.out == generate("cpu", "/nonexistent").out);
  BOOST_TEST(on_cpu.err == "");
}
#endif

BOOST_AUTO_TEST_CASE(without_a_gpu_the_cpu_does_it, *needs_oracle) {
  const auto ended = generate("auto", "/nonexistent");
  BOOST_TEST(ended.exit_code == 0);
  BOOST_TEST(ended.err == "");
  BOOST_TEST(ended.out == generate("cpu", "/nonexistent").out);
}

// The line of the log in which a server says why it uses the CPU.
BOOST_AUTO_TEST_CASE(the_remark_says_why_each_installed_library_is_not_used) {
  const auto remark = [](const char* cuda, const char* hip) {
    setenv("SKEIN_CUDA_LIBRARY", cuda, 1);
    setenv("SKEIN_HIP_LIBRARY", hip, 1);
    const auto chosen = cli::choose_device("auto");
    BOOST_REQUIRE(chosen);
    BOOST_TEST(!chosen->gpu);
    return chosen->remark;
  };
  const std::string strange = "/lib/x86_64-linux-gnu/libm.so.6", none = strange + " is not a Skein GPU library";
  BOOST_TEST(remark("/nonexistent", "/nonexistent") == "no GPU library is installed");
  BOOST_TEST(remark(strange.c_str(), "/nonexistent") == none);
  BOOST_TEST(remark("/nonexistent", strange.c_str()) == none);
  BOOST_TEST(remark(strange.c_str(), strange.c_str()) == none + "; " + none);
#if defined(SKEIN_HIP_BACK_END)
  if (!std::filesystem::exists("/dev/kfd"))
    BOOST_TEST(remark("/nonexistent", SKEIN_HIP_BACK_END) == "GPU: there is no AMD GPU driver (/dev/kfd)");
#endif
}
