// The library is column-major: our rows are its columns, so out[rows, outputs] = in * transpose(matrix) is
// D[outputs, rows] = transpose(A) * B with A the matrix as [inputs, outputs] and B the inputs as [inputs, rows].
#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "kernels/gpu/gemm/matmul_library.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr int algorithms_max = 6;

struct functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) create_operation;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatrixLayoutSetAttribute) set_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose;
  decltype(&cublasLtMatmulAlgoCheck) check_algorithm;
  cublasLtHandle_t handle = nullptr;

  ~functions() {
    if (handle) destroy(handle);
  }
};

error unavailable(std::string why) { return {error_kind::unavailable, std::move(why), ""}; }

result<void> done(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  const bool refused = status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_INVALID_VALUE;
  return error{refused ? error_kind::unsupported : error_kind::unavailable,
               std::string("cuBLASLt: ") + what + ": status " + std::to_string(static_cast<int>(status)), ""};
}

cudaDataType_t type_of(element e) {
  return e == element::f32 ? CUDA_R_32F : e == element::f16 ? CUDA_R_16F : CUDA_R_16BF;
}

class cublas_gemm final : public library_gemm {
 public:
  explicit cublas_gemm(std::shared_ptr<const functions> f) : f_(std::move(f)) {}
  ~cublas_gemm() override {
    for (const cublasLtMatrixLayout_t layout : {matrix_, in_, out_})
      if (layout) f_->destroy_layout(layout);
    if (operation_) f_->destroy_operation(operation_);
  }
  cublas_gemm(const cublas_gemm&) = delete;  // owns handles of the library
  cublas_gemm& operator=(const cublas_gemm&) = delete;

  /// Called once, before anything else.
  result<void> prepare(const library_shape& shape, std::uint32_t rows, std::size_t workspace_bytes) {
    adds_ = shape.adds, rows_ = rows;
    if (auto r = describe(shape); !r) return r;
    cublasLtMatmulPreference_t preference = nullptr;
    if (auto r = done(f_->create_preference(&preference), "querying algorithms"); !r) return r;
    auto proposed = propose(preference, workspace_bytes);
    f_->destroy_preference(preference);
    return proposed;
  }

  std::size_t algorithms() const override { return proposed_.size(); }

  result<void> queue(stream_handle in, std::size_t algorithm, const gemm& p, std::uint32_t rows,
                     const device_buffer<std::byte>& workspace) override {
    if (rows != rows_) {
      const std::uint64_t columns = rows;
      rows_ = 0;
      for (const cublasLtMatrixLayout_t layout : {in_, out_})
        if (auto r = done(f_->set_layout(layout, CUBLASLT_MATRIX_LAYOUT_COLS, &columns, sizeof columns), "row count");
            !r)
          return r;
      rows_ = rows;
      checked_.assign(proposed_.size(), 0);
    }
    if (!checked_[algorithm])  // it was proposed for another number of rows
      if (auto r = check(algorithm, workspace.bytes()); !r) return r;
    checked_[algorithm] = 1;
    const float one = 1, before = adds_ ? 1 : 0;
    return done(f_->matmul(f_->handle, operation_, &one, p.matrix.data, matrix_, p.in, in_, &before, p.out, out_, p.out,
                           out_, &proposed_[algorithm].algo, workspace.data(), workspace.bytes(), in),
                "running a GEMM");
  }

 private:
  result<void> describe(const library_shape& shape) {
    constexpr const char* what = "describing a GEMM";
    const cublasOperation_t transpose = CUBLAS_OP_T;
    const std::uint64_t depth = padded(shape.inputs);
    const cudaDataType_t type = type_of(shape.type);
    if (auto r = done(f_->create_operation(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), what); !r) return r;
    if (auto r = done(f_->set_operation(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose), what);
        !r)
      return r;
    if (auto r = done(f_->create_layout(&matrix_, type, depth, shape.outputs, static_cast<std::int64_t>(depth)), what);
        !r)
      return r;
    if (auto r = done(f_->create_layout(&in_, type, depth, rows_, shape.in_stride), what); !r) return r;
    return done(f_->create_layout(&out_, type_of(shape.out_type), shape.outputs, rows_, shape.out_stride), what);
  }

  result<void> propose(cublasLtMatmulPreference_t preference, std::size_t workspace_bytes) {
    constexpr const char* what = "querying algorithms";
    // Split-K algorithms must add their partial sums in fp32, not in the type of the output.
    const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_NONE | CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    if (auto r = done(f_->set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                         sizeof workspace_bytes),
                      what);
        !r)
      return r;
    if (auto r = done(
            f_->set_preference(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions, sizeof reductions),
            what);
        !r)
      return r;
    int found = 0;
    proposed_.resize(algorithms_max);
    const auto status = f_->propose(f_->handle, operation_, matrix_, in_, out_, out_, preference, algorithms_max,
                                    proposed_.data(), &found);
    proposed_.resize(static_cast<std::size_t>(status == CUBLAS_STATUS_SUCCESS ? found : 0));
    std::erase_if(proposed_, [](const auto& one) { return one.state != CUBLAS_STATUS_SUCCESS; });
    if (auto r = done(status, what); !r) return r;
    if (proposed_.empty()) return error{error_kind::unsupported, "cuBLASLt: no algorithm for a GEMM", ""};
    checked_.assign(proposed_.size(), 1);
    return {};
  }

  /// Whether an algorithm supports the rows of the layouts; the library itself does not check that.
  result<void> check(std::size_t algorithm, std::size_t workspace_bytes) {
    constexpr const char* what = "checking an algorithm";
    cublasLtMatmulHeuristicResult_t answer{};
    const auto status =
        f_->check_algorithm(f_->handle, operation_, matrix_, in_, out_, out_, &proposed_[algorithm].algo, &answer);
    if (auto r = done(status, what); !r) return r;
    if (auto r = done(answer.state, what); !r) return r;
    if (answer.workspaceSize <= workspace_bytes) return {};
    return error{error_kind::unsupported, "cuBLASLt: the algorithm needs a larger workspace for these rows", ""};
  }

  const std::shared_ptr<const functions> f_;
  bool adds_ = false;
  std::uint32_t rows_ = 0;  ///< in the layouts
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t matrix_ = nullptr, in_ = nullptr, out_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> proposed_;
  std::vector<std::uint8_t> checked_;  ///< of each algorithm: whether it supports the rows of the layouts
};

class cublas_lt final : public matmul_library {
 public:
  explicit cublas_lt(std::shared_ptr<const functions> f) : f_(std::move(f)) {}

  std::string name() const override { return "cuBLASLt " + std::to_string(f_->version()); }

  result<std::unique_ptr<library_gemm>> prepare(const library_shape& shape, std::uint32_t rows,
                                                std::size_t workspace_bytes) override {
    auto made = std::make_unique<cublas_gemm>(f_);
    if (auto r = made->prepare(shape, rows, workspace_bytes); !r) return r.error();
    return std::unique_ptr<library_gemm>(std::move(made));
  }

 private:
  const std::shared_ptr<const functions> f_;  // shared with the products
};

/// The library stays open until the process ends.
void* open_file(std::string& said) {
  const char* const given = std::getenv("SKEIN_CUBLASLT");
  for (const char* name : {given ? given : "libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13"}) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    if (said.empty()) said = dlerror();
    if (given) break;
  }
  return nullptr;
}

}  // namespace

result<std::unique_ptr<matmul_library>> open_matmul_library() {
  std::string said;
  void* const file = open_file(said);
  if (!file) return unavailable("cuBLASLt cannot be opened: " + said);
  const auto f = std::make_shared<functions>();
  bool complete = true;
  const auto find = [&]<typename Function>(Function& to, const char* name) {
    to = reinterpret_cast<Function>(dlsym(file, name));
    complete = complete && to != nullptr;
  };
  find(f->create, "cublasLtCreate");
  find(f->destroy, "cublasLtDestroy");
  find(f->version, "cublasLtGetVersion");
  find(f->matmul, "cublasLtMatmul");
  find(f->create_operation, "cublasLtMatmulDescCreate");
  find(f->destroy_operation, "cublasLtMatmulDescDestroy");
  find(f->set_operation, "cublasLtMatmulDescSetAttribute");
  find(f->create_layout, "cublasLtMatrixLayoutCreate");
  find(f->destroy_layout, "cublasLtMatrixLayoutDestroy");
  find(f->set_layout, "cublasLtMatrixLayoutSetAttribute");
  find(f->create_preference, "cublasLtMatmulPreferenceCreate");
  find(f->destroy_preference, "cublasLtMatmulPreferenceDestroy");
  find(f->set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(f->propose, "cublasLtMatmulAlgoGetHeuristic");
  find(f->check_algorithm, "cublasLtMatmulAlgoCheck");
  if (!complete) return unavailable("cuBLASLt: a required function is missing");
  if (const auto created = done(f->create(&f->handle), "creating a handle"); !created)
    return unavailable(created.error().message);
  return std::unique_ptr<matmul_library>(std::make_unique<cublas_lt>(f));
}

}  // namespace skein::kernels::gpu
