#pragma once
#include "kernels/gpu/sampling/logit_chunk.cuh"

/// The work of a slot's sampler besides choosing: bias and penalties before, recording the token after. Threads read
/// four entries of the lists at once, because a long sequence has thousands of penalties and every chunk of its row
/// searches them.
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

 private:
  [[nodiscard]] __device__ std::size_t first_penalty() const { return std::size_t{slot_} * of_.penalties_max; }

  const slot_memory of_;
  slot_id slot_;
};

/// This thread's share of a slot's penalties and stop ids. The constructor issues the loads of the first ones into
/// registers.
class listed_tokens {
 public:
  static constexpr unsigned size =
      packet<token_id>::size;  // slots begin at multiples of this, and have space for multiples

  __device__ listed_tokens(const slot_lists& of, std::uint32_t penalty_count, std::uint32_t stop_count)
      : of_(of), count_(penalty_count), stop_count_(stop_count) {
    if (first() < count_) {
      tokens_ = load_packet(of_.penalty_tokens() + first());
      penalties_ = load_packet(of_.penalties() + first());
    }
    if (threadIdx.x < stop_count_) stop_id_ = of_.stop_ids()[threadIdx.x];
  }

  [[nodiscard]] __device__ bool has_stop(token_id token) const {
    if (threadIdx.x < stop_count_ && stop_id_ == token) return true;
    for (std::uint32_t i = threadIdx.x + mass_threads; i < stop_count_; i += mass_threads)
      if (of_.stop_ids()[i] == token) return true;
    return false;
  }

  /// Calls visit(index of the first, tokens, penalties, number of valid entries among the four).
  template <typename Visit>
  __device__ void for_each_packet(const Visit& visit) const {
    for (std::uint32_t i = first(); i < count_; i += mass_threads * size) {
      const bool held = i == first();
      const packet<token_id> tokens = held ? tokens_ : load_packet(of_.penalty_tokens() + i);
      const packet<float> penalties = held ? penalties_ : load_packet(of_.penalties() + i);
      visit(i, tokens, penalties, count_ - i < size ? count_ - i : size);
    }
  }
  /// Calls visit(index, token, penalty).
  template <typename Visit>
  __device__ void for_each(const Visit& visit) const {
    for_each_packet(
        [&](std::uint32_t i, const packet<token_id>& tokens, const packet<float>& penalties, std::uint32_t count) {
          for (unsigned t = 0; t < size; ++t)
            if (t < count) visit(i + t, tokens.values[t], penalties.values[t]);
        });
  }

 private:
  [[nodiscard]] __device__ static std::uint32_t first() { return threadIdx.x * size; }

  const slot_lists& of_;
  std::uint32_t count_, stop_count_;
  token_id stop_id_;
  packet<token_id> tokens_;
  packet<float> penalties_;
};

/// Calls visit(index) for this thread's share of the slot's bias entries. Of adjacent entries with the same token only
/// the first is visited, so that one thread handles each token.
template <typename Visit>
__device__ void for_each_biased_token(const slot_lists& of, const slot_record& record, const Visit& visit) {
  const bias_entry* const bias = of.bias();
  for (std::uint32_t i = threadIdx.x; i < record.settings.bias_count; i += mass_threads)
    if (i == 0 || bias[i - 1].token != bias[i].token) visit(i);
}

/// Calls change(place in the chunk, addend) for the slot's bias and penalties of tokens first .. first +
/// logit_chunk_tokens. Bias comes before penalties, and one thread applies the bias entries of one token in order. The
/// order of different tokens does not matter.
template <typename Change>
__device__ void for_each_change(const slot_lists& of, const slot_record& record, const listed_tokens& listed,
                                std::uint32_t first, const Change& change) {
  const std::uint32_t bias_count = record.settings.bias_count;
  const bias_entry* const bias = of.bias();
  for_each_biased_token(of, record, [&](std::uint32_t i) {
    const token_id token = bias[i].token;
    const std::uint32_t place = static_cast<std::uint32_t>(token) - first;
    if (place >= logit_chunk_tokens) return;
    for (std::uint32_t same = i; same < bias_count && bias[same].token == token; ++same)
      if (record.generated >= bias[same].first && (bias[same].end == 0 || record.generated < bias[same].end))
        change(place, bias[same].bias);
  });
  __syncthreads();
  listed.for_each([&](std::uint32_t, token_id token, float penalty) {
    const std::uint32_t place = static_cast<std::uint32_t>(token) - first;
    if (place < logit_chunk_tokens) change(place, -(penalty + record.settings.lasting_penalty));
  });
}

/// Saves the raw logits that bias and penalties will change, for log-probabilities. `chunk` is in shared memory.
__device__ inline void keep_raw(const slot_lists& of, const slot_record& record, const listed_tokens& listed,
                                std::uint32_t first, const float* chunk) {
  for_each_biased_token(of, record, [&](std::uint32_t i) {
    const std::uint32_t place = static_cast<std::uint32_t>(of.bias()[i].token) - first;
    if (place < logit_chunk_tokens) of.raw_of_bias()[i] = chunk[place];
  });
  listed.for_each([&](std::uint32_t i, token_id token, float) {
    const std::uint32_t place = static_cast<std::uint32_t>(token) - first;
    if (place < logit_chunk_tokens) of.raw_of_penalties()[i] = chunk[place];
  });
}

/// Calls visit(token, address of its raw logit) for this thread's share of the tokens that keep_raw saved.
template <typename Visit>
__device__ void for_each_raw(const slot_lists& of, const slot_record& record, const listed_tokens& listed,
                             const Visit& visit) {
  for_each_biased_token(of, record, [&](std::uint32_t i) { visit(of.bias()[i].token, of.raw_of_bias() + i); });
  listed.for_each([&](std::uint32_t i, token_id token, float) { visit(token, of.raw_of_penalties() + i); });
}

/// Adds bias and penalties to the chunk in `values`, by way of `shared`, and to the row in memory.
__device__ inline void change_chunk(const slot_lists& of, const slot_record& record, const listed_tokens& listed,
                                    float* row, std::uint32_t chunk, float* shared,
                                    logit_packet (&values)[chunk_packets]) {
  const std::uint32_t first = chunk * logit_chunk_tokens;
  for (unsigned p = 0; p < chunk_packets; ++p) store_packet(shared + place_in_chunk(p), values[p]);
  __syncthreads();
  if (record.settings.logprobs != 0) {
    keep_raw(of, record, listed, first, shared);
    __syncthreads();
  }
  for_each_change(of, record, listed, first, [&](std::uint32_t place, float addend) {
    shared[place] = finite_logit(shared[place] + addend);
    row[first + place] = shared[place];
  });
  __syncthreads();
  for (unsigned p = 0; p < chunk_packets; ++p) values[p] = load_packet(shared + place_in_chunk(p));
}

inline constexpr std::uint32_t not_listed = 0xffffffff;

/// The places of a token in a slot's lists.
struct listed_token {
  std::uint32_t penalty;  ///< not_listed: sampled for the first time
  bool is_stop;
};

/// penalties::record, except for a new entry (see accept).
__device__ inline listed_token decay_penalties(const slot_lists& of, const slot_record& record,
                                               const listed_tokens& listed, token_id token) {
  __shared__ std::uint32_t penalty, is_stop;
  __syncthreads();  // those of the previous call have been read
  if (threadIdx.x == 0) penalty = not_listed, is_stop = 0;
  __syncthreads();
  const sampler_settings& settings = record.settings;
  if (listed.has_stop(token)) is_stop = 1;
  listed.for_each_packet(
      [&](std::uint32_t i, const packet<token_id>& tokens, packet<float> decayed, std::uint32_t count) {
        for (unsigned t = 0; t < listed_tokens::size; ++t) {
          decayed.values[t] *= settings.penalty_decay;
          if (t < count && tokens.values[t] == token) {
            decayed.values[t] += settings.repeat_penalty;
            penalty = i + t;
          }
        }
        store_packet(of.penalties() + i, decayed);
      });
  __syncthreads();
  return {penalty, is_stop != 0};
}

/// The logit before bias and penalties.
__device__ inline float raw_logit(const slot_lists& of, const slot_record& record, token_id token,
                                  const listed_token& listed, const float* row) {
  if (listed.penalty != not_listed) return of.raw_of_penalties()[listed.penalty];
  __shared__ std::uint32_t entry;
  if (threadIdx.x == 0) entry = not_listed;
  __syncthreads();
  for_each_biased_token(of, record, [&](std::uint32_t i) {
    if (of.bias()[i].token == token) entry = i;
  });
  __syncthreads();
  return entry == not_listed ? row[token] : of.raw_of_bias()[entry];
}

/// Called by one thread: makes the token the slot's last one and, if it is new, adds its penalty.
__device__ inline void accept(const slot_lists& of, const slot_record& record, token_id token,
                              const listed_token& listed, sample_stop stopped) {
  slot_record& changed = of.record();
  if (listed.penalty == not_listed && record.penalty_count < of.penalties_max()) {
    of.penalty_tokens()[record.penalty_count] = token;
    of.penalties()[record.penalty_count] = record.settings.first_penalty;
    changed.penalty_count = record.penalty_count + 1;
  }
  changed.generated = record.generated + 1;
  changed.last_token = token;
  if (stopped != sample_stop::none) changed.frozen = 1;
}

}  // namespace skein::kernels::gpu
