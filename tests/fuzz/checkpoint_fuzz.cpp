// Fuzz entry of the checkpoint readers: any bytes open or are refused; what opens can be read to its last byte.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "model/model_info.hpp"
#include "tests/model/memory_file.hpp"
#include "tests/model/read_in_place.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace skein;
  test::read_in_place(std::as_bytes(std::span(data, size)));
  const test::memory_file bytes({reinterpret_cast<const char*>(data), size});
  const auto file = model::checkpoint::open(bytes.path());
  if (!file) return 0;
  if (model::identity(*file, "").size() != 32) std::abort();
  const auto info = model::describe(*file);
  if (!info) return 0;
  ignore(model::bind(*file, *info), "either answer is right");
  // A file with a state inside serves as its own state-tuning file.
  ignore(model::load_tuned_state(bytes.path(), *info), "either answer is right");
  return 0;
}
