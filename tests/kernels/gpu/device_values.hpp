#pragma once
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <span>
#include <vector>

#include "tests/kernels/gpu/batch_upload.hpp"
#include "tests/kernels/gpu/element_values.hpp"

/// Values between the host and the device for tests of single kernels.
namespace skein::test {

using kernels::gpu::require;

/// An array on the device, filled from the host, with guard bytes behind it that no kernel may touch.
class device_values {
 public:
  device_values(const std::vector<float>& values, element type)
      : type_(type), count_(values.size()), memory_(count_ * element_bytes(type) + guard_bytes) {
    auto bytes = encode(values, stored_as(type));
    bytes.resize(memory_.size(), guard);
    kernels::gpu::pinned_buffer<std::byte> pinned(bytes.size());
    std::ranges::copy(bytes, pinned.data());
    const kernels::gpu::stream in;
    require(kernels::gpu::copy_to_device(memory_.data(), pinned.data(), bytes.size(), in));
    require(in.synchronize());
  }

  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] std::size_t bytes() const { return count_ * element_bytes(type_); }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(memory_.data()); }

  /// Waits for the stream; the values as fp32.
  [[nodiscard]] std::vector<float> read(const kernels::gpu::stream& in) const {
    kernels::gpu::pinned_buffer<std::byte> pinned(memory_.size());
    require(kernels::gpu::copy_to_host(pinned.data(), memory_.data(), memory_.size(), in));
    require(in.synchronize());
    for (const std::byte b : pinned.all().last(guard_bytes)) BOOST_REQUIRE(b == guard);
    const std::vector<std::byte> bytes(pinned.all().begin(), pinned.all().end());
    std::vector<float> values(count_);
    copy_to_f32(view_of(bytes, stored_as(type_), {static_cast<std::int64_t>(count_)}), values);
    return values;
  }

 private:
  static constexpr std::size_t guard_bytes = 256;
  static constexpr std::byte guard{0x5a};

  element type_;
  std::size_t count_;
  kernels::gpu::device_buffer<std::byte> memory_;
};

/// A count of rows where kernels look for it.
class row_count {
 public:
  explicit row_count(std::uint32_t rows) : memory_(1) {
    const kernels::gpu::pinned_buffer<std::uint32_t> pinned(1);
    *pinned.data() = rows;
    const kernels::gpu::stream in;
    require(kernels::gpu::copy_to_device(memory_.data(), pinned.data(), pinned.bytes(), in));
    require(in.synchronize());
  }
  [[nodiscard]] const std::uint32_t* data() const { return memory_.data(); }

 private:
  kernels::gpu::device_buffer<std::uint32_t> memory_;
};

/// A tick of random runs in scattered slots, also on the device.
struct random_batch {
  random_batch(random_numbers& random, std::uint32_t runs_max, std::uint32_t rows_each_max, std::uint32_t slots,
               std::uint32_t vocab, const kernels::gpu::stream& in)
      : upload(runs_max * rows_each_max, runs_max, runs_max * rows_each_max) {
    std::vector<slot_id> free(slots);
    for (slot_id s = 0; s < slots; ++s) free[s] = s;
    for (std::uint32_t i = 1 + random.below(runs_max); i > 0; --i) {
      const std::uint32_t taken = random.below(static_cast<std::uint32_t>(free.size()));
      const std::uint32_t rows = random.below(3) == 0 ? 1 : 1 + random.below(rows_each_max);
      runs.push_back({free[taken], static_cast<std::uint32_t>(ids.size()), rows});
      free.erase(free.begin() + taken);
      for (std::uint32_t r = 0; r < rows; ++r) ids.push_back(static_cast<token_id>(random.below(vocab)));
    }
    require(upload.send_rows({ids, runs}, in));
  }
  /// The first rows of long runs, all of them or all but a few, go in chunks.
  void chunk_long_runs(random_numbers& random, const kernels::gpu::stream& in) {
    using kernels::gpu::chunk_tokens;
    for (kernels::sequence_run& run : runs) {
      run.chunked = run.rows - random.below(2) * random.below(run.rows);
      if (run.chunked % chunk_tokens < kernels::gpu::chunked_rows_min) run.chunked -= run.chunked % chunk_tokens;
    }
    require(upload.send_rows({ids, runs}, in));
  }
  [[nodiscard]] const kernels::gpu::device_batch& on_device() const { return upload.on_device(); }
  [[nodiscard]] std::uint32_t rows() const { return static_cast<std::uint32_t>(ids.size()); }

  std::vector<token_id> ids;
  std::vector<kernels::sequence_run> runs;
  kernels::gpu::batch_upload upload;
};

}  // namespace skein::test
