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

__global__ void __launch_bounds__(mass_threads, 4) draw_kernel(draw_work work) {
  const std::uint32_t i = blockIdx.y, chunk = blockIdx.x;
  const draw_row draw = work.draws.rows[i];
  if (i >= *work.draws.count || draw.slot == no_slot) return;

  const std::uint32_t chunks = chunks_of(work.vocab);
  const std::size_t row_start = std::size_t{draw.logits_row} * work.vocab;
  const std::uint32_t* const allowed =
      work.from.allowed == nullptr ? nullptr : work.from.allowed + std::size_t{i} * ((work.vocab + 31) / 32);
  const logit_row row = {work.from.logits + row_start, allowed, work.vocab};
  const sampling_scratch& scratch = work.scratch;
  float* const chunk_max = scratch.chunk_max + std::size_t{i} * chunks;
  float* const block_max_of_row = scratch.block_max + std::size_t{i} * chunks * chunk_blocks;
  float* const block_sum_of_row = scratch.block_sum + std::size_t{i} * chunks * chunk_blocks;
  float* const raw_max = scratch.raw_max + std::size_t{i} * chunks;
  float* const raw_sum = scratch.raw_sum + std::size_t{i} * chunks;
  best_token* const best = scratch.best + std::size_t{i} * chunks * top_logprobs_most;

  logit_packet values[chunk_packets];
  row.load_chunk(chunk * chunk_tokens, values);
  const slot_lists lists(work.slots, draw.slot);
  const sampler_settings& settings = lists.record().settings;
  const float scale = is_greedy(settings) ? 0 : 1 / settings.temperature;
  if (settings.logprobs != 0) {
    logit_packet raw[chunk_packets];
    if (work.from.raw != nullptr) {
      logit_row{work.from.raw + row_start, nullptr, work.vocab}.load_chunk(chunk * chunk_tokens, raw);
    } else {
      for (unsigned p = 0; p < chunk_packets; ++p) raw[p] = values[p];
    }
    scan_scores(raw, chunk, settings.top_logprobs, dynamic_shared<best_token>(), raw_max, raw_sum, best);
  }
  if (work.from.raw == nullptr && lists.changes_logits())
    change_chunk(lists, work.from.logits + row_start, chunk, dynamic_shared<float>(), values);
  for (unsigned p = 0; p < chunk_packets; ++p) row.restrict(chunk * chunk_tokens + place_in_chunk(p), values[p]);
  scan_weights(values, chunk, scale, chunk_max, block_max_of_row, block_sum_of_row);

  if (!ends_last(scratch.finished + i, chunks)) return;
  const float max = block_max(threadIdx.x < chunks ? chunk_max[threadIdx.x] : no_logit());
  drawn_token& out = work.out[i];
  if (max < lowest_logit) {  // nothing is allowed
    if (threadIdx.x == 0) out = {};
    return;
  }
  const scanned_row scanned = {{row, block_max_of_row, max, scale}, chunk_max, block_sum_of_row};
  const token_id token = choose(scanned, settings, lists.record().generated, dynamic_shared<candidate_list>());

  const std::uint32_t known = find_penalty(lists, token);
  if (settings.logprobs != 0) {
    const float raw = work.from.raw == nullptr ? raw_logit(lists, token, known, row.logits)
                                               : work.from.raw[row_start + static_cast<std::uint32_t>(token)];
    finish_scores(finite_logit(raw), settings.top_logprobs, work.vocab, raw_max, raw_sum, best,
                  dynamic_shared<best_token>(), &out.scores);
  } else if (threadIdx.x == 0) {
    out.scores.logprob = 0;
    out.scores.top_count = 0;
  }
  record_penalty(lists, token, known);
  if (threadIdx.x == 0) {
    ++lists.record().generated;
    out.token = token;
    out.sampled = 1;
    out.stopped = stop_of(lists, token);
    accept(lists.record(), token, out.stopped);
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
