#pragma once
#include "kernels/gpu/device/logit_chunk.cuh"

/// What a slot's sampler knows and does besides choosing: bias and penalties before, the record of the token after. The
/// lists are read four entries a thread at once, as a long sequence has thousands of penalties and every chunk of its
/// row looks through them.
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

  /// Calls visit(index, token) for this thread's share of the first `count` penalties.
  template <typename Visit>
  __device__ void for_each_penalty(std::uint32_t count, const Visit& visit) const {
    constexpr unsigned size = packet<token_id>::size;  // slots begin at multiples of it
    for (std::uint32_t i = threadIdx.x * size; i < count; i += mass_threads * size) {
      const packet<token_id> tokens = load_packet(penalty_tokens() + i);
      for (unsigned t = 0; t < size; ++t)
        if (i + t < count) visit(i + t, tokens.values[t]);
    }
  }

 private:
  [[nodiscard]] __device__ std::size_t first_penalty() const { return std::size_t{slot_} * of_.penalties_max; }

  const slot_memory& of_;
  slot_id slot_;
};

/// Calls change(place in the chunk, addend) for the slot's bias and penalties in tokens first .. first + chunk_tokens.
/// Bias comes before penalties, equal bias entries one after another by one thread; all other tokens differ, so their
/// order is free.
template <typename Change>
__device__ void for_each_change(const slot_lists& of, const slot_record& record, std::uint32_t first,
                                const Change& change) {
  const std::uint32_t bias_count = record.settings.bias_count;
  const bias_entry* const bias = of.bias();
  for (std::uint32_t i = threadIdx.x; i < bias_count; i += mass_threads) {
    const token_id token = bias[i].token;
    const std::uint32_t place = static_cast<std::uint32_t>(token) - first;
    if (place >= chunk_tokens || (i > 0 && bias[i - 1].token == token)) continue;
    for (std::uint32_t same = i; same < bias_count && bias[same].token == token; ++same)
      if (record.generated >= bias[same].first && (bias[same].end == 0 || record.generated < bias[same].end))
        change(place, bias[same].bias);
  }
  __syncthreads();
  of.for_each_penalty(record.penalty_count, [&](std::uint32_t i, token_id token) {
    const std::uint32_t place = static_cast<std::uint32_t>(token) - first;
    if (place < chunk_tokens) change(place, -(of.penalties()[i] + record.settings.lasting_penalty));
  });
}

/// Keeps the logits that bias and penalties will change, for log-probabilities. `chunk`: in shared memory.
__device__ inline void keep_raw(const slot_lists& of, const slot_record& record, std::uint32_t first,
                                const float* chunk) {
  for (std::uint32_t i = threadIdx.x; i < record.settings.bias_count; i += mass_threads) {
    const std::uint32_t place = static_cast<std::uint32_t>(of.bias()[i].token) - first;
    if (place < chunk_tokens) of.raw_of_bias()[i] = chunk[place];
  }
  of.for_each_penalty(record.penalty_count, [&](std::uint32_t i, token_id token) {
    const std::uint32_t place = static_cast<std::uint32_t>(token) - first;
    if (place < chunk_tokens) of.raw_of_penalties()[i] = chunk[place];
  });
}

/// Adds bias and penalties to the chunk in `values`, by way of `shared`, and changes the row in memory alike.
__device__ inline void change_chunk(const slot_lists& of, const slot_record& record, float* row, std::uint32_t chunk,
                                    float* shared, logit_packet (&values)[chunk_packets]) {
  const std::uint32_t first = chunk * chunk_tokens;
  for (unsigned p = 0; p < chunk_packets; ++p) store_packet(shared + place_in_chunk(p), values[p]);
  __syncthreads();
  if (record.settings.logprobs != 0) {
    keep_raw(of, record, first, shared);
    __syncthreads();
  }
  for_each_change(of, record, first, [&](std::uint32_t place, float addend) {
    shared[place] = finite_logit(shared[place] + addend);
    row[first + place] = shared[place];
  });
  __syncthreads();
  for (unsigned p = 0; p < chunk_packets; ++p) values[p] = load_packet(shared + place_in_chunk(p));
}

inline constexpr std::uint32_t not_listed = 0xffffffff;

/// Where a token was found in a slot's lists.
struct listed_token {
  std::uint32_t penalty;  ///< not_listed: drawn for the first time
  bool is_stop;
};

/// penalties::record, but for a new entry (see accept).
__device__ inline listed_token decay_penalties(const slot_lists& of, const slot_record& record, token_id token) {
  __shared__ std::uint32_t penalty, stop_id;
  __syncthreads();  // nobody still reads those of the call before
  if (threadIdx.x == 0) penalty = stop_id = not_listed;
  __syncthreads();
  const sampler_settings& settings = record.settings;
  for (std::uint32_t i = threadIdx.x; i < settings.stop_count; i += mass_threads)
    if (of.stop_ids()[i] == token) stop_id = i;
  of.for_each_penalty(record.penalty_count, [&](std::uint32_t i, token_id drawn) {
    const float decayed = of.penalties()[i] * settings.penalty_decay;
    of.penalties()[i] = drawn == token ? decayed + settings.repeat_penalty : decayed;
    if (drawn == token) penalty = i;
  });
  __syncthreads();
  return {penalty, stop_id != not_listed};
}

/// What the logit was before bias and penalties.
__device__ inline float raw_logit(const slot_lists& of, const slot_record& record, token_id token,
                                  const listed_token& listed, const float* row) {
  if (listed.penalty != not_listed) return of.raw_of_penalties()[listed.penalty];
  __shared__ std::uint32_t entry;
  if (threadIdx.x == 0) entry = not_listed;
  __syncthreads();
  for (std::uint32_t i = threadIdx.x; i < record.settings.bias_count; i += mass_threads)
    if (of.bias()[i].token == token) entry = i;
  __syncthreads();
  return entry == not_listed ? row[token] : of.raw_of_bias()[entry];
}

/// One thread's part: the token becomes the slot's last and, if it is new, gets its penalty.
__device__ inline void accept(const slot_lists& of, const slot_record& record, token_id token,
                              const listed_token& listed, draw_stop stopped) {
  slot_record& changed = of.record();
  if (listed.penalty == not_listed && record.penalty_count < of.penalties_max()) {
    of.penalty_tokens()[record.penalty_count] = token;
    of.penalties()[record.penalty_count] = record.settings.first_penalty;
    changed.penalty_count = record.penalty_count + 1;
  }
  changed.generated = record.generated + 1;
  changed.last_token = token;
  if (stopped != draw_stop::none) changed.frozen = 1;
}

}  // namespace skein::kernels::gpu
