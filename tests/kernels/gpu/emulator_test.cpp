// Shows that the emulator runs kernels as a GPU would as far as their tests rely on it: barriers, shuffles, votes,
// atomics and shared memory in any order of the threads; that it finds a barrier that is missing and one that not all
// threads reach, and a copy of what an overlapping kernel writes; and that streams, events, graphs and their owners
// keep their word.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "kernels/gpu/device/block.cuh"
#include "kernels/gpu/device/block_pair.cuh"
#include "kernels/gpu/device/bulk_copy.cuh"
#include "kernels/gpu/device/pdl.cuh"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "tests/support/random_cases.hpp"

using namespace skein;
using namespace skein::kernels::gpu;

namespace {

constexpr unsigned threads = 128;

/// Each thread passes its number on to the one that is a block's half away, through shared memory.
template <bool with_barrier>
__global__ void swap_halves(int* out) {
  __shared__ int passed[threads];
  passed[threadIdx.x] = -1;
  __syncthreads();
  passed[threadIdx.x] = static_cast<int>(threadIdx.x);
  if (with_barrier) __syncthreads();
  out[threadIdx.x] = passed[(threadIdx.x + threads / 2) % threads];
}

/// The sum over the threads: the same bits in each of them, and the same for every block of that many threads.
__device__ float block_sum(float value) {
  __shared__ float of_warp[1024 / 32];
  value = warp_sum(value);
  __syncthreads();  // all threads have read the sums of the previous call
  if (threadIdx.x % warp_width == 0) of_warp[threadIdx.x / warp_width] = value;
  __syncthreads();
  float sum = 0;
  for (unsigned warp = 0; warp < blockDim.x / warp_width; ++warp) sum += of_warp[warp];
  return sum;
}

__global__ void sums(float* of_warp, float* of_block, std::uint64_t* odd) {
  const unsigned i = blockIdx.x * threads + threadIdx.x;
  of_warp[i] = warp_sum(static_cast<float>(i));
  of_block[i] = block_sum(static_cast<float>(i));
  odd[i] = ballot(threadIdx.x % 2 == 1);
}

__global__ void diverge() {
  if (threadIdx.x < 40) __syncthreads();
}

__global__ void leave_a_shuffle(float* out) {
  if (threadIdx.x != 3) *out += warp_sum(1);
}

__global__ void count_up(int* counter, int* tickets) {
  tickets[blockIdx.x * threads + threadIdx.x] = atomicAdd(counter, 1);
}

__global__ void reverse(int* values) {
  int* const kept = dynamic_shared<int>();
  kept[threadIdx.x] = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = kept[threads - 1 - threadIdx.x];
}

/// Brings numbers to shared memory and from there to `out`, by copies; who does not wait for them finds others.
template <bool waits>
__global__ void pass_on_by_copies(const int* values, int* out) {
  int* const kept = dynamic_shared<int>();
  __shared__ bulk_arrival arrived;
  if (threadIdx.x == 0) {
    arrived.init();
    arrived.expect(threads * sizeof(int));
    arrived.fetch(kept, values, threads * sizeof(int));
  }
  __syncthreads();
  if (waits) arrived.wait(0);
  const int mine = kept[threadIdx.x];
  __syncthreads();
  kept[threadIdx.x] = mine + 1;
  __syncthreads();
  if (threadIdx.x > 0) return;
  arrived.wait(0);
  send_bytes(out, kept, threads * sizeof(int));
  end_sent_bytes();
  await_written_bytes();
}

__global__ void wait_and_pass_on(const int* values, int* out) {
  pdl_wait();
  pass_on_by_copies<true>(values, out);
}
__global__ void start_next_and_add(int* values) {
  pdl_launch_dependents();
  pdl_wait();
  values[threadIdx.x] += 1;
}
template <bool early>
__global__ void let_next_start() {
  if (early) pdl_launch_dependents();
  pdl_wait();
  pdl_launch_dependents();
}

/// Each thread gives its number to that of the other block. Half of them have no number to give, and end.
template <bool waits>
__global__ void swap_in_pair(float* out) {
  float4* const kept = dynamic_shared<float4>() + threadIdx.x;
  if (threadIdx.x >= threads / 2) return;
  const unsigned number = blockIdx.x * threads + threadIdx.x;
  put_beside(kept, {static_cast<float>(number), 0, 0, 0});
  if (waits) wait_for_pair();
  out[number] = kept->x;
}

__global__ void leave_a_copy(const int* values) {
  int* const kept = dynamic_shared<int>();
  __shared__ bulk_arrival arrived;
  if (threadIdx.x > 0) return;
  arrived.init();
  arrived.expect(threads * sizeof(int));
  arrived.fetch(kept, values, threads * sizeof(int));
}

__global__ void wait_for_no_bytes(const int*) {
  __shared__ bulk_arrival arrived;
  arrived.init();
  arrived.wait(0);
}

__global__ void arrive_too_often(const int*) {
  __shared__ bulk_arrival arrived;
  arrived.init();
  arrived.expect(16), arrived.expect(16);
}

/// Each half of a block waits for its own.
__global__ void meet_by_halves(int* values) {
  __shared__ int passed[threads];
  const unsigned half = threadIdx.x / (threads / 2);
  passed[threadIdx.x] = values[threadIdx.x];
  barrier_of<threads / 2>(1 + half);
  values[threadIdx.x] = passed[half * threads / 2 + (threadIdx.x + 1) % (threads / 2)];
}

__global__ void add_one(int* values) { values[threadIdx.x] += 1; }

/// What a device buffer holds, by way of the host.
template <typename T>
std::vector<T> content(const device_buffer<T>& buffer, const stream& in) {
  pinned_buffer<T> host(buffer.size());
  BOOST_REQUIRE(copy_to_host(host.data(), buffer.data(), buffer.bytes(), in).has_value());
  BOOST_REQUIRE(in.synchronize().has_value());
  return {host.all().begin(), host.all().end()};
}

device_buffer<int> numbers(const stream& in) {
  device_buffer<int> buffer(threads);
  pinned_buffer<int> host(threads);
  std::iota(host.all().begin(), host.all().end(), 0);
  BOOST_REQUIRE(copy_to_device(buffer.data(), host.data(), host.bytes(), in).has_value());
  BOOST_REQUIRE(in.synchronize().has_value());
  return buffer;
}

template <bool with_barrier>
bool swaps_halves() {
  const stream in;
  const device_buffer<int> out(threads);
  BOOST_REQUIRE(launch({"swap_halves", {1}, {threads}, 0, in}, swap_halves<with_barrier>, out.data()).has_value());
  const auto got = content(out, in);
  for (unsigned i = 0; i < threads; ++i)
    if (got[i] != static_cast<int>((i + threads / 2) % threads)) return false;
  return true;
}

/// Undoes what a case with a broken kernel left.
struct clear_error {
  ~clear_error() { emulator::clear_error(); }
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_missing_barrier_is_found) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    BOOST_TEST(swaps_halves<true>());
    wrong += !swaps_halves<false>();
  }
  BOOST_TEST(wrong > 15);  // unless the warps happened to run in the right order
}

BOOST_AUTO_TEST_CASE(lanes_and_threads_add_up_in_any_order) {
  const stream in;
  constexpr unsigned blocks = 3, all = blocks * threads;
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    const device_buffer<float> of_warp(all), of_block(all);
    const device_buffer<std::uint64_t> odd(all);
    BOOST_REQUIRE(launch({"sums", {blocks}, {threads}, 0, in}, sums, of_warp.data(), of_block.data(), odd.data()));
    const auto warps = content(of_warp, in), whole = content(of_block, in);
    const auto votes = content(odd, in);
    for (unsigned i = 0; i < all; ++i) {
      const unsigned warp = i / warp_width * warp_width, block = i / threads * threads;
      BOOST_TEST(warps[i] == static_cast<float>(warp * warp_width + warp_width * (warp_width - 1) / 2));
      BOOST_TEST(whole[i] == static_cast<float>(block * threads + threads * (threads - 1) / 2));
      BOOST_TEST(votes[i] == (warp_width == 64 ? 0xaaaaaaaaaaaaaaaa : 0xaaaaaaaa));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_copy_is_there_when_it_was_waited_for_and_often_not_before) {
  int wrong = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    const stream in;
    const device_buffer<int> values = numbers(in), out(threads);
    const auto passed_on = [&](auto kernel) {
      BOOST_REQUIRE(launch({"pass_on", {1}, {threads}, threads * sizeof(int), in}, kernel, values.data(), out.data())
                        .has_value());
      const auto got = content(out, in);
      for (unsigned i = 0; i < threads; ++i)
        if (got[i] != static_cast<int>(i) + 1) return false;
      return true;
    };
    BOOST_TEST(passed_on(pass_on_by_copies<true>));
    wrong += !passed_on(pass_on_by_copies<false>);
  }
  BOOST_TEST(wrong > 5);
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_copies_is_told) {
  const auto told = [](auto kernel) {
    const clear_error after;
    const stream in;
    const device_buffer<int> values = numbers(in);
    BOOST_REQUIRE(launch({"copying", {1}, {threads}, threads * sizeof(int), in}, kernel, values.data()).has_value());
    const auto done = in.synchronize();
    BOOST_REQUIRE(!done.has_value());
    return done.error().message;
  };
  BOOST_TEST(told(leave_a_copy).find("copying: a block ended before its copies") != std::string::npos);
  BOOST_TEST(told(wait_for_no_bytes).find("128 waiting bulk_copy.cuh") != std::string::npos);
  BOOST_TEST(told(arrive_too_often).find("more threads arrive at a barrier than it expects") != std::string::npos);
}

// Three kernels that may overlap: one writes, one lets the next one start, before its wait or after, and one copies.
BOOST_AUTO_TEST_CASE(a_copy_of_what_may_not_be_written_yet_is_found) {
  using starting = void (*)();
  const auto works = [](std::optional<starting> between, auto copying) {
    const clear_error after;
    const stream in;
    const device_buffer<int> values = numbers(in), out(threads);
    require(in.synchronize());
    const emulator::early_reads reads;
    const auto shape = [&](const char* name) {
      return launch_shape{name, {1}, {threads}, threads * sizeof(int), in, true};
    };
    require(launch(shape("add"), start_next_and_add, values.data()));
    if (between) require(launch(shape("between"), *between));
    require(launch(shape("copy"), copying, values.data(), out.data()));
    return in.synchronize().has_value();
  };
  const auto at_once = pass_on_by_copies<true>;
  BOOST_TEST(works({}, wait_and_pass_on));
  BOOST_TEST(!works({}, at_once));
  BOOST_TEST(works(let_next_start<true>, wait_and_pass_on));
  BOOST_TEST(!works(let_next_start<true>, at_once));
  BOOST_TEST(works(let_next_start<false>, at_once));
}

BOOST_AUTO_TEST_CASE(halves_of_a_block_meet_alone) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    emulator::block_runner::of_this_thread().reseed(seed);
    const stream in;
    const device_buffer<int> values = numbers(in);
    BOOST_REQUIRE(launch({"meet", {1}, {threads}, 0, in}, meet_by_halves, values.data()).has_value());
    const auto got = content(values, in);
    constexpr unsigned half = threads / 2;
    for (unsigned i = 0; i < threads; ++i) BOOST_TEST(got[i] == static_cast<int>(i / half * half + (i + 1) % half));
  }
}

BOOST_AUTO_TEST_CASE(blocks_of_a_pair_see_each_other_s_memory_once_they_have_met) {
  const stream in;
  constexpr unsigned blocks = 6, half = threads / 2;
  for (const bool waits : {true, false}) {
    const device_buffer<float> out(blocks * threads);
    require(fill_with_zeros(out.data(), out.bytes(), in));
    const launch_shape shape{"swap", {blocks}, {threads}, threads * sizeof(float4), in, true, 2};
    require(launch(shape, waits ? swap_in_pair<true> : swap_in_pair<false>, out.data()));
    const auto got = content(out, in);
    unsigned wrong = 0;
    for (unsigned block = 0; block < blocks; ++block)
      for (unsigned i = 0; i < half; ++i)
        if (got[block * threads + i] != static_cast<float>((block ^ 1) * threads + i)) ++wrong;
    BOOST_TEST((wrong == 0) == waits);
  }
  const launch_shape odd{"swap", {3}, {threads}, threads * sizeof(float4), in, true, 2};
  const clear_error after;
  BOOST_REQUIRE(launch(odd, swap_in_pair<true>, static_cast<float*>(nullptr)).has_value());
  BOOST_TEST(!in.synchronize().has_value());
}

BOOST_AUTO_TEST_CASE(a_divergent_barrier_is_an_error_with_the_kernel_s_name) {
  const clear_error after;
  const stream in;
  BOOST_REQUIRE(launch({"diverge", {2}, {threads}, 0, in}, diverge).has_value());
  const auto ended = in.synchronize();
  BOOST_REQUIRE(!ended.has_value());
  BOOST_CHECK(ended.error().kind == error_kind::unavailable);
  BOOST_TEST(ended.error().message.find("kernel diverge: ") != std::string::npos, ended.error().message);
  BOOST_TEST(ended.error().message.find("40 at the barrier emulator_test.cpp:") != std::string::npos,
             ended.error().message);
  BOOST_TEST(ended.error().message.find("88 finished") != std::string::npos, ended.error().message);
  BOOST_TEST(!in.synchronize().has_value());  // as on a GPU, the trouble stays
}

BOOST_AUTO_TEST_CASE(a_lane_that_leaves_a_shuffle_is_an_error) {
  const clear_error after;
  const stream in;
  const device_buffer<float> out(1);
  BOOST_REQUIRE(launch({"leave_a_shuffle", {1}, {threads}, 0, in}, leave_a_shuffle, out.data()).has_value());
  const auto ended = in.synchronize();
  BOOST_REQUIRE(!ended.has_value());
  BOOST_TEST(ended.error().message.find("at the warp operation warp.cuh:") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_fibers_work_again_after_trouble) {
  {
    const clear_error after;
    const stream in;
    BOOST_REQUIRE(launch({"diverge", {1}, {threads}, 0, in}, diverge).has_value());
    BOOST_REQUIRE(!in.synchronize().has_value());
  }
  BOOST_TEST(swaps_halves<true>());
}

BOOST_AUTO_TEST_CASE(atomics_count_every_thread_once) {
  const stream in;
  constexpr unsigned blocks = 4;
  const device_buffer<int> counter(1), tickets(blocks * threads);
  BOOST_REQUIRE(fill_with_zeros(counter.data(), counter.bytes(), in).has_value());
  BOOST_REQUIRE(launch({"count_up", {blocks}, {threads}, 0, in}, count_up, counter.data(), tickets.data()).has_value());
  auto seen = content(tickets, in);
  BOOST_TEST(!std::ranges::is_sorted(seen));  // the order is a shuffled one
  std::ranges::sort(seen);
  for (unsigned i = 0; i < seen.size(); ++i) BOOST_TEST(seen[i] == static_cast<int>(i));
}

BOOST_AUTO_TEST_CASE(dynamic_shared_memory_is_there) {
  const stream in;
  const auto values = numbers(in);
  BOOST_REQUIRE(launch({"reverse", {1}, {threads}, threads * sizeof(int), in}, reverse, values.data()).has_value());
  const auto got = content(values, in);
  for (unsigned i = 0; i < threads; ++i) BOOST_TEST(got[i] == static_cast<int>(threads - 1 - i));
}

BOOST_AUTO_TEST_CASE(a_stream_runs_when_it_is_waited_for) {
  const stream first, second;
  event done;
  const auto values = numbers(first);
  BOOST_REQUIRE(launch({"add_one", {1}, {threads}, 0, first}, add_one, values.data()).has_value());
  BOOST_REQUIRE(done.record(first).has_value());
  BOOST_TEST(content(values, second)[0] == 0);  // the second was not told to wait
  BOOST_REQUIRE(done.hold(second).has_value());
  BOOST_TEST(content(values, second)[0] == 1);
}

BOOST_AUTO_TEST_CASE(a_graph_repeats_what_was_recorded) {
  const stream in;
  const auto values = numbers(in);
  const auto recorded = graph::record(in, [&] {
    auto first = launch({"reverse", {1}, {threads}, threads * sizeof(int), in}, reverse, values.data());
    return first ? launch({"add_one", {1}, {threads}, 0, in}, add_one, values.data()) : first;
  });
  BOOST_REQUIRE(recorded.has_value());
  BOOST_TEST(content(values, in)[0] == 0);  // recording runs nothing
  BOOST_REQUIRE(recorded->launch(in).has_value());
  BOOST_TEST(content(values, in)[0] == static_cast<int>(threads));
  BOOST_REQUIRE(recorded->launch(in).has_value());
  BOOST_TEST(content(values, in)[0] == 2);
}

BOOST_AUTO_TEST_CASE(memory_that_is_not_there_is_an_error_with_its_bytes) {
  try {
    const device_buffer<std::byte> too_much(std::size_t{1} << 50, "a test");
    BOOST_ERROR("allocated");
  } catch (const device_failure& failure) {
    BOOST_CHECK(failure.why().kind == error_kind::unavailable);
    const std::string& message = failure.why().message;
    BOOST_TEST(message.starts_with("GPU: allocating 1125899906842624 bytes for a test: out of memory ("), message);
    BOOST_TEST(message.ends_with(" bytes of device memory are free)"), message);
  }
}
