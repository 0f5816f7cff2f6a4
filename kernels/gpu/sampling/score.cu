// Log-probabilities of given tokens, in one launch for all rows: each block of a row reads a chunk, and the last block
// to finish combines their maxima and sums. 4 bytes per token are read once.
#include "kernels/gpu/device/last_block.cuh"
#include "kernels/gpu/sampling/token_scores.cuh"

namespace skein::kernels::gpu {

namespace {

struct score_work {
  device_scores scores;
  const float* logits;
  token_scores* out;
  sampling_scratch scratch;
  std::uint32_t vocab;
};

__global__ void __launch_bounds__(mass_threads) score_kernel(score_work work) {
  const std::uint32_t i = blockIdx.y, chunk = blockIdx.x;
  const score_row score = work.scores.rows[i];
  if (i >= *work.scores.count) return;
  const logit_row row = {work.logits + std::size_t{score.logits_row} * work.vocab, nullptr, work.vocab};
  float* const raw_max = work.scratch.raw_max + std::size_t{i} * blocks_of(work.vocab);
  float* const raw_sum = work.scratch.raw_sum + std::size_t{i} * blocks_of(work.vocab);

  logit_packet raw[chunk_packets];
  row.request_chunk(chunk * logit_chunk_tokens, raw);
  if (row.settle_chunk(chunk * logit_chunk_tokens, raw)) work.scratch.nonfinite[i] = 1;
  scan_chunk(raw, chunk, 1, raw_max, raw_sum);
  if (!ends_last(work.scratch.finished + i, chunks_of(work.vocab))) return;
  __shared__ raw_blocks best;
  finish_scores(
      {raw_max, raw_sum, work.vocab}, row, [](const auto&) {}, finite_logit(row.logits[score.token]), score.top, best,
      work.out + i);
  if (threadIdx.x != 0) return;
  work.out[i].nonfinite = work.scratch.nonfinite[i];
  work.scratch.nonfinite[i] = 0;
}

}  // namespace

result<void> launch_scores(stream_handle in, const device_scores& scores, const float* logits, token_scores* out,
                           const sampling_scratch& scratch, std::uint32_t vocab) {
  const launch_shape shape{"score", {chunks_of(vocab), scores.room}, {mass_threads}, 0, in};
  return launch(shape, score_kernel, {scores, logits, out, scratch, vocab});
}

}  // namespace skein::kernels::gpu
