#pragma once
#include "kernels/gpu/device/logit_chunk.cuh"

/// What a slot's sampler knows and does besides choosing: bias and penalties before, the record of the token after.
namespace skein::kernels::gpu {

/// One slot of slot_memory.
class slot_lists {
 public:
  __device__ slot_lists(const slot_memory& of, slot_id slot) : of_(of), slot_(slot) {}

  [[nodiscard]] __device__ slot_record& record() const { return of_.records[slot_]; }
  [[nodiscard]] __device__ const bias_entry* bias() const { return of_.bias + std::size_t{slot_} * of_.bias_max; }
  [[nodiscard]] __device__ float* raw_of_bias() const { return of_.raw_of_bias + std::size_t{slot_} * of_.bias_max; }
  [[nodiscard]] __device__ const token_id* stop_ids() const {
    return of_.stop_ids + std::size_t{slot_} * of_.stop_ids_max;
  }
  [[nodiscard]] __device__ token_id* penalty_tokens() const { return of_.penalty_tokens + first_penalty(); }
  [[nodiscard]] __device__ float* penalties() const { return of_.penalties + first_penalty(); }
  [[nodiscard]] __device__ float* raw_of_penalties() const { return of_.raw_of_penalties + first_penalty(); }
  [[nodiscard]] __device__ std::uint32_t penalties_max() const { return of_.penalties_max; }

  [[nodiscard]] __device__ bool changes_logits() const {
    return record().settings.bias_count != 0 || record().penalty_count != 0;
  }

 private:
  [[nodiscard]] __device__ std::size_t first_penalty() const { return std::size_t{slot_} * of_.penalties_max; }

  const slot_memory& of_;
  slot_id slot_;
};

/// Calls change(place in the chunk, addend) for the slot's bias and penalties in tokens first .. first + chunk_tokens.
/// Bias comes before penalties, equal bias entries one after another by one thread; `between` is called by all threads
/// in the middle. All other tokens differ, so their order is free.
template <typename Change, typename Between>
__device__ void for_each_change(const slot_lists& of, std::uint32_t first, const Change& change,
                                const Between& between) {
  const std::uint32_t bias_count = of.record().settings.bias_count;
  for (std::uint32_t i = threadIdx.x; i < bias_count; i += mass_threads) {
    const token_id token = of.bias()[i].token;
    const std::uint32_t place = static_cast<std::uint32_t>(token) - first;
    if (place >= chunk_tokens || (i > 0 && of.bias()[i - 1].token == token)) continue;
    for (std::uint32_t same = i; same < bias_count && of.bias()[same].token == token; ++same)
      change(place, of.bias()[same].bias);
  }
  between();
  const std::uint32_t penalty_count = of.record().penalty_count;
  for (std::uint32_t i = threadIdx.x; i < penalty_count; i += mass_threads) {
    const std::uint32_t place = static_cast<std::uint32_t>(of.penalty_tokens()[i]) - first;
    if (place < chunk_tokens) change(place, -of.penalties()[i]);
  }
}

/// Keeps the logits that bias and penalties will change, for log-probabilities. `chunk`: in shared memory.
__device__ inline void keep_raw(const slot_lists& of, std::uint32_t first, const float* chunk) {
  for (std::uint32_t i = threadIdx.x; i < of.record().settings.bias_count; i += mass_threads) {
    const std::uint32_t place = static_cast<std::uint32_t>(of.bias()[i].token) - first;
    if (place < chunk_tokens) of.raw_of_bias()[i] = chunk[place];
  }
  for (std::uint32_t i = threadIdx.x; i < of.record().penalty_count; i += mass_threads) {
    const std::uint32_t place = static_cast<std::uint32_t>(of.penalty_tokens()[i]) - first;
    if (place < chunk_tokens) of.raw_of_penalties()[i] = chunk[place];
  }
}

/// Adds bias and penalties to the chunk in `values`, by way of `shared`, and changes the row in memory alike.
__device__ inline void change_chunk(const slot_lists& of, float* row, std::uint32_t chunk, float* shared,
                                    logit_packet (&values)[chunk_packets]) {
  const std::uint32_t first = chunk * chunk_tokens;
  for (unsigned p = 0; p < chunk_packets; ++p) store_packet(shared + place_in_chunk(p), values[p]);
  __syncthreads();
  if (of.record().settings.logprobs != 0) {
    keep_raw(of, first, shared);
    __syncthreads();
  }
  const auto change = [&](std::uint32_t place, float addend) {
    shared[place] = finite_logit(shared[place] + addend);
    row[first + place] = shared[place];
  };
  for_each_change(of, first, change, [] { __syncthreads(); });
  __syncthreads();
  for (unsigned p = 0; p < chunk_packets; ++p) values[p] = load_packet(shared + place_in_chunk(p));
}

inline constexpr std::uint32_t not_listed = 0xffffffff;

/// The token's place in the list of penalties, or not_listed.
__device__ inline std::uint32_t find_penalty(const slot_lists& of, token_id token) {
  __shared__ std::uint32_t found;
  if (threadIdx.x == 0) found = not_listed;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < of.record().penalty_count; i += mass_threads)
    if (of.penalty_tokens()[i] == token) found = i;
  __syncthreads();
  return found;
}

/// What the logit was before bias and penalties; `known`: from find_penalty.
__device__ inline float raw_logit(const slot_lists& of, token_id token, std::uint32_t known, const float* row) {
  if (known != not_listed) return of.raw_of_penalties()[known];
  for (std::uint32_t i = 0; i < of.record().settings.bias_count; ++i)
    if (of.bias()[i].token == token) return of.raw_of_bias()[i];
  return row[token];
}

/// penalties::record.
__device__ inline void record_penalty(const slot_lists& of, token_id token, std::uint32_t known) {
  const sampler_settings& settings = of.record().settings;
  const std::uint32_t count = of.record().penalty_count;
  for (std::uint32_t i = threadIdx.x; i < count; i += mass_threads) {
    const float decayed = of.penalties()[i] * settings.penalty_decay;
    of.penalties()[i] = i == known ? decayed + settings.repeat_penalty : decayed;
  }
  __syncthreads();  // before the count changes
  if (threadIdx.x == 0 && known == not_listed && count < of.penalties_max()) {
    of.penalty_tokens()[count] = token;
    of.penalties()[count] = settings.first_penalty;
    of.record().penalty_count = count + 1;
  }
}

/// Why the sequence ends with this token, which `generated` counts already.
__device__ inline draw_stop stop_of(const slot_lists& of, token_id token) {
  const slot_record& record = of.record();
  for (std::uint32_t i = 0; i < record.settings.stop_count; ++i)
    if (of.stop_ids()[i] == token) return draw_stop::stop_id;
  return record.generated >= record.settings.max_tokens ? draw_stop::budget : draw_stop::none;
}

__device__ inline void accept(slot_record& record, token_id token, draw_stop stopped) {
  record.last_token = token;
  if (stopped != draw_stop::none) record.frozen = 1;
}

}  // namespace skein::kernels::gpu
