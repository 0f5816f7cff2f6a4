#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/time_mix/chunks/chunk_plan.hpp"
#include "kernels/gpu/types/batch.hpp"

namespace skein::kernels::gpu {

inline constexpr std::size_t counts_words = 4;  // the three counts and one to keep what follows aligned
inline constexpr std::size_t run_words = sizeof(sequence_run) / sizeof(std::uint32_t);
static_assert(sizeof(batch_counts) <= counts_words * sizeof(std::uint32_t));
static_assert(sizeof(sequence_run) == 4 * sizeof(std::uint32_t));
static_assert(sizeof(token_id) == sizeof(std::uint32_t));

/// Carries rows of tests to the device, as a tick does with its plan. The pinned side is written again only when the
/// copy before has been made.
class batch_upload {
 public:
  batch_upload(std::uint32_t rows_max, std::uint32_t runs_max, std::uint32_t wanted_max);

  /// Queues the copy of a tick's rows. The batch's `room` is what it needs now.
  [[nodiscard]] result<void> send_rows(const batch& rows, stream_handle in);
  /// Adds the wanted rows to those that were sent last.
  [[nodiscard]] result<void> send_wanted(std::span<const std::uint32_t> wanted, stream_handle in);

  [[nodiscard]] const device_batch& on_device() const { return on_device_; }
  [[nodiscard]] std::size_t bytes() const { return device_.bytes(); }

 private:
  /// Waits until the pinned side may be written.
  [[nodiscard]] result<void> await_copy() const { return copied_.synchronize(); }
  [[nodiscard]] result<void> copy_words(std::size_t count, stream_handle in);

  // Where each part begins in both buffers, in words of 32 bits; the counts come first.
  const std::size_t wanted_, tokens_, run_of_row_, runs_;
  pinned_buffer<std::uint32_t> pinned_;
  device_buffer<std::uint32_t> device_;
  event copied_;
  batch_counts counts_;
  device_batch on_device_;
};

/// Runs that are long enough go in chunks.
inline void chunk_long_runs(std::vector<sequence_run>& runs) {
  for (sequence_run& run : runs)
    if (run.rows >= chunked_rows_min) run.chunked = run.rows;
}

inline batch_upload::batch_upload(std::uint32_t rows_max, std::uint32_t runs_max, std::uint32_t wanted_max)
    : wanted_(counts_words),
      tokens_(wanted_ + wanted_max),
      run_of_row_(tokens_ + rows_max),
      runs_(run_of_row_ + rows_max),
      pinned_(runs_ + run_words * runs_max),
      device_(pinned_.size()) {
  std::uint32_t* const at = device_.data();
  on_device_.counts = reinterpret_cast<const batch_counts*>(at);
  on_device_.wanted_rows = at + wanted_;
  on_device_.tokens = reinterpret_cast<const token_id*>(at + tokens_);
  on_device_.run_of_row = at + run_of_row_;
  on_device_.runs = reinterpret_cast<const sequence_run*>(at + runs_);
}

inline result<void> batch_upload::send_rows(const batch& rows, stream_handle in) {
  check(rows.tokens.size() <= run_of_row_ - tokens_);
  check(rows.runs.size() <= (pinned_.size() - runs_) / run_words);
  if (auto r = await_copy(); !r) return r;
  counts_ = {static_cast<std::uint32_t>(rows.tokens.size()), static_cast<std::uint32_t>(rows.runs.size()), 0};
  std::uint32_t* const to = pinned_.data();
  std::memcpy(to, &counts_, sizeof counts_);
  std::memcpy(to + tokens_, rows.tokens.data(), rows.tokens.size_bytes());
  std::memcpy(to + runs_, rows.runs.data(), rows.runs.size_bytes());
  for (std::uint32_t i = 0; i < rows.runs.size(); ++i)
    std::fill_n(to + run_of_row_ + rows.runs[i].first_row, rows.runs[i].rows, i);
  return copy_words(runs_ + run_words * rows.runs.size(), in);
}

inline result<void> batch_upload::send_wanted(std::span<const std::uint32_t> wanted, stream_handle in) {
  check(wanted.size() <= tokens_ - wanted_);
  if (auto r = await_copy(); !r) return r;
  counts_.wanted = static_cast<std::uint32_t>(wanted.size());
  std::memcpy(pinned_.data(), &counts_, sizeof counts_);
  std::memcpy(pinned_.data() + wanted_, wanted.data(), wanted.size_bytes());
  return copy_words(wanted_ + wanted.size(), in);
}

inline result<void> batch_upload::copy_words(std::size_t count, stream_handle in) {
  on_device_.room = counts_;
  if (auto r = copy_to_device(device_.data(), pinned_.data(), count * sizeof(std::uint32_t), in); !r) return r;
  return copied_.record(in);
}

}  // namespace skein::kernels::gpu
