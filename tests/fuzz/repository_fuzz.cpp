// Fuzz entry of the JSON files beside a model: any bytes are read or refused as an index of shards, a configuration and
// a tokenizer.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "model/repository/model_config.hpp"
#include "model/repository/shard_index.hpp"
#include "model/repository/tokenizer_json.hpp"
#include "tests/model/memory_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace skein;
  const test::memory_file bytes({reinterpret_cast<const char*>(data), size});
  if (const auto index = model::shard_index::read(bytes.path()))
    for (const auto& [tensor, file] : index->entries())
      if (index->file_of(tensor) != file || file >= index->files().size()) std::abort();
  ignore(model::read_model_config(bytes.path()), "either answer is right");
  ignore(model::read_tokenizer_json(bytes.path()), "either answer is right");
  return 0;
}
