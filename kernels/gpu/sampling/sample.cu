// Samples one token per row: all of sampling::sampler::draw, in two launches that read the logits once from memory.
//
// A row is cut into chunks of 4096 tokens, and a thread block processes several neighbouring ones. It loads the next
// chunk while it works on one. It applies the slot's bias and penalties, in shared memory and for the few changed
// tokens also in the row, and stores for each 64 tokens their maximum and the sum of their weights relative to it. The
// second launch has one block per row. From those sums it knows where candidates can be (selection.cuh), reads
// only these again, while they are still in the L2 cache, chooses the token and records it. It is a launch of its own
// because it needs many registers, and the scan needs many threads. It does the work that depends on the slot but not
// on the scan while the scan still runs.
//
// Data to move: 4 bytes per token and 8 bytes per 64 tokens. 16 chunks of one row of 65536 tokens keep 16 SMs busy for
// about as long as a launch takes; 960 rows are 252 MB, 58 us at 4.3 TB/s.
#include <string.h>

#include <algorithm>

#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/sampling/selection.cuh"
#include "kernels/gpu/sampling/slot_samples.cuh"
#include "kernels/gpu/sampling/token_scores.cuh"

namespace skein::kernels::gpu {

namespace {

// Blocks of the scan per SM.
[[maybe_unused]] constexpr unsigned scan_blocks = 4;
// Rows that choose_kernel<3> can process at once on the SMs of an H200.
constexpr std::uint32_t few_rows = 396;

struct sample_work {
  device_samples samples;
  sample_logits from;
  sampled_token* out;
  slot_memory slots;
  sampling_scratch scratch;
  std::uint32_t vocab;
};

// The results of the scan of row i.
struct row_scratch {
  float *block_max, *block_sum, *raw_max, *raw_sum;
  std::uint32_t* nonfinite;

  __device__ row_scratch(const sampling_scratch& of, std::uint32_t i, std::size_t blocks)
      : block_max(of.block_max + i * blocks),
        block_sum(of.block_sum + i * blocks),
        raw_max(of.raw_max + i * blocks),
        raw_sum(of.raw_sum + i * blocks),
        nonfinite(of.nonfinite + i) {}
};

// The record before sampling, in shared memory, because its fields are read in many places. The load of this thread's
// word is issued first; the words are stored once the loads of the logits have been issued.
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

// Row i of a launch, as both kernels use it.
struct sampled_row {
  const slot_lists lists;
  const logit_row row, mixed_raw;
  const bool is_mixture;
  const row_scratch scratch;

  __device__ sampled_row(const sample_work& work, const sample_row& sample, std::uint32_t i)
      : lists(work.slots, sample.slot),
        row{work.from.logits + std::size_t{sample.logits_row} * work.vocab,
            work.from.allowed == nullptr ? nullptr : work.from.allowed + std::size_t{i} * ((work.vocab + 31) / 32),
            work.vocab},
        mixed_raw{work.from.raw == nullptr ? nullptr : work.from.raw + std::size_t{sample.logits_row} * work.vocab,
                  nullptr, work.vocab},
        is_mixture(work.from.raw != nullptr),
        scratch(work.scratch, i, blocks_of(work.vocab)) {}

  [[nodiscard]] __device__ logit_row raw_row() const {
    return is_mixture ? mixed_raw : logit_row{row.logits, nullptr, row.vocab};
  }
};

// Scans chunks first_chunk .. end_chunk - 1 of a row. `next` is the first of them, already requested.
template <bool has_noise>
__device__ void scan_row(const sampled_row& of, const slot_record& record, float* logits, std::uint32_t first_chunk,
                         std::uint32_t end_chunk, logit_packet (&next)[chunk_packets]) {
  const sampler_settings& settings = record.settings;
  const listed_tokens listed(of.lists, of.is_mixture ? 0 : record.penalty_count, 0);
  const float scale = takes_largest(settings) ? 0 : 1 / scan_temperature(settings, of.row.vocab);
  for (std::uint32_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
    const std::uint32_t first = chunk * logit_chunk_tokens;
    logit_packet values[chunk_packets];
    for (unsigned p = 0; p < chunk_packets; ++p) values[p] = next[p];
    if (chunk + 1 < end_chunk) of.row.request_chunk(first + logit_chunk_tokens, next);
    if (of.row.settle_chunk(first, values)) *of.scratch.nonfinite = 1;
    if (!of.is_mixture && settings.logprobs != 0) scan_chunk(values, chunk, 1, of.scratch.raw_max, of.scratch.raw_sum);
    if (!of.is_mixture && (settings.bias_count != 0 || record.penalty_count != 0))
      change_chunk(of.lists, record, listed, logits, chunk, dynamic_shared<float>(), values);
    if constexpr (has_noise)
      for (unsigned p = 0; p < chunk_packets; ++p)
        noise_of(settings, record.generated).add(first + place_in_chunk(p), values[p]);
    for (unsigned p = 0; p < chunk_packets; ++p) of.row.restrict(first + place_in_chunk(p), values[p]);
    scan_chunk(values, chunk, scale, of.scratch.block_max, of.scratch.block_sum);
  }
}

// Code that is rarely needed is not inlined, so that it has registers of its own.
__attribute__((noinline)) __device__ void scan_noisy_row(sample_work work, sample_row sample, std::uint32_t i,
                                                         const slot_record& record, std::uint32_t first_chunk,
                                                         std::uint32_t end_chunk) {
  const sampled_row of(work, sample, i);
  logit_packet next[chunk_packets];
  of.row.request_chunk(first_chunk * logit_chunk_tokens, next);
  scan_row<true>(of, record, work.from.logits + std::size_t{sample.logits_row} * work.vocab, first_chunk, end_chunk,
                 next);
}
__attribute__((noinline)) __device__ void scan_raw_row(logit_row row, row_scratch to, std::uint32_t first_chunk,
                                                       std::uint32_t end_chunk) {
  for (std::uint32_t chunk = first_chunk; chunk < end_chunk; ++chunk) {
    logit_packet raw[chunk_packets];
    row.request_chunk(chunk * logit_chunk_tokens, raw);
    if (row.settle_chunk(chunk * logit_chunk_tokens, raw)) *to.nonfinite = 1;
    scan_chunk(raw, chunk, 1, to.raw_max, to.raw_sum);
  }
}

__global__ void __launch_bounds__(mass_threads, scan_blocks) scan_kernel(sample_work work, std::uint32_t chunks_each) {
  pdl_wait();
  pdl_launch_dependents();  // not before the wait: the next kernel reads without a wait what earlier kernels wrote
  const std::uint32_t i = blockIdx.y;
  const sample_row sample = work.samples.rows[i];
  if (i >= *work.samples.count || sample.slot == no_slot) return;

  const sampled_row of(work, sample, i);
  const std::uint32_t record_word = load_record_word(of.lists.record());
  const std::uint32_t first_chunk = blockIdx.x * chunks_each;
  const std::uint32_t chunks = chunks_of(work.vocab);
  const std::uint32_t end_chunk = first_chunk + chunks_each < chunks ? first_chunk + chunks_each : chunks;
  logit_packet next[chunk_packets];
  of.row.request_chunk(first_chunk * logit_chunk_tokens, next);
  const slot_record& record = store_record_word(record_word);
  if (noise_of(record.settings, record.generated).width != 0)
    return scan_noisy_row(work, sample, i, record, first_chunk, end_chunk);
  scan_row<false>(of, record, work.from.logits + std::size_t{sample.logits_row} * work.vocab, first_chunk, end_chunk,
                  next);
  if (of.is_mixture && record.settings.logprobs != 0) scan_raw_row(of.mixed_raw, of.scratch, first_chunk, end_chunk);
}

// A block is a row. The last rows come first, because their logits are most likely to be in the cache still. An SM
// holds `blocks_each` blocks: with many rows it pays to have fewer registers per block.
template <unsigned blocks_each>
__global__ void __launch_bounds__(mass_threads, blocks_each) choose_kernel(sample_work work) {
  const std::uint32_t i = gridDim.x - 1 - blockIdx.x;
  const sample_row sample = work.samples.rows[i];
  if (i >= *work.samples.count || sample.slot == no_slot) {
    pdl_wait();
    return;
  }
  const sampled_row of(work, sample, i);
  const slot_record& record = store_record_word(load_record_word(of.lists.record()));
  const sampler_settings& settings = record.settings;
  const listed_tokens listed_before(of.lists, record.penalty_count, settings.stop_count);
  __shared__ sample_rules rules;
  if (threadIdx.x == 0) rules = rules_of(settings, record.generated, work.vocab);
  sampled_token& out = work.out[i];

  pdl_wait();
  std::uint32_t nonfinite = 0;  // of the first thread
  if (threadIdx.x == 0) {
    nonfinite = *of.scratch.nonfinite;
    *of.scratch.nonfinite = 0;
  }
  const scanned_blocks blocks(of.scratch.block_max, of.scratch.block_sum, work.vocab);
  const float max = blocks.max();
  if (max < lowest_logit) {  // no token is allowed
    if (threadIdx.x == 0) out = {};
    return;
  }
  const token_id token = choose({of.row, blocks, max, rules.scale}, rules, dynamic_shared<candidate_list>());
  const listed_token listed = decay_penalties(of.lists, record, listed_before, token);
  const sample_stop stopped = listed.is_stop                                ? sample_stop::stop_id
                              : record.generated + 1 >= settings.max_tokens ? sample_stop::budget
                                                                            : sample_stop::none;
  if (settings.logprobs != 0) {
    const scanned_blocks raw_blocks_of_row(of.scratch.raw_max, of.scratch.raw_sum, work.vocab);
    const float raw =
        of.is_mixture ? of.mixed_raw.logits[token] : raw_logit(of.lists, record, token, listed, of.row.logits);
    const auto for_each_changed = [&](const auto& visit) {
      if (!of.is_mixture) for_each_raw(of.lists, record, listed_before, visit);
    };
    finish_scores(raw_blocks_of_row, of.raw_row(), for_each_changed, finite_logit(raw), settings.top_logprobs,
                  *dynamic_shared<raw_blocks>(), &out.scores);
  }
  if (threadIdx.x != 0) return;
  accept(of.lists, record, token, listed, stopped);
  out.token = token;
  out.sampled = 1;
  out.stopped = stopped;
  out.scores.nonfinite = nonfinite;
  if (settings.logprobs == 0) {
    out.scores.logprob = 0;
    out.scores.top_count = 0;
  }
}

// With few rows a block processes one chunk, because there are not enough chunks for all SMs; with many rows it
// processes several, so that the next one is loaded meanwhile.
std::uint32_t chunks_of_a_block(std::uint32_t chunks) { return std::clamp(chunks / 1024, 1u, 4u); }

}  // namespace

result<void> launch_samples(stream_handle in, const device_samples& samples, const sample_logits& from,
                            sampled_token* out, const slot_memory& slots, const sampling_scratch& scratch,
                            std::uint32_t vocab) {
  static_assert(sizeof(candidate_list) >= sizeof(raw_blocks));
  const sample_work work{samples, from, out, slots, scratch, vocab};
  constexpr std::size_t scan_bytes = logit_chunk_tokens * sizeof(float);
  const std::uint32_t chunks = chunks_of(vocab), each = chunks_of_a_block(chunks * samples.room);
  const launch_shape scan{
      "sampling scan", {(chunks + each - 1) / each, samples.room}, {mass_threads}, scan_bytes, in, true};
  if (auto r = launch(scan, scan_kernel, work, each); !r) return r;
  const launch_shape choice{"sampling choice", {samples.room}, {mass_threads}, sizeof(candidate_list), in, true};
  return launch(choice, samples.room <= few_rows ? choose_kernel<3> : choose_kernel<4>, work);
}

}  // namespace skein::kernels::gpu
