#pragma once
#include <boost/test/unit_test.hpp>
#include <map>
#include <memory>

#include "kernels/gpu/gemm/tuned_matmul.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "tests/kernels/gpu/device_values.hpp"

/// A matrix library for tests: the plain product behind a library's interface.
namespace skein::test {

/// What a library was asked for, and how it should behave.
struct library_log {
  std::uint32_t prepared = 0, queued = 0;
  bool refuses = false;  ///< all products from now on
  bool idle = false;     ///< multiplies nothing, which no product of ours is faster than
};

class plain_gemm final : public kernels::gpu::library_gemm {
 public:
  plain_gemm(library_log& log, const kernels::gpu::library_shape& shape) : log_(log), shape_(shape) {}
  std::size_t algorithms() const override { return 2; }
  result<void> queue(kernels::gpu::stream_handle in, std::size_t, const kernels::gpu::gemm& p, std::uint32_t rows,
                     const kernels::gpu::device_buffer<std::byte>& workspace) override {
    BOOST_TEST(workspace.bytes() == kernels::gpu::tuned_matmul::workspace_bytes);
    if (log_.refuses) return error{error_kind::unsupported, "too many rows", ""};
    ++log_.queued;
    if (log_.idle) return {};
    kernels::gpu::gemm bare = p;
    bare.how = bare_epilogue();
    const auto& count = counts_.try_emplace(rows, rows).first->second;
    return kernels::gpu::matmul(in, shape_.type, {&bare, 1}, count.data(), rows);
  }

 private:
  [[nodiscard]] kernels::gpu::epilogue bare_epilogue() const {
    using kernels::gpu::destination;
    if (shape_.adds) return {.to = destination::add_f32};
    if (shape_.out_type == element::f32) return {.to = destination::f32};
    return {.to = shape_.out_type == shape_.type ? destination::elements : destination::f16};
  }

  library_log& log_;
  const kernels::gpu::library_shape shape_;
  std::map<std::uint32_t, row_count> counts_;
};

class plain_library final : public kernels::gpu::matmul_library {
 public:
  explicit plain_library(library_log& log) : log_(log) {}
  std::string name() const override { return "plain"; }
  result<std::unique_ptr<kernels::gpu::library_gemm>> prepare(const kernels::gpu::library_shape& shape,
                                                              std::uint32_t rows,
                                                              std::size_t workspace_bytes) override {
    BOOST_TEST(rows >= kernels::gpu::tuned_matmul::library_rows_min);
    BOOST_TEST(workspace_bytes == kernels::gpu::tuned_matmul::workspace_bytes);
    ++log_.prepared;
    return std::unique_ptr<kernels::gpu::library_gemm>(std::make_unique<plain_gemm>(log_, shape));
  }

 private:
  library_log& log_;
};

}  // namespace skein::test
