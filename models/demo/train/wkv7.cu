// The recurrence of RWKV-7 and its gradient, for documents packed into one stream of tokens.
//
// Per head and token, with the state S[value i][key j] starting at zero in every document:
//   removed[i] = sum_j S[i][j] a[j]
//   S[i][j]   <- S[i][j] w[j] + removed[i] b[j] + v[i] k[j]
//   y[i]       = sum_j S[i][j] r[j]
// r w k v a b y are float32 [tokens, heads, 64]; w is the decay itself, in (0.5, 1); a = -kk, b = kk * in-context rate.
//
// One block of 64 threads walks one head of one document. Forward, thread i keeps row i of S in registers. It leaves
// the state after each chunk of 16 tokens in memory; documents begin and end at chunk borders. Backward, the state is
// taken from there and walked back token by token by solving the update for the earlier state: the decay is never
// below 0.545, so over 16 tokens the rounding stays small. Thread i then keeps row i of the state's gradient, and
// column i of both the state and its gradient, since half of the sums run along rows and half along columns.
#include <cuda_runtime.h>

namespace {

constexpr int head_size = 64;
constexpr int chunk = 16;

struct inputs {
  const float *r, *w, *k, *v, *a, *b;
};

struct gradients {
  float *r, *w, *k, *v, *a, *b;
};

/// Where the documents lie: block x walks tokens first[x] .. first[x] + count[x].
struct documents {
  const int *first, *count;
};

__device__ float dot(const float (&row)[head_size], const float* vector) {
  float even = 0, odd = 0;
#pragma unroll
  for (int j = 0; j < head_size; j += 4) {
    const float4 x = *reinterpret_cast<const float4*>(vector + j);
    even += row[j] * x.x;
    odd += row[j + 1] * x.y;
    even += row[j + 2] * x.z;
    odd += row[j + 3] * x.w;
  }
  return even + odd;
}

/// row[j] += scale * vector[j]
__device__ void add(float (&row)[head_size], float scale, const float* vector) {
#pragma unroll
  for (int j = 0; j < head_size; j += 4) {
    const float4 x = *reinterpret_cast<const float4*>(vector + j);
    row[j] += scale * x.x;
    row[j + 1] += scale * x.y;
    row[j + 2] += scale * x.z;
    row[j + 3] += scale * x.w;
  }
}

/// row[j] = row[j] * factor[j] + scale * vector[j]
__device__ void fade_and_add(float (&row)[head_size], const float* factor, float scale, const float* vector) {
#pragma unroll
  for (int j = 0; j < head_size; j += 4) {
    const float4 f = *reinterpret_cast<const float4*>(factor + j);
    const float4 x = *reinterpret_cast<const float4*>(vector + j);
    row[j] = row[j] * f.x + scale * x.x;
    row[j + 1] = row[j + 1] * f.y + scale * x.y;
    row[j + 2] = row[j + 2] * f.z + scale * x.z;
    row[j + 3] = row[j + 3] * f.w + scale * x.w;
  }
}

__global__ void __launch_bounds__(head_size)
    wkv7_forward(int heads, documents where, inputs in, float* y, float* removed, float* states) {
  __shared__ alignas(16) float r[head_size], w[head_size], k[head_size], a[head_size], b[head_size];
  const int i = threadIdx.x, head = blockIdx.y;
  const int first = where.first[blockIdx.x], count = where.count[blockIdx.x];
  if (count == 0) return;
  const long stride = static_cast<long>(heads) * head_size;
  long at = first * stride + head * head_size + i;

  float state[head_size] = {};
  float next_r = in.r[at], next_w = in.w[at], next_k = in.k[at], next_a = in.a[at], next_b = in.b[at], v = in.v[at];
  for (int t = 0; t < count; ++t, at += stride) {
    __syncthreads();
    r[i] = next_r, w[i] = next_w, k[i] = next_k, a[i] = next_a, b[i] = next_b;
    const float value = v;
    __syncthreads();
    if (t + 1 < count) {  // fetched now, used in the next round: hides the latency
      const long next = at + stride;
      next_r = in.r[next], next_w = in.w[next], next_k = in.k[next], next_a = in.a[next], next_b = in.b[next];
      v = in.v[next];
    }
    const float taken = dot(state, a);
    fade_and_add(state, w, taken, b);
    add(state, value, k);
    y[at] = dot(state, r);
    removed[at] = taken;

    if ((t + 1) % chunk == 0) {
      float* out = states + ((first + t) / chunk * static_cast<long>(heads) + head) * head_size * head_size;
#pragma unroll
      for (int j = 0; j < head_size; ++j) out[j * head_size + i] = state[j];
    }
  }
}

__global__ void __launch_bounds__(head_size) wkv7_backward(int heads, documents where, inputs in, const float* dy,
                                                           const float* removed, const float* states, gradients out) {
  __shared__ alignas(16) float r[head_size], w[head_size], k[head_size], v[head_size], a[head_size], b[head_size];
  __shared__ alignas(16) float dy_row[head_size], removed_row[head_size], dremoved_row[head_size];
  const int i = threadIdx.x, head = blockIdx.y;
  const int first = where.first[blockIdx.x], count = where.count[blockIdx.x];
  if (count == 0) return;
  const long stride = static_cast<long>(heads) * head_size;
  long at = (first + count - 1L) * stride + head * head_size + i;

  float column[head_size];        // S[.][i]
  float dcolumn[head_size] = {};  // gradient of S[.][i]
  float drow[head_size] = {};     // gradient of S[i][.]
  float next_r = in.r[at], next_w = in.w[at], next_k = in.k[at], next_v = in.v[at], next_a = in.a[at],
        next_b = in.b[at], next_dy = dy[at], next_removed = removed[at];
  for (int t = count - 1; t >= 0; --t, at -= stride) {
    __syncthreads();
    r[i] = next_r, w[i] = next_w, k[i] = next_k, v[i] = next_v, a[i] = next_a, b[i] = next_b;
    dy_row[i] = next_dy, removed_row[i] = next_removed;
    __syncthreads();
    if (t > 0) {
      const long next = at - stride;
      next_r = in.r[next], next_w = in.w[next], next_k = in.k[next], next_v = in.v[next], next_a = in.a[next];
      next_b = in.b[next], next_dy = dy[next], next_removed = removed[next];
    }
    if ((t + 1) % chunk == 0) {
      const float* from =
          states + ((first + t) / chunk * static_cast<long>(heads) + head) * head_size * head_size + i * head_size;
#pragma unroll
      for (int j = 0; j < head_size; j += 4) {
        const float4 x = *reinterpret_cast<const float4*>(from + j);
        column[j] = x.x, column[j + 1] = x.y, column[j + 2] = x.z, column[j + 3] = x.w;
      }
    }

    const float my_r = r[i], my_w = w[i], my_k = k[i], my_a = a[i], my_b = b[i], my_dy = dy_row[i];
    out.r[at] = dot(column, dy_row);
    add(drow, my_dy, r);
    add(dcolumn, my_r, dy_row);

    const float dremoved = dot(drow, b);
    dremoved_row[i] = dremoved;
    out.v[at] = dot(drow, k);
    out.k[at] = dot(dcolumn, v);
    out.b[at] = dot(dcolumn, removed_row);

    // The state before this token, and the gradients that need it.
    const float unfade = 1.0f / my_w;
    float dw = 0;
#pragma unroll
    for (int j = 0; j < head_size; j += 4) {
      const float4 value = *reinterpret_cast<const float4*>(v + j);
      const float4 taken = *reinterpret_cast<const float4*>(removed_row + j);
      column[j] = (column[j] - value.x * my_k - taken.x * my_b) * unfade;
      column[j + 1] = (column[j + 1] - value.y * my_k - taken.y * my_b) * unfade;
      column[j + 2] = (column[j + 2] - value.z * my_k - taken.z * my_b) * unfade;
      column[j + 3] = (column[j + 3] - value.w * my_k - taken.w * my_b) * unfade;
      dw += dcolumn[j] * column[j] + dcolumn[j + 1] * column[j + 1] + dcolumn[j + 2] * column[j + 2] +
            dcolumn[j + 3] * column[j + 3];
    }
    out.w[at] = dw;
    __syncthreads();
    out.a[at] = dot(column, dremoved_row);

    fade_and_add(drow, w, dremoved, a);
#pragma unroll
    for (int j = 0; j < head_size; j += 4) {
      const float4 x = *reinterpret_cast<const float4*>(dremoved_row + j);
      dcolumn[j] = dcolumn[j] * my_w + x.x * my_a;
      dcolumn[j + 1] = dcolumn[j + 1] * my_w + x.y * my_a;
      dcolumn[j + 2] = dcolumn[j + 2] * my_w + x.z * my_a;
      dcolumn[j + 3] = dcolumn[j + 3] * my_w + x.w * my_a;
    }
  }
}

}  // namespace

/// Both return a cudaError_t. `states` has room for [tokens / 16, heads, 64, 64] floats, `removed` is shaped like y.
extern "C" int launch_forward(void* stream, int document_count, int heads, const int* first, const int* count,
                              const float* r, const float* w, const float* k, const float* v, const float* a,
                              const float* b, float* y, float* removed, float* states) {
  wkv7_forward<<<dim3(document_count, heads), head_size, 0, static_cast<cudaStream_t>(stream)>>>(
      heads, {first, count}, {r, w, k, v, a, b}, y, removed, states);
  return cudaGetLastError();
}

extern "C" int launch_backward(void* stream, int document_count, int heads, const int* first, const int* count,
                               const float* r, const float* w, const float* k, const float* v, const float* a,
                               const float* b, const float* dy, const float* removed, const float* states, float* dr,
                               float* dw, float* dk, float* dv, float* da, float* db) {
  wkv7_backward<<<dim3(document_count, heads), head_size, 0, static_cast<cudaStream_t>(stream)>>>(
      heads, {first, count}, {r, w, k, v, a, b}, dy, removed, states, {dr, dw, dk, dv, da, db});
  return cudaGetLastError();
}
