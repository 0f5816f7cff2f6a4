#include "kernels/gpu/runtime/cublas_lt.hpp"

#include <dlfcn.h>

#include <cstdlib>

#include "kernels/gpu/runtime/failure.hpp"

namespace skein::kernels::gpu {

struct cublas_lt::functions {
  decltype(&cublasLtCreate) create;
  decltype(&cublasLtDestroy) destroy;
  decltype(&cublasLtGetVersion) version;
  decltype(&cublasLtMatmul) matmul;
  decltype(&cublasLtMatmulDescCreate) create_operation;
  decltype(&cublasLtMatmulDescDestroy) destroy_operation;
  decltype(&cublasLtMatmulDescSetAttribute) set_operation;
  decltype(&cublasLtMatrixLayoutCreate) create_layout;
  decltype(&cublasLtMatrixLayoutDestroy) destroy_layout;
  decltype(&cublasLtMatmulPreferenceCreate) create_preference;
  decltype(&cublasLtMatmulPreferenceDestroy) destroy_preference;
  decltype(&cublasLtMatmulPreferenceSetAttribute) set_preference;
  decltype(&cublasLtMatmulAlgoGetHeuristic) propose;
  cublasLtHandle_t handle = nullptr;

  ~functions() {
    if (handle) destroy(handle);
  }
};

namespace {

constexpr int algorithms_max = 8;

error unavailable(std::string why) { return {error_kind::unavailable, std::move(why), ""}; }

result<void> done(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return unavailable(std::string("cuBLASLt: ") + what + ": status " + std::to_string(static_cast<int>(status)));
}

void* open_library(std::string& said) {
  const char* const given = std::getenv("SKEIN_CUBLASLT");
  for (const char* name : {given ? given : "libcublasLt.so.13", "/usr/local/cuda/lib64/libcublasLt.so.13"}) {
    if (void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return library;
    if (said.empty()) said = dlerror();
    if (given) break;
  }
  return nullptr;
}

}  // namespace

result<cublas_lt> cublas_lt::open() {
  std::string said;
  void* const library = open_library(said);
  if (!library) return unavailable("cuBLASLt cannot be opened: " + said);
  const auto f = std::make_shared<functions>();
  bool complete = true;
  const auto find = [&]<typename Function>(Function& to, const char* name) {
    to = reinterpret_cast<Function>(dlsym(library, name));
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
  find(f->create_preference, "cublasLtMatmulPreferenceCreate");
  find(f->destroy_preference, "cublasLtMatmulPreferenceDestroy");
  find(f->set_preference, "cublasLtMatmulPreferenceSetAttribute");
  find(f->propose, "cublasLtMatmulAlgoGetHeuristic");
  if (!complete) return unavailable("cuBLASLt lacks a function that is needed");
  if (const auto created = done(f->create(&f->handle), "opening"); !created) return created.error();
  return cublas_lt(f);
}

std::string cublas_lt::name() const { return "cuBLASLt " + std::to_string(f_->version()); }

half_product::half_product(const cublas_lt& library, std::uint32_t size, std::size_t workspace_bytes)
    : f_(library.f_), workspace_bytes_(workspace_bytes), proposed_(algorithms_max) {
  cublasLtMatmulPreference_t preference = nullptr;
  const cublasOperation_t transpose = CUBLAS_OP_T;
  int found = 0;
  auto made = done(f_->create_operation(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing a product");
  if (made)
    made = done(f_->set_operation(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transpose, sizeof transpose),
                "describing a product");
  if (made) made = done(f_->create_layout(&square_, CUDA_R_16F, size, size, size), "describing a matrix");
  if (made) made = done(f_->create_preference(&preference), "asking for algorithms");
  if (made)
    made = done(f_->set_preference(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes_,
                                   sizeof workspace_bytes_),
                "asking for algorithms");
  if (made)
    made = done(f_->propose(f_->handle, operation_, square_, square_, square_, square_, preference, algorithms_max,
                            proposed_.data(), &found),
                "asking for algorithms");
  if (preference) f_->destroy_preference(preference);
  if (!made) destroy();
  require(made);
  proposed_.resize(static_cast<std::size_t>(found));
}

half_product::~half_product() { destroy(); }

void half_product::destroy() const {
  if (square_) f_->destroy_layout(square_);
  if (operation_) f_->destroy_operation(operation_);
}

result<void> half_product::queue(std::size_t algorithm, const void* a, const void* b, void* out, void* workspace,
                                 stream_handle in) const {
  const float one = 1, zero = 0;
  return done(f_->matmul(f_->handle, operation_, &one, a, square_, b, square_, &zero, out, square_, out, square_,
                         &proposed_[algorithm].algo, workspace, workspace_bytes_, in),
              "multiplying");
}

}  // namespace skein::kernels::gpu
