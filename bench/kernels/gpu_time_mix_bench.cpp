// Checks and times the time-mix kernels on a card.
//
//     gpu_time_mix_bench [--quick | --prefill | --decode]      exit status 1 if a result is wrong
//
// --quick skips large sizes, --prefill measures only long runs and token shift, --decode only one token for each of
// many sequences.
//
// Checks: the token-by-token kernel against the primitives of kernels/reference, and bitwise against itself with the
// runs cut into pieces; the chunked kernels against the token-by-token kernel, on the device.
// Times: microseconds per launch, of many launches in one CUDA graph. Decode cycles through the states of enough layers
// to exceed every cache; the percentage is the bandwidth of reading and writing states, relative to 4.3 TB/s.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string_view>

#include "kernels/gpu/ops/token_shift.hpp"
#include "kernels/gpu/time_mix/chunks/wkv_chunks.hpp"
#include "kernels/gpu/time_mix/state.hpp"
#include "tests/kernels/gpu/batch_upload.hpp"
#include "tests/kernels/gpu/time_mix_case.hpp"

using namespace skein;
using namespace skein::test;
using namespace skein::kernels::gpu;
using values = std::vector<float>;

namespace {

constexpr double bytes_a_second = 4.3e12;
constexpr std::uint32_t head = kernels::gpu::head_size;
bool all_right = true;

const char* name_of(element e) { return e == element::f32 ? "fp32" : e == element::f16 ? "fp16" : "bf16"; }

/// An array on the device, filled with repetitions of `values`.
class repeated {
 public:
  repeated(const values& once, element type, std::size_t count, const stream& in)
      : memory_(count * element_bytes(type)) {
    const auto bytes = encode(once, stored_as(type));
    const pinned_buffer<std::byte> pinned(bytes.size());
    std::ranges::copy(bytes, pinned.data());
    const std::size_t all = memory_.bytes();
    std::size_t there = std::min(bytes.size(), all);
    require(copy_to_device(memory_.data(), pinned.data(), there, in));
    for (; there < all; there += std::min(there, all - there))
      require(copy_on_device(memory_.data() + there, memory_.data(), std::min(there, all - there), in));
    require(in.synchronize());
  }
  [[nodiscard]] void* data() const { return memory_.data(); }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(memory_.data()); }

 private:
  device_buffer<std::byte> memory_;
};

values read(const void* from, element type, std::size_t count, const stream& in) {
  const pinned_buffer<std::byte> pinned(count * element_bytes(type));
  require(copy_to_host(pinned.data(), from, pinned.bytes(), in));
  require(in.synchronize());
  const std::vector<std::byte> bytes(pinned.all().begin(), pinned.all().end());
  values out(count);
  copy_to_f32(view_of(bytes, stored_as(type), {static_cast<std::int64_t>(count)}), out);
  return out;
}

/// One layer's inputs for `rows` rows, and states of `slots` sequences with `layers` layers each.
class layer_on_device {
 public:
  layer_on_device(const time_mix_case& given, element type, element state_type, std::uint32_t rows, std::uint32_t slots,
                  std::uint32_t layers, const stream& in)
      : layout_{layers, slots, given.width, state_type}, slots_(slots), type_(type), rows_(rows) {
    kept_.reserve(32);
    const std::size_t count = std::size_t{rows} * given.width;
    const auto rows_of = [&](const values& all, element as) {
      return gemm_rows{kept_.emplace_back(all, as, count, in).data(), given.width, 0, 0};
    };
    const auto vector = [&](const values& all) {
      return kept_.emplace_back(all, element::f32, all.size(), in).floats();
    };
    const element gate = gate_element(type);
    of.r = rows_of(given.r, type), of.k = rows_of(given.k, type), of.v = rows_of(given.v, type);
    of.w_out = rows_of(given.w_out, gate), of.a_out = rows_of(given.a_out, gate);
    of.v_out = rows_of(given.v_out, gate), of.g_out = rows_of(given.g_out, gate);
    of.v_first = kept_.emplace_back(given.v_first, type, count, in).data();
    of.y = kept_.emplace_back(values{0}, type, count, in).data();
    of.w0 = vector(given.w0), of.a0 = vector(given.a0), of.v0 = vector(given.v0);
    of.k_k = vector(given.k_k), of.k_a = vector(given.k_a), of.r_k = vector(given.r_k);
    of.ln_x_weight = vector(given.ln_x_weight), of.ln_x_bias = vector(given.ln_x_bias);
    states_ = kept_.emplace_back(values{0}, element::f32, layout_.bytes() / sizeof(float), in).data();
    of.slot_bytes = layout_.wkv_bytes(), of.width = given.width;
    choose_layer(0);
  }

  void choose_layer(std::uint32_t layer) { of.state = static_cast<char*>(states_) + layout_.wkv(layer); }
  /// States of one layer: [slot, head, value, key].
  void write_states(const values& states, const stream& in) const {
    for (slot_id s = 0; s < slots_; ++s) {
      values canonical(2 * of.width, 0.0f);
      const auto from = states.begin() + static_cast<std::ptrdiff_t>(s * layout_.wkv_floats());
      canonical.insert(canonical.end(), from, from + static_cast<std::ptrdiff_t>(layout_.wkv_floats()));
      const repeated on_device(canonical, layout_.type, canonical.size(), in);
      require(state_from_canonical(in, layout_, on_device.data(), states_, s));
      require(in.synchronize());
    }
  }
  [[nodiscard]] values read_states(const stream& in) const {
    values all;
    for (slot_id s = 0; s < slots_; ++s) {
      const device_buffer<std::byte> canonical(layout_.slot_bytes());
      require(state_to_canonical(in, layout_, states_, s, canonical.data()));
      const values one = read(canonical.data(), layout_.type, layout_.layers * layout_.canonical_layer_floats(), in);
      all.insert(all.end(), one.begin() + 2 * of.width, one.end());
    }
    return all;
  }
  [[nodiscard]] values read_y(const stream& in) const { return read(of.y, type_, std::size_t{rows_} * of.width, in); }

  time_mix_parameters of;

 private:
  slot_layout layout_;
  std::uint32_t slots_;
  element type_;
  std::uint32_t rows_;
  std::vector<repeated> kept_;
  void* states_ = nullptr;
};

/// Runs of these lengths, in slots 0, 1, ...
struct tick {
  tick(const std::vector<std::uint32_t>& lengths, const stream& in)
      : rows(std::accumulate(lengths.begin(), lengths.end(), 0u)),
        upload(rows, static_cast<std::uint32_t>(lengths.size()), 1) {
    for (const std::uint32_t length : lengths) {
      const std::uint32_t first = runs.empty() ? 0 : runs.back().first_row + runs.back().rows;
      runs.push_back({static_cast<slot_id>(runs.size()), first, length});
    }
    send(in);
  }
  /// Chunks the runs like prompts (engine/prompt_parts.hpp).
  void chunk_all_but_the_last(const stream& in) {
    for (auto& run : runs) {
      const std::uint32_t rest = (run.rows - 1) % chunk_tokens;
      run.chunked = run.rows - 1 - (rest < chunked_rows_min ? rest : 0);
    }
    send(in);
  }
  void send(const stream& in) { require(upload.send_rows({std::vector<token_id>(rows), runs}, in)); }
  [[nodiscard]] const device_batch& batch() const { return upload.on_device(); }

  std::uint32_t rows;
  std::vector<kernels::sequence_run> runs;
  batch_upload upload;
};

// ---- checks ----

/// Largest and mean difference, relative to the largest expected value.
struct difference {
  double largest = 0, mean = 0;
};
difference between(const values& got, const values& expected) {
  double most = 0, sum = 0, scale = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double d = std::abs(double{got[i]} - expected[i]);
    most = std::isnan(d) ? INFINITY : std::max(most, d);
    sum += d;
    scale = std::max(scale, std::abs(double{expected[i]}));
  }
  return {most / scale, sum / scale / static_cast<double>(got.size())};
}

void judge(const char* what, element type, element state_type, const difference& y, const difference& state,
           double y_limit, double state_limit) {
  const bool right = y.largest <= y_limit && state.largest <= state_limit;
  all_right = all_right && right;
  std::printf("%-34s %s, state %s   y %.2e (mean %.1e)   state %.2e (mean %.1e)   %s\n", what, name_of(type),
              name_of(state_type), y.largest, y.mean, state.largest, state.mean, right ? "correct" : "WRONG");
}

/// The tolerance for storing values in this type.
double of_type(element e) { return e == element::f32 ? 0 : e == element::f16 ? 1e-3 : 8e-3; }

void check_kernels(element type, element state_type, bool extreme) {
  const stream in;
  const std::vector<std::uint32_t> lengths{300, 1, 64, 33, 7, 129};
  tick given_tick(lengths, in);
  const auto slots = static_cast<std::uint32_t>(lengths.size());
  random_numbers random(extreme ? 2 : 1);
  time_mix_case given(random, type, 3, given_tick.rows, slots, extreme);
  layer_on_device plain(given, type, state_type, given_tick.rows, slots, 1, in);
  layer_on_device chunked(given, type, state_type, given_tick.rows, slots, 1, in);
  layer_on_device cut(given, type, state_type, given_tick.rows, slots, 1, in);
  for (const layer_on_device* layer : {&plain, &chunked, &cut}) layer->write_states(given.states, in);
  given.states = plain.read_states(in);

  require(time_mix(in, given_tick.batch(), type, state_type, plain.of));
  const values y = plain.read_y(in), states = plain.read_states(in);
  values expected(y.size());
  for (const auto& run : given_tick.runs)
    for (std::uint32_t t = run.first_row; t < run.first_row + run.rows; ++t)
      given.take_token(run.slot, t, false, expected);
  const double of_states = state_type == element::f16 ? 5e-3 : 1e-5;
  judge(extreme ? "against reference, extreme" : "against reference", type, state_type, between(y, expected),
        between(states, given.states), std::max(of_type(type), of_states), of_states);

  // Every run in two pieces, in two ticks.
  const auto whole = given_tick.runs;
  for (const bool second : {false, true}) {
    given_tick.runs = whole;
    std::erase_if(given_tick.runs, [](const auto& run) { return run.rows == 1; });
    for (auto& run : given_tick.runs) {
      const std::uint32_t first = 1 + run.rows / 3;
      run = second ? kernels::sequence_run{run.slot, run.first_row + first, run.rows - first}
                   : kernels::sequence_run{run.slot, run.first_row, first};
    }
    if (!second) given_tick.runs.push_back(whole[1]);
    given_tick.send(in);
    require(time_mix(in, given_tick.batch(), type, state_type, cut.of));
    require(in.synchronize());
  }
  given_tick.runs = whole;
  given_tick.send(in);
  judge("cut into pieces", type, state_type, between(cut.read_y(in), y), between(cut.read_states(in), states), 0, 0);

  if (!chunked_time_mix::available()) return;
  chunked_time_mix chunks(given.width, type, given_tick.rows, slots);
  given_tick.chunk_all_but_the_last(in);
  require(chunks.plan(in, given_tick.batch(), given_tick.runs));
  require(chunks.run(in, state_type, chunked.of));
  require(time_mix(in, given_tick.batch(), type, state_type, chunked.of));
  judge(extreme ? "chunks, extreme" : "chunks", type, state_type, between(chunked.read_y(in), y),
        between(chunked.read_states(in), states), std::max({of_type(type), of_states, 2e-3}),
        std::max(of_states, 2e-3));
}

/// A long run with decays of all rates: checks the accumulated rounding in a state.
void check_long_run(element type) {
  const stream in;
  constexpr std::uint32_t rows = 4096, period = 640;
  random_numbers random(6);
  time_mix_case given(random, type, 4, period, 1);
  for (std::size_t i = 0; i < given.w0.size(); ++i) given.w0[i] = -9.0f * static_cast<float>(i % 64) / 63;
  tick all({rows}, in);
  layer_on_device plain(given, type, element::f32, rows, 1, 1, in), chunked(given, type, element::f32, rows, 1, 1, in);
  for (const layer_on_device* layer : {&plain, &chunked}) layer->write_states(given.states, in);
  require(time_mix(in, all.batch(), type, element::f32, plain.of));
  chunked_time_mix chunks(given.width, type, rows, 1);
  all.chunk_all_but_the_last(in);
  require(chunks.plan(in, all.batch(), all.runs));
  require(chunks.run(in, element::f32, chunked.of));
  require(time_mix(in, all.batch(), type, element::f32, chunked.of));
  judge("chunks, a long run", type, element::f32, between(chunked.read_y(in), plain.read_y(in)),
        between(chunked.read_states(in), plain.read_states(in)), std::max(of_type(type), 2e-3), 2e-3);
}

// ---- times ----

/// Microseconds per step of a graph of `count` steps; queue(i) queues the i-th.
template <typename Queue>
double microseconds(const stream& in, std::uint32_t count, const Queue& queue) {
  auto recorded = graph::record(in, [&]() -> result<void> {
    for (std::uint32_t i = 0; i < count; ++i)
      if (auto r = queue(i); !r) return r;
    return {};
  });
  if (!recorded) throw device_failure(recorded.error());
  std::vector<double> times;
  for (int round = 0; round < 7; ++round) {
    require(in.synchronize());
    const auto start = std::chrono::steady_clock::now();
    require(recorded->launch(in));
    require(in.synchronize());
    times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() /
                    count);
  }
  std::ranges::sort(times);
  return times[times.size() / 2];
}

void time_decode(element state_type, std::uint32_t heads, std::uint32_t batch) {
  const stream in;
  const std::size_t state_bytes = std::size_t{batch} * heads * head * head * element_bytes(state_type);
  const auto layers =
      static_cast<std::uint32_t>(std::clamp<std::size_t>((std::size_t{256} << 20) / state_bytes, 1, 1024));
  random_numbers random(3);
  const time_mix_case given(random, element::f16, heads, 64, 1);
  layer_on_device layer(given, element::f16, state_type, batch, batch, layers, in);
  const tick one_each(std::vector<std::uint32_t>(batch, 1), in);
  const double us = microseconds(in, std::max(layers, 64u), [&](std::uint32_t i) {
    layer.choose_layer(i % layers);
    return time_mix(in, one_each.batch(), element::f16, state_type, layer.of);
  });
  std::printf("decode   %2u heads  state %s  batch %4u   %9.2f us   %5.1f %% of 4.3 TB/s\n", heads, name_of(state_type),
              batch, us, 200 * static_cast<double>(state_bytes) / (us * 1e-6) / bytes_a_second);
}

void time_prefill(std::uint32_t heads, std::uint32_t runs, std::uint32_t rows_each, double target_us,
                  bool token_by_token = true) {
  const stream in;
  random_numbers random(4);
  const time_mix_case given(random, element::f16, heads, 64, 1);
  const std::uint32_t rows = runs * rows_each;
  const layer_on_device layer(given, element::f16, element::f32, rows, runs, 1, in);
  tick all(std::vector<std::uint32_t>(runs, rows_each), in);
  std::printf("prefill  %2u heads  %u x %u tokens", heads, runs, rows_each);
  if (token_by_token)
    std::printf("   token by token %.1f us", microseconds(in, 4, [&](std::uint32_t) {
                  return time_mix(in, all.batch(), element::f16, element::f32, layer.of);
                }));
  if (chunked_time_mix::available()) {
    chunked_time_mix chunks(given.width, element::f16, rows, runs);
    all.chunk_all_but_the_last(in);
    require(chunks.plan(in, all.batch(), all.runs));
    const auto time = [&](auto step) { return microseconds(in, 32, [&](std::uint32_t) { return step(); }); };
    const double whole = time([&]() -> result<void> {
      if (auto r = chunks.run(in, element::f32, layer.of); !r) return r;
      return time_mix(in, all.batch(), element::f16, element::f32, layer.of);
    });
    std::printf("   chunks %.1f us", whole);
    if (target_us > 0) std::printf("   (target: %.0f)", target_us);
  }
  std::printf("\n");
}

/// Times the token shift relative to the bytes that it must move: x in, the shifted rows out.
void time_token_shift(std::uint32_t width, std::uint32_t rows, std::uint32_t shifts) {
  const stream in;
  random_numbers random(5);
  const auto vector = [&](std::size_t count) {  // all rows differ
    return repeated(random_values(random, width + 12), element::f32, count, in);
  };
  const std::size_t count = std::size_t{rows} * width;
  const repeated x = vector(count), x_prev = vector(width), weight = vector(width), bias = vector(width);
  std::vector<repeated> mixes, outs;
  token_shift_parameters of;
  of.from.x = x.floats(), of.norm = {weight.floats(), bias.floats()}, of.x_prev = x_prev.floats();
  of.width = of.out_stride = width;
  for (std::uint32_t s = 0; s < shifts; ++s) {
    of.mix[s] = mixes.emplace_back(vector(width)).floats();
    of.out[s] = outs.emplace_back(values{0}, element::f16, count, in).data();
  }
  of.shifts = shifts;
  const tick all({rows}, in);
  // Pieces short enough for another kernel must give the same bits.
  values whole, pieces;
  require(copy_on_device(x_prev.data(), weight.data(), width * sizeof(float), in));
  require(token_shift(in, all.batch(), element::f16, of));
  for (const repeated& out : outs)
    std::ranges::copy(read(out.data(), element::f16, count, in), std::back_inserter(whole));
  require(copy_on_device(x_prev.data(), weight.data(), width * sizeof(float), in));
  constexpr std::uint32_t piece = 256;
  const tick part({piece}, in);
  for (std::uint32_t first = 0; first < rows; first += piece) {
    token_shift_parameters some = of;
    some.from.x += std::size_t{first} * width;
    for (std::uint32_t s = 0; s < shifts; ++s)
      some.out[s] = static_cast<std::byte*>(of.out[s]) + std::size_t{first} * width * element_bytes(element::f16);
    require(token_shift(in, part.batch(), element::f16, some));
  }
  for (const repeated& out : outs)
    std::ranges::copy(read(out.data(), element::f16, count, in), std::back_inserter(pieces));
  all_right = all_right && whole == pieces;
  const double us = microseconds(in, 32, [&](std::uint32_t) { return token_shift(in, all.batch(), element::f16, of); });
  std::printf("token shift  %u x %u, %u outputs   %.1f us, %.2f x the time at 4.3 TB/s   %s\n", rows, width, shifts, us,
              us * 1e-6 * bytes_a_second / (static_cast<double>(count) * (4 + 2 * shifts)),
              whole == pieces ? "correct" : "WRONG");
}

void run_prefill() {
  for (const element type : {element::f16, element::bf16})
    for (const bool extreme : {false, true}) check_kernels(type, element::f32, extreme);
  for (const element type : {element::f32, element::f16}) check_long_run(type);
  time_prefill(64, 1, 4096, 300, false);
  time_prefill(64, 1, 512, 0, false);
  time_prefill(64, 32, 128, 0, false);
  time_prefill(32, 1, 1024, 0, false);
  for (const std::uint32_t shifts : {6u, 1u}) time_token_shift(4096, 4096, shifts);
}

void run_decode() {
  for (const std::uint32_t heads : {64u, 32u})
    for (const element state_type : {element::f16, element::f32})
      for (const std::uint32_t batch : {32u, 128u, 960u}) time_decode(state_type, heads, batch);
}

void run_all(bool quick) {
  for (const element type : {element::f32, element::f16, element::bf16})
    for (const element state_type : {element::f32, element::f16})
      for (const bool extreme : {false, true}) check_kernels(type, state_type, extreme);
  for (const std::uint32_t heads : {64u, 32u})
    for (const element state_type : {element::f32, element::f16})
      for (const std::uint32_t batch : {1u, 8u, 32u, 128u, 320u, 960u})
        if (!quick || batch == 1) time_decode(state_type, heads, batch);
  time_prefill(32, 1, quick ? 64 : 1024, 60);
  if (quick) return;
  time_prefill(64, 1, 512, 60);
  time_prefill(64, 1, 4096, 250);
  time_prefill(64, 16, 32, 0);
  time_prefill(64, 8, 512, 0);
  time_prefill(64, 32, 128, 0);
}

}  // namespace

int main(int count, char** arguments) {
  try {
    require(use_device(0));
    const auto device = describe_device(0);
    if (!device) throw device_failure(device.error());
    std::printf("device: %s; chunks on tensor cores: %s\n", device->name.c_str(),
                chunked_time_mix::available() ? "yes" : "no");
    const std::string_view how = count > 1 ? arguments[1] : "";
    if (how == "--prefill")
      run_prefill();
    else if (how == "--decode")
      run_decode();
    else
      run_all(how == "--quick");
  } catch (const std::exception& failure) {
    std::printf("%s\n", failure.what());
    return 1;
  }
  std::printf("%s\n", all_right ? "all results are correct" : "SOME RESULTS ARE WRONG");
  return all_right ? 0 : 1;
}
