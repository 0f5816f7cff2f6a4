#include "kernels/gpu/model/upload/weight_upload.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "base/check.hpp"
#include "base/finite_half.hpp"
#include "kernels/gpu/model/upload/encode_panel.hpp"
#include "kernels/gpu/model/upload/encode_row.hpp"
#include "kernels/gpu/ops/convert.hpp"
#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/weights/file_blocks.hpp"

namespace skein::kernels::gpu {

namespace {

constexpr std::uint32_t threads_max = 8;          // more than enough to saturate the bus
constexpr std::uint32_t coding_threads_max = 64;  // pinned memory: two pieces each

constexpr dtype stored_as(element e) {
  return e == element::f32 ? dtype::f32 : e == element::f16 ? dtype::f16 : dtype::bf16;
}

/// The type as which a tensor of `from` is sent if it becomes `type`. The device converts between the two 16-bit types
/// while the next piece is being sent; eight host threads needed four times as long as the bus (docs/decisions, 66).
constexpr element sent_as(dtype from, element type) {
  if (type == element::f32) return type;
  return from == dtype::f16 ? element::f16 : from == dtype::bf16 ? element::bf16 : type;
}

/// The number of bf16 values that fp16 cannot hold: 65,536 or more, infinite or NaN.
std::uint64_t beyond_f16(const std::byte* row, std::size_t count) {
  constexpr std::uint16_t magnitude = 0x7fff, largest = 0x477f;  // 65,280
  std::uint64_t beyond = 0;
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits;
    std::memcpy(&bits, row + i * sizeof bits, sizeof bits);
    beyond += (bits & magnitude) > largest;
  }
  return beyond;
}

tensor_view row_of(const tensor_view& matrix, std::int64_t row) {
  tensor_view view = matrix;
  view.data += row * matrix.stride[0] * static_cast<std::int64_t>(dtype_bytes(matrix.type));
  view.shape[0] = 1;
  return view;
}

/// Copies the elements of a row that are not contiguous.
void gather(const tensor_view& row, std::size_t columns, std::byte* to) {
  const auto copy = [&]<typename Bits>(Bits bits) {
    const std::ptrdiff_t step = row.stride[1] * static_cast<std::ptrdiff_t>(sizeof bits);
    const std::byte* from = row.data;
    for (std::size_t c = 0; c < columns; ++c, from += step, to += sizeof bits) {
      std::memcpy(&bits, from, sizeof bits);
      std::memcpy(to, &bits, sizeof bits);
    }
  };
  dtype_bytes(row.type) == sizeof(std::uint32_t) ? copy(std::uint32_t{}) : copy(std::uint16_t{});
}

void encode(std::span<const float> values, element type, std::byte* to) {
  const auto put = [&](auto convert) {
    for (const float value : values) {
      const auto element = convert(value);
      std::memcpy(to, &element, sizeof element);
      to += sizeof element;
    }
  };
  switch (type) {
    case element::f32: return put([](float v) { return v; });
    case element::f16: return put(f32_to_finite_f16);
    case element::bf16: return put(f32_to_bf16);
  }
}

}  // namespace

/// Pinned pieces in a ring: job j uses piece j modulo their number. Threads fill free pieces. The caller sends filled
/// pieces in the order of the jobs, and frees them when they have been copied.
class weight_upload::pieces {
 public:
  pieces(std::size_t count, std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i) ring_.push_back(std::make_unique<piece>(bytes));
  }
  [[nodiscard]] std::size_t count() const { return ring_.size(); }
  [[nodiscard]] std::byte* memory(std::size_t job) const { return of(job).memory.data(); }

  /// Claims the next job once its piece is free; false if there is none or the work was abandoned.
  bool claim(std::size_t jobs, std::size_t& job) {
    std::unique_lock lock(mutex_);
    if (claimed_ == jobs) return false;
    job = claimed_++;
    changed_.wait(lock, [&] { return given_up_ || job < freed_ + count(); });
    return !given_up_;
  }
  void set_filled(std::size_t job) {
    const std::scoped_lock lock(mutex_);
    of(job).filled = true;
    changed_.notify_all();
  }
  /// Waits until the job is in its piece. Throws what a thread passed to fail().
  void await(std::size_t job) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return of(job).filled || failure_; });
    if (failure_) std::rethrow_exception(failure_);
    of(job).filled = false;
  }
  /// Queues the copy of bytes of the piece to the device, where `sent` is converted to `type`.
  void send(std::size_t job, std::size_t from, std::byte* to, std::size_t bytes, element sent, element type) {
    if (bytes == 0) return;
    require(copy_to_device(to, of(job).memory.data() + from, bytes, stream_));
    if (sent != type) require(queue_convert(stream_, to, bytes / element_bytes(type), sent, type));
  }
  void end_sending(std::size_t job) { require(of(job).copied.record(stream_)); }
  /// Waits until the job has been copied; jobs in order.
  void free(std::size_t job) {
    require(of(job).copied.synchronize());
    const std::scoped_lock lock(mutex_);
    freed_ = job + 1;
    changed_.notify_all();
  }
  void give_up() {
    const std::scoped_lock lock(mutex_);
    given_up_ = true;
    changed_.notify_all();
  }
  /// A thread could not fill its piece.
  void fail(std::exception_ptr why) {
    const std::scoped_lock lock(mutex_);
    if (!failure_) failure_ = std::move(why);
    given_up_ = true;
    changed_.notify_all();
  }
  /// Pending copies still read from the pieces.
  ~pieces() { static_cast<void>(stream_.synchronize()); }

 private:
  struct piece {
    explicit piece(std::size_t bytes) : memory(bytes) {}
    pinned_buffer<std::byte> memory;
    event copied;
    bool filled = false;
  };
  [[nodiscard]] piece& of(std::size_t job) const { return *ring_[job % ring_.size()]; }

  std::vector<std::unique_ptr<piece>> ring_;
  stream stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t claimed_ = 0, freed_ = 0;
  bool given_up_ = false;
  std::exception_ptr failure_;
};

weight_upload::weight_upload(const load_progress& progress, std::uint64_t total_bytes, const options& how)
    : progress_(progress), total_bytes_(total_bytes), threads_(how.threads), piece_bytes_(how.piece_bytes) {}

void weight_upload::add(std::byte* to, const tensor_view& from, element type, std::uint32_t height,
                        std::uint32_t width) {
  add_lines(to, {from, type, width}, height, 1, width * element_bytes(type));
}

void weight_upload::add_rows(std::byte* codes, std::byte* scales, const tensor_view& from, std::uint32_t height,
                             std::uint32_t width) {
  add_lines(codes, {from, element::f32, width, {weight_element::fp8, default_group}, scales}, height, 1, width);
}

void weight_upload::add_coded(std::byte* to, const tensor_view& from, element type, weight_format format,
                              std::uint32_t height, std::uint32_t width) {
  check(format.quantised());
  check(height % panel_outputs == 0 && width % block_inputs == 0);
  add_lines(to, {from, type, width, format}, height, panel_outputs, coded_bytes(format, panel_outputs, width));
}

void weight_upload::add_lines(std::byte* to, tensor of, std::uint32_t height, std::uint32_t line_rows,
                              std::size_t line_bytes) {
  const tensor_view& from = of.from;
  check(from.shape.size() == 2);
  check(from.shape[0] <= height && from.shape[1] <= of.width);
  const std::size_t sent_bytes = std::max<std::size_t>(line_bytes + (of.scales ? sizeof(float) : 0), 1);
  longest_line_ = std::max(longest_line_, sent_bytes);
  const auto lines_each = static_cast<std::uint32_t>(std::max<std::size_t>(piece_bytes_ / sent_bytes, 1));
  const std::uint32_t rows_each = lines_each * line_rows;
  for (std::uint32_t first = 0; first < height; first += rows_each) {
    const std::uint32_t rows = std::min(rows_each, height - first);
    const auto present = std::clamp<std::int64_t>(from.shape[0] - first, 0, rows);
    jobs_.push_back({tensors_.size(), first, rows, to + first / line_rows * line_bytes,
                     static_cast<std::uint64_t>(present * from.shape[1]) * dtype_bytes(from.type)});
  }
  tensors_.push_back(std::move(of));
}

std::size_t weight_upload::bytes_of(const job& which) const {
  const tensor& of = tensors_[which.tensor];
  if (of.scales) return which.rows * std::size_t{of.width};
  if (of.format.quantised()) return coded_bytes(of.format, which.rows, of.width);
  return which.rows * std::size_t{of.width} * element_bytes(of.type);
}

std::size_t weight_upload::scaled_rows(const job& which) const {
  const tensor& of = tensors_[which.tensor];
  return of.scales
             ? static_cast<std::size_t>(std::clamp<std::int64_t>(of.from.shape[0] - which.first_row, 0, which.rows))
             : 0;
}

void weight_upload::fill_rows(std::byte* piece, const job& which, std::vector<float>& scratch) {
  const tensor& of = tensors_[which.tensor];
  const std::size_t present = scaled_rows(which);
  std::byte* scales = piece + bytes_of(which);
  for (std::size_t r = 0; r < present; ++r, piece += of.width, scales += sizeof(float)) {
    const float scale = encode_fp8_row(of.from, which.first_row + r, {piece, of.width}, scratch);
    std::memcpy(scales, &scale, sizeof scale);
  }
  std::memset(piece, 0, (which.rows - present) * of.width);
}

void weight_upload::fill_coded(std::byte* piece, const job& which, std::vector<float>& scratch) {
  const auto& [from, type, width, format, scales] = tensors_[which.tensor];
  std::uint64_t beyond = 0;
  for (std::uint32_t r = 0; r < which.rows; r += panel_outputs, piece += coded_bytes(format, panel_outputs, width)) {
    const std::int64_t first = which.first_row + r;
    const tensor_view panel = rows_of(from, first, std::clamp<std::int64_t>(from.shape[0] - first, 0, panel_outputs));
    beyond += encode_panel(panel, type, format, width, piece, scratch);
  }
  (type == element::f16 ? beyond_f16_ : beyond_scale_) += beyond;
}

void weight_upload::fill(std::byte* piece, const job& which, std::vector<float>& scratch) {
  const auto& [from, type, width, format, scales] = tensors_[which.tensor];
  if (scales) return fill_rows(piece, which, scratch);
  if (format.quantised()) return fill_coded(piece, which, scratch);
  const std::int64_t present = std::clamp<std::int64_t>(from.shape[0] - which.first_row, 0, which.rows);
  const auto columns = static_cast<std::size_t>(from.shape[1]);
  const std::size_t bytes = columns * element_bytes(type), row_bytes = width * element_bytes(type);
  const bool as_it_is = from.type == stored_as(sent_as(from.type, type));
  if (present < which.rows || bytes < row_bytes) std::memset(piece, 0, bytes_of(which));
  if (!as_it_is) scratch.resize(columns);
  const bool may_clip = from.type == dtype::bf16 && type == element::f16;
  std::uint64_t beyond = 0;
  for (std::int64_t r = 0; r < present; ++r, piece += row_bytes) {
    const tensor_view row = row_of(from, which.first_row + r);
    if (as_it_is && from.stride[1] == 1) {
      std::memcpy(piece, row.data, bytes);
    } else if (as_it_is) {
      gather(row, columns, piece);
    } else {
      copy_to_f32(row, scratch);
      encode(scratch, type, piece);
    }
    if (may_clip) beyond += beyond_f16(piece, columns);
  }
  beyond_f16_ += beyond;
}

void weight_upload::run() {
  const bool codes = std::ranges::any_of(tensors_, [](const tensor& t) { return t.format.quantised(); });
  const std::uint32_t most = codes ? coding_threads_max : threads_max;
  const std::uint32_t wanted = threads_ > 0 ? threads_ : std::clamp(std::thread::hardware_concurrency(), 1u, most);
  // Larger pieces, for lines that need them, are fewer.
  const std::size_t piece_bytes = std::max(piece_bytes_, longest_line_);
  const std::size_t threads = std::max<std::size_t>(wanted * piece_bytes_ / piece_bytes, 1);
  pieces ring(2 * threads, piece_bytes);
  const auto fill_pieces = [&] {
    try {
      std::vector<float> scratch;
      for (std::size_t job = 0; ring.claim(jobs_.size(), job);) {
        fill(ring.memory(job), jobs_[job], scratch);
        ring.set_filled(job);
      }
    } catch (...) {
      ring.fail(std::current_exception());
    }
  };
  struct workers {  // end before the ring does, even if the device fails
    pieces& ring;
    std::vector<std::jthread> threads;
    ~workers() { ring.give_up(); }
  } workers{ring, {}};
  for (std::size_t t = 0; t < threads; ++t) workers.threads.emplace_back(fill_pieces);

  // Half of the ring is being sent while the other half is filled.
  const std::size_t on_the_way = std::max<std::size_t>(ring.count() / 2, 1);
  std::uint64_t done_bytes = 0;
  for (std::size_t sent = 0, gone = 0; gone < jobs_.size(); ++gone) {
    for (; sent < jobs_.size() && sent < gone + on_the_way; ++sent) {
      const job& next = jobs_[sent];
      const tensor& of = tensors_[next.tensor];
      const std::size_t bytes = bytes_of(next);
      const element sent_type = of.format.quantised() ? of.type : sent_as(of.from.type, of.type);
      ring.await(sent);
      ring.send(sent, 0, next.to, bytes, sent_type, of.type);
      if (of.scales)
        ring.send(sent, bytes, of.scales + next.first_row * sizeof(float), scaled_rows(next) * sizeof(float), of.type,
                  of.type);
      ring.end_sending(sent);
    }
    ring.free(gone);
    done_bytes += jobs_[gone].source_bytes;
    if (progress_.report) progress_.report(progress_.context, done_bytes, total_bytes_);
  }
  if (beyond_f16_ > 0)
    throw device_failure(
        {error_kind::unsupported,
         std::to_string(beyond_f16_) + " weights are beyond the range of fp16; use bf16, or fp32 on a GPU without it",
         "dtype"});
  if (beyond_scale_ > 0)
    throw device_failure({error_kind::unsupported,
                          std::to_string(beyond_scale_) + " groups of quantised weights have a scale above " +
                              std::to_string(static_cast<int>(bf16_scale_max)),
                          "model"});
}

}  // namespace skein::kernels::gpu
