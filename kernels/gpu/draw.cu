// One draw of each row: the whole of sampling::sampler::draw in one launch that reads the logits once from memory.
//
// A row is cut into chunks of 4096 tokens, a thread block each. A block applies the slot's bias and penalties to its
// chunk, in shared memory and for the few changed tokens in the row itself, and leaves the chunk's maximum and, for
// each 64 tokens, their maximum and the sum of their weights relative to the chunk's maximum. The block of a row that
// ends last goes on with the row while it still lies in the level 2 cache: from those sums it knows where candidates
// can be (device/selection.cuh), reads only these again, chooses the token and records it.
//
// What has to be moved: 4 bytes a token and 8 bytes for each 64 tokens; 16 chunks of one row of 65536 tokens keep 16
// multiprocessors busy for about as long as a launch takes, and 960 rows are 252 MB, 58 us at 4.3 TB/s.
#include <string.h>

#include "kernels/gpu/device/last_block.cuh"
#include "kernels/gpu/device/selection.cuh"
#include "kernels/gpu/device/slot_draws.cuh"
#include "kernels/gpu/device/token_scores.cuh"

namespace skein::kernels::gpu {

namespace {

struct draw_work {
  device_draws draws;
  draw_logits from;
  drawn_token* out;
  slot_memory slots;
  sampling_scratch scratch;
  std::uint32_t vocab;
};

// Maximum of the chunk, maximum and sum of weights of each of its blocks. A scale of 0: nobody asks for weights.
__device__ void scan_weights(const logit_packet (&values)[chunk_packets], std::uint32_t chunk, float scale,
                             float* chunk_max, float* block_max_of_row, float* block_sum_of_row) {
  float max = no_logit();
  for (unsigned p = 0; p < chunk_packets; ++p) {
    const float of_block = max_of_block(packet_max(values[p]));
    const std::uint32_t block = chunk * chunk_blocks + place_in_chunk(p) / block_tokens;
    if (threadIdx.x % block_lanes == 0) block_max_of_row[block] = of_block;
    if (of_block > max) max = of_block;
  }
  max = block_max(max);
  if (threadIdx.x == 0) chunk_max[chunk] = max;
  if (scale == 0) return;
  const float reference = max < lowest_logit ? 0 : max;  // a chunk of which nothing is allowed
  for (unsigned p = 0; p < chunk_packets; ++p) {
    const float sum = sum_of_block(packet_sum(values[p], reference, scale * log2_e));
    const std::uint32_t block = chunk * chunk_blocks + place_in_chunk(p) / block_tokens;
    if (threadIdx.x % block_lanes == 0) block_sum_of_row[block] = sum;
  }
}

// What the blocks of row i leave in the scratch memory.
struct row_scratch {
  float *chunk_max, *block_max, *block_sum, *raw_max, *raw_sum;
  best_token* best;

  __device__ row_scratch(const sampling_scratch& of, std::uint32_t i, std::size_t chunks)
      : chunk_max(of.chunk_max + i * chunks),
        block_max(of.block_max + i * chunks * chunk_blocks),
        block_sum(of.block_sum + i * chunks * chunk_blocks),
        raw_max(of.raw_max + i * chunks),
        raw_sum(of.raw_sum + i * chunks),
        best(of.best + i * chunks * top_logprobs_most) {}
};

// The record as it is before the draw, in shared memory: its fields are read in many places. The read of this thread's
// word is queued first; the words are stored once the logits are under way.
constexpr std::uint32_t record_words = sizeof(slot_record) / sizeof(std::uint32_t);
__device__ std::uint32_t load_record_word(const slot_record& record) {
  std::uint32_t word = 0;
  if (threadIdx.x < record_words)
    memcpy(&word, reinterpret_cast<const unsigned char*>(&record) + threadIdx.x * sizeof word, sizeof word);
  return word;
}
__device__ const slot_record& store_record_word(std::uint32_t word) {
  alignas(slot_record) __shared__ unsigned char bytes[sizeof(slot_record)];
  if (threadIdx.x < record_words) memcpy(bytes + threadIdx.x * sizeof word, &word, sizeof word);
  __syncthreads();
  return *reinterpret_cast<const slot_record*>(bytes);
}

__global__ void __launch_bounds__(mass_threads, 4) draw_kernel(draw_work work) {
  const std::uint32_t i = blockIdx.y, chunk = blockIdx.x, chunks = chunks_of(work.vocab);
  const draw_row draw = work.draws.rows[i];
  if (i >= *work.draws.count || draw.slot == no_slot) return;

  const slot_lists lists(work.slots, draw.slot);
  const std::size_t row_start = std::size_t{draw.logits_row} * work.vocab;
  const std::uint32_t* const allowed =
      work.from.allowed == nullptr ? nullptr : work.from.allowed + std::size_t{i} * ((work.vocab + 31) / 32);
  const logit_row row = {work.from.logits + row_start, allowed, work.vocab};
  const logit_row mixed_raw = {work.from.raw + row_start, nullptr, work.vocab};
  const bool is_mixture = work.from.raw != nullptr;

  const std::uint32_t record_word = load_record_word(lists.record());
  logit_packet values[chunk_packets];
  row.load_chunk(chunk * chunk_tokens, values);
  const slot_record& record = store_record_word(record_word);
  const sampler_settings& settings = record.settings;
  const row_scratch scratch(work.scratch, i, chunks);
  if (settings.logprobs != 0) {
    logit_packet raw[chunk_packets];
    for (unsigned p = 0; p < chunk_packets; ++p) raw[p] = values[p];
    if (is_mixture) mixed_raw.load_chunk(chunk * chunk_tokens, raw);
    scan_scores(raw, chunk, settings.top_logprobs, dynamic_shared<best_token>(), scratch.raw_max, scratch.raw_sum,
                scratch.best);
  }
  if (!is_mixture && (settings.bias_count != 0 || record.penalty_count != 0))
    change_chunk(lists, record, work.from.logits + row_start, chunk, dynamic_shared<float>(), values);
  for (unsigned p = 0; p < chunk_packets; ++p) row.restrict(chunk * chunk_tokens + place_in_chunk(p), values[p]);
  const float scale = is_greedy(settings) ? 0 : 1 / scan_temperature(settings, work.vocab);
  scan_weights(values, chunk, scale, scratch.chunk_max, scratch.block_max, scratch.block_sum);
  if (!ends_last(work.scratch.finished + i, chunks)) return;

  drawn_token& out = work.out[i];
  const float max = block_max(threadIdx.x < chunks ? scratch.chunk_max[threadIdx.x] : no_logit());
  if (max < lowest_logit) {  // nothing is allowed
    if (threadIdx.x == 0) out = {};
    return;
  }
  const scanned_row scanned = {{row, scratch.block_max, max, scale}, scratch.chunk_max, scratch.block_sum};
  const token_id token = choose(scanned, settings, record.generated, dynamic_shared<candidate_list>());
  const listed_token listed = decay_penalties(lists, record, token);
  const draw_stop stopped = listed.is_stop                                ? draw_stop::stop_id
                            : record.generated + 1 >= settings.max_tokens ? draw_stop::budget
                                                                          : draw_stop::none;
  if (settings.logprobs != 0) {
    const float raw = is_mixture ? mixed_raw.logits[token] : raw_logit(lists, record, token, listed, row.logits);
    finish_scores(finite_logit(raw), settings.top_logprobs, work.vocab, scratch.raw_max, scratch.raw_sum, scratch.best,
                  dynamic_shared<best_token>(), &out.scores);
  }
  if (threadIdx.x != 0) return;
  accept(lists, record, token, listed, stopped);
  out.token = token;
  out.sampled = 1;
  out.stopped = stopped;
  if (settings.logprobs == 0) {
    out.scores.logprob = 0;
    out.scores.top_count = 0;
  }
}

}  // namespace

result<void> launch_draws(stream_handle in, const device_draws& draws, const draw_logits& from, drawn_token* out,
                          const slot_memory& slots, const sampling_scratch& scratch, std::uint32_t vocab) {
  static_assert(sizeof(candidate_list) >= chunk_tokens * sizeof(best_token));
  const launch_shape shape{"draw", {chunks_of(vocab), draws.room}, {mass_threads}, sizeof(candidate_list), in};
  return launch(shape, draw_kernel, {draws, from, out, slots, scratch, vocab});
}

}  // namespace skein::kernels::gpu
