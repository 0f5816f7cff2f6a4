// One draw of each row: the whole of sampling::sampler::draw in two launches that read the logits once from memory.
//
// A row is cut into chunks of 4096 tokens, a thread block each. A block applies the slot's bias and penalties to its
// chunk, in shared memory and for the few changed tokens in the row itself, and leaves the chunk's maximum and, for
// each 64 tokens, their maximum and the sum of their weights relative to the chunk's maximum. The second launch has a
// block for each row: from those sums it knows where candidates can be (device/selection.cuh), reads only these again,
// while they still lie in the level 2 cache, chooses the token and records it. It has a launch of its own because it
// needs many registers, and the scan needs many threads.
//
// What has to be moved: 4 bytes a token and 8 bytes for each 64 tokens; 16 chunks of one row of 65536 tokens keep 16
// multiprocessors busy for about as long as a launch takes, and 960 rows are 252 MB, 58 us at 4.3 TB/s.
#include <string.h>

#include "kernels/gpu/device/overlap.cuh"
#include "kernels/gpu/device/selection.cuh"
#include "kernels/gpu/device/slot_draws.cuh"
#include "kernels/gpu/device/token_scores.cuh"

namespace skein::kernels::gpu {

namespace {

// Blocks of the scan that a multiprocessor holds at a time.
constexpr unsigned scan_blocks = 5;

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
  const std::uint32_t own_block = chunk * chunk_blocks + place_in_chunk(packet_of_thread()) / block_tokens;
  const bool stores = threadIdx.x % (block_lanes / chunk_packets) == 0;
  float each[chunk_packets];
  for (unsigned p = 0; p < chunk_packets; ++p) each[p] = packet_max(values[p]);
  const float of_block = fold_blocks(each, [](float a, float b) { return b > a ? b : a; });
  if (stores) block_max_of_row[own_block] = of_block;
  const float max = block_max(of_block);
  if (threadIdx.x == 0) chunk_max[chunk] = max;
  if (scale == 0) return;
  const float reference = max < lowest_logit ? 0 : max;  // a chunk of which nothing is allowed
  for (unsigned p = 0; p < chunk_packets; ++p) each[p] = packet_sum(values[p], reference, scale * log2_e);
  const float sum = fold_blocks(each, [](float a, float b) { return a + b; });
  if (stores) block_sum_of_row[own_block] = sum;
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

// Loads the chunk once more and has registers of its own: most draws do without.
__attribute__((noinline)) __device__ void scan_raw_chunk(logit_row row, std::uint32_t chunk, std::uint32_t top,
                                                         row_scratch to) {
  logit_packet raw[chunk_packets];
  row.load_chunk(chunk * chunk_tokens, raw);
  scan_scores(raw, chunk, top, dynamic_shared<best_token>(), to.raw_max, to.raw_sum, to.best);
}

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

// Row i of a launch, as both kernels know it.
struct drawn_row {
  const slot_lists lists;
  const logit_row row, mixed_raw;
  const bool is_mixture;
  const row_scratch scratch;

  __device__ drawn_row(const draw_work& work, const draw_row& draw, std::uint32_t i)
      : lists(work.slots, draw.slot),
        row{work.from.logits + std::size_t{draw.logits_row} * work.vocab,
            work.from.allowed == nullptr ? nullptr : work.from.allowed + std::size_t{i} * ((work.vocab + 31) / 32),
            work.vocab},
        mixed_raw{work.from.raw + std::size_t{draw.logits_row} * work.vocab, nullptr, work.vocab},
        is_mixture(work.from.raw != nullptr),
        scratch(work.scratch, i, chunks_of(work.vocab)) {}
};

__global__ void __launch_bounds__(mass_threads, scan_blocks) scan_kernel(draw_work work) {
  let_next_kernel_begin();
  wait_for_kernels_before();
  const std::uint32_t i = blockIdx.y, chunk = blockIdx.x;
  const draw_row draw = work.draws.rows[i];
  if (i >= *work.draws.count || draw.slot == no_slot) return;

  const drawn_row of(work, draw, i);
  const std::uint32_t record_word = load_record_word(of.lists.record());
  logit_packet values[chunk_packets];
  of.row.load_chunk(chunk * chunk_tokens, values);
  const slot_record& record = store_record_word(record_word);
  const sampler_settings& settings = record.settings;
  if (settings.logprobs != 0)
    scan_raw_chunk(of.is_mixture ? of.mixed_raw : of.row, chunk, settings.top_logprobs, of.scratch);
  if (!of.is_mixture && (settings.bias_count != 0 || record.penalty_count != 0))
    change_chunk(of.lists, record, work.from.logits + std::size_t{draw.logits_row} * work.vocab, chunk,
                 dynamic_shared<float>(), values);
  for (unsigned p = 0; p < chunk_packets; ++p) of.row.restrict(chunk * chunk_tokens + place_in_chunk(p), values[p]);
  const float scale = is_greedy(settings) ? 0 : 1 / scan_temperature(settings, work.vocab);
  scan_weights(values, chunk, scale, of.scratch.chunk_max, of.scratch.block_max, of.scratch.block_sum);
}

// A block is a row.
__global__ void __launch_bounds__(mass_threads, 4) choose_kernel(draw_work work) {
  wait_for_kernels_before();
  const std::uint32_t i = blockIdx.x, chunks = chunks_of(work.vocab);
  const draw_row draw = work.draws.rows[i];
  if (i >= *work.draws.count || draw.slot == no_slot) return;

  const drawn_row of(work, draw, i);
  const slot_record& record = store_record_word(load_record_word(of.lists.record()));
  const sampler_settings& settings = record.settings;
  drawn_token& out = work.out[i];
  const float max = block_max(threadIdx.x < chunks ? of.scratch.chunk_max[threadIdx.x] : no_logit());
  if (max < lowest_logit) {  // nothing is allowed
    if (threadIdx.x == 0) out = {};
    return;
  }
  const float scale = is_greedy(settings) ? 0 : 1 / scan_temperature(settings, work.vocab);
  const scanned_row scanned = {{of.row, of.scratch.block_max, max, scale}, of.scratch.chunk_max, of.scratch.block_sum};
  const token_id token = choose(scanned, settings, record.generated, dynamic_shared<candidate_list>());
  const listed_token listed = decay_penalties(of.lists, record, token);
  const draw_stop stopped = listed.is_stop                                ? draw_stop::stop_id
                            : record.generated + 1 >= settings.max_tokens ? draw_stop::budget
                                                                          : draw_stop::none;
  if (settings.logprobs != 0) {
    const float raw =
        of.is_mixture ? of.mixed_raw.logits[token] : raw_logit(of.lists, record, token, listed, of.row.logits);
    finish_scores(finite_logit(raw), settings.top_logprobs, work.vocab, of.scratch.raw_max, of.scratch.raw_sum,
                  of.scratch.best, dynamic_shared<best_token>(), &out.scores);
  }
  if (threadIdx.x != 0) return;
  accept(of.lists, record, token, listed, stopped);
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
  static_assert(sizeof(candidate_list) >= chunks_max * top_logprobs_most * sizeof(best_token));
  const draw_work work{draws, from, out, slots, scratch, vocab};
  constexpr std::size_t scan_bytes = chunk_tokens * sizeof(best_token);
  const launch_shape scan{"scan of a draw", {chunks_of(vocab), draws.room}, {mass_threads}, scan_bytes, in, true};
  if (auto r = launch(scan, scan_kernel, work); !r) return r;
  return launch({"choice of a draw", {draws.room}, {mass_threads}, sizeof(candidate_list), in, true}, choose_kernel,
                work);
}

}  // namespace skein::kernels::gpu
