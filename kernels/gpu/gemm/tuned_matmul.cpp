#include "kernels/gpu/gemm/tuned_matmul.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.hpp"
#include "kernels/gpu/gemm/epilogue_rows.hpp"
#include "kernels/gpu/runtime/stream.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr int timed_runs = 4;
constexpr double worth_it = 0.98;       // of the time of our kernels: smaller gains may be noise
constexpr double parts_worth_it = 0.9;  // of the time of the alternatives: the consumer of partial sums reads more

bool same_shape(const gemm& a, const gemm& b) {
  return a.matrix.outputs == b.matrix.outputs && a.matrix.inputs == b.matrix.inputs && a.in_stride == b.in_stride &&
         a.out_stride == b.out_stride && a.how == b.how;
}

library_shape shape_of(const gemm& p, element type) {
  library_shape shape;
  shape.type = type, shape.out_type = output_type(p.how, type);
  shape.adds = p.how.to == destination::add_f32;
  shape.outputs = p.matrix.outputs, shape.inputs = p.matrix.inputs;
  shape.in_stride = p.in_stride, shape.out_stride = p.out_stride;
  return shape;
}

/// Whether matrices are aligned as the library expects, and rows for 16-byte accesses.
bool is_aligned(const gemm& p, const library_shape& shape) {
  const auto at = [](const void* address) { return reinterpret_cast<std::uintptr_t>(address) % 256 == 0; };
  return p.matrix.outputs % 8 == 0 && p.in_stride * element_bytes(shape.type) % 16 == 0 &&
         p.out_stride * element_bytes(shape.out_type) % 16 == 0 && at(p.matrix.data) && at(p.in) && at(p.out);
}

}  // namespace

result<double> seconds_on_device(stream_handle in, const std::function<result<void>()>& queue_work) {
  if (auto r = queue_work(); !r) return r.error();
  if (auto r = wait_for(in); !r) return r.error();
  const auto runs = graph::record(in, [&]() -> result<void> {
    for (int i = 0; i < timed_runs; ++i)
      if (auto r = queue_work(); !r) return r;
    return {};
  });
  if (!runs) return runs.error();
  timed_event begun, done;
  // The first launch keeps the device busy until all timed work is queued.
  if (auto r = runs->launch(in); !r) return r.error();
  if (auto r = begun.record(in); !r) return r.error();
  if (auto r = runs->launch(in); !r) return r.error();
  if (auto r = done.record(in); !r) return r.error();
  if (auto r = done.synchronize(); !r) return r.error();
  const auto seconds = done.seconds_since(begun);
  if (!seconds) return seconds.error();
  return *seconds / timed_runs;
}

tuned_matmul::tuned_matmul(const matmul_functions& ours, element type, std::unique_ptr<matmul_library> library,
                           std::uint32_t rows_max, stopwatch watch)
    : ours_(ours),
      type_(type),
      library_(std::move(library)),
      watch_(std::move(watch)),
      workspace_(workspace_bytes, "the matrix library") {
  check(rows_max >= library_rows_min);
  std::uint32_t rows = library_rows_min;
  for (; rows < rows_max; rows *= 2) buckets_.push_back({rows, {}, {}});
  buckets_.push_back({rows_max, {}, {}});
}

std::vector<std::uint32_t> tuned_matmul::bucket_rows() const {
  std::vector<std::uint32_t> rows;
  for (const bucket& b : buckets_) rows.push_back(b.rows_max);
  return rows;
}

const tuned_matmul::bucket* tuned_matmul::find_bucket(std::uint32_t rows) const {
  const auto found = std::ranges::find_if(buckets_, [&](const bucket& b) { return rows <= b.rows_max; });
  return found == buckets_.end() ? nullptr : &*found;
}

const tuned_matmul::launch_ways* tuned_matmul::find_launch(const bucket& b, std::span<const gemm> launch) {
  const auto found = std::ranges::find_if(b.launches, [&](const launch_ways& ways) {
    return std::ranges::equal(ways.of, launch, same_shape, &way::shape);
  });
  return found == b.launches.end() ? nullptr : &*found;
}

result<void> tuned_matmul::learn(stream_handle in, std::span<const gemm> launch, const std::uint32_t* row_count,
                                 std::uint32_t rows) {
  check(takes(rows));
  if (has_turns(launch)) return in_two_launches(launch, [&](auto some) { return learn(in, some, row_count, rows); });
  const auto found = std::ranges::find_if(buckets_, [&](const bucket& b) { return rows <= b.rows_max; });
  check(found != buckets_.end());
  if (find_launch(*found, launch)) return {};
  launch_ways ways{{}, false};
  for (const gemm& p : launch) {
    auto how = fastest(in, *found, p, row_count, rows);
    if (!how) return how.error();
    ways.of.push_back(std::move(*how));
  }
  const auto whole = watch_(in, [&] { return run_as(in, {}, launch, row_count, rows); });
  if (!whole) return whole.error();
  double least = *whole;
  if (std::ranges::any_of(ways.of, [](const way& how) { return how.library != nullptr; })) {
    const auto chosen = watch_(in, [&] { return run_as(in, ways.of, launch, row_count, rows); });
    if (!chosen) return chosen.error();
    if (*chosen > worth_it * *whole)
      for (way& how : ways.of) how.library = nullptr;
    else
      least = *chosen;
  }
  const auto has_segments = [](const gemm& p) { return p.segments > 1; };
  if (std::ranges::any_of(launch, has_segments) && ours_.splits(launch, rows)) {
    const auto in_parts = seconds_in_parts(in, launch, row_count, rows);
    if (!in_parts) return in_parts.error();
    ways.in_parts = *in_parts < parts_worth_it * least;
  }
  found->launches.push_back(std::move(ways));
  return {};
}

// All partial sums overwrite each other in the workspace, because they are not read.
result<double> tuned_matmul::seconds_in_parts(stream_handle in, std::span<const gemm> launch,
                                              const std::uint32_t* row_count, std::uint32_t rows) const {
  std::vector<gemm> split(launch.begin(), launch.end());
  for (gemm& p : split) {
    if (p.segments == 1) continue;
    p.how = {.to = destination::parts};  // what reads them applies the activation
    p.out = workspace_.data(), p.out_stride = p.matrix.outputs;
    p.part_stride = std::size_t{rows} * p.matrix.outputs;
    if (p.segments * p.part_stride * sizeof(float) > workspace_.bytes()) return std::numeric_limits<double>::infinity();
  }
  return watch_(in, [&] { return ours_.run(in, type_, split, row_count, rows); });
}

bool tuned_matmul::is_better_in_parts(std::span<const gemm> launch, std::uint32_t rows) const {
  const bucket* const b = find_bucket(rows);
  const launch_ways* const ways = b ? find_launch(*b, launch) : nullptr;
  return ways && ways->in_parts;
}

result<tuned_matmul::way> tuned_matmul::fastest(stream_handle in, bucket& b, const gemm& p,
                                                const std::uint32_t* row_count, std::uint32_t rows) {
  for (const way& known : b.gemms)
    if (same_shape(known.shape, p)) return known;
  way best{p, nullptr, 0};
  const library_shape shape = shape_of(p, type_);
  auto prepared = is_aligned(p, shape) ? library_->prepare(shape, rows, workspace_bytes)
                                       : error{error_kind::unsupported, "the rows are not aligned", ""};
  if (prepared) {
    const auto ours = watch_(in, [&] { return run_as(in, {}, {&p, 1}, row_count, rows); });
    if (!ours) return ours.error();
    double least = worth_it * *ours;
    const std::shared_ptr<library_gemm> library = std::move(*prepared);
    for (std::size_t algorithm = 0; algorithm < library->algorithms(); ++algorithm) {
      const way tried{p, library, algorithm};
      const auto seconds = watch_(in, [&] { return run_by_library(in, tried, p, rows); });
      if (seconds && *seconds < least) best = tried, least = *seconds;
    }
  }
  b.gemms.push_back(best);
  return best;
}

result<void> tuned_matmul::run(stream_handle in, std::span<const gemm> launch, const std::uint32_t* row_count,
                               std::uint32_t rows_room) const {
  if (!takes(rows_room)) return ours_.run(in, type_, launch, row_count, rows_room);
  if (has_turns(launch)) return in_two_launches(launch, [&](auto some) { return run(in, some, row_count, rows_room); });
  const bucket* const b = find_bucket(rows_room);
  const launch_ways* const ways = b ? find_launch(*b, launch) : nullptr;
  return run_as(in, ways ? std::span<const way>(ways->of) : std::span<const way>(), launch, row_count, rows_room);
}

// `ways`: one per product, or empty if all use our kernels. If the library fails, our kernels run instead; if they fail
// too, their error is returned.
result<void> tuned_matmul::run_as(stream_handle in, std::span<const way> ways, std::span<const gemm> launch,
                                  const std::uint32_t* row_count, std::uint32_t rows) const {
  check(launch.size() <= gemms_max);
  std::array<gemm, gemms_max> left;
  std::size_t count = 0;
  for (std::size_t i = 0; i < launch.size(); ++i) {
    const bool by_library = !ways.empty() && ways[i].library && is_aligned(launch[i], shape_of(launch[i], type_));
    if (by_library && run_by_library(in, ways[i], launch[i], rows)) continue;
    left[count] = launch[i];
    if (left[count].how.to != destination::parts) left[count].segments = 1;
    ++count;
  }
  if (count == 0) return {};
  return ours_.run(in, type_, std::span(left).first(count), row_count, rows);
}

result<void> tuned_matmul::run_by_library(stream_handle in, const way& how, const gemm& p, std::uint32_t rows) const {
  if (auto r = how.library->queue(in, how.algorithm, p, rows, workspace_); !r) return r;
  return p.how.function != activation_function::none ? epilogue_rows(in, type_, p, rows) : result<void>();
}

std::string tuned_matmul::rows_by_library(const gemm& p) const {
  std::string rows;
  for (const bucket& b : buckets_)
    for (const launch_ways& ways : b.launches)
      if (!ways.in_parts &&
          std::ranges::any_of(ways.of, [&](const way& how) { return how.library && same_shape(how.shape, p); })) {
        rows += ' ' + std::to_string(b.rows_max);
        break;
      }
  return rows;
}

std::string tuned_matmul::description() const {
  if (!library_) return {};
  std::string text = library_->name();
  std::vector<gemm> told;
  for (const bucket& b : buckets_)
    for (const way& of : b.gemms) {
      if (std::ranges::any_of(told, [&](const gemm& p) { return same_shape(p, of.shape); })) continue;
      told.push_back(of.shape);
      const std::string rows = rows_by_library(of.shape);
      if (rows.empty()) continue;
      text +=
          "; " + std::to_string(of.shape.matrix.outputs) + 'x' + std::to_string(of.shape.matrix.inputs) + " of" + rows;
    }
  return text;
}

}  // namespace skein::kernels::gpu
