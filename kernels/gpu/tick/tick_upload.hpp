#pragma once
#include <array>
#include <vector>

#include "kernels/gpu/runtime/memory.hpp"
#include "kernels/gpu/runtime/stream.hpp"
#include "kernels/gpu/tick/prepare.hpp"
#include "kernels/gpu/tick/tick_runner.hpp"

namespace skein::kernels::gpu {

/// The capacity of a tick.
struct tick_room {
  std::uint32_t rows = 0;        ///< row entries
  std::uint32_t tokens = 0;      ///< rows of the batch
  std::uint32_t logit_rows = 0;  ///< of one piece of the head; at least `rows`: the first holds all sampled rows
  std::uint32_t mixtures_at_once = 1;
  std::uint32_t vocab = 0;
};

/// Logits that are copied to the host.
struct logits_copy {
  std::uint32_t wanted;  ///< index among the tick's wanted rows
  float* to;
};

/// The indices of a row's results.
struct row_place {
  std::uint32_t sample = no_place;            ///< among the sampled tokens
  std::uint32_t first_score = 0, scores = 0;  ///< among the tick's scores; without that of the last position
  std::uint32_t last_score = no_place;        ///< of the last position, if it is also sampled from
};

/// The counts that launches depend on. The lists belong to the upload and stay valid until its next write.
struct tick_shape {
  std::uint32_t rows = 0, tokens = 0, wanted = 0;
  std::uint32_t samples_alone = 0, mixtures = 0;
  bool only_decodes = false;              ///< every row decodes and samples alone, and no other result is wanted
  std::span<const sequence_run> runs;     ///< of the batch, as planned: on the device, frozen slots use the spare slot
  std::span<const logits_copy> copies;    ///< in the order of the wanted rows
  std::span<const std::uint32_t> scores;  ///< of each piece of the head
};

/// The offsets within a block: of counts in words, of the others in bytes. Rows, which stay in the block, come last.
struct block_layout {
  explicit block_layout(const tick_room& room);

  std::uint32_t pieces_max;  ///< of the head
  std::size_t scores_count, mixture_counts, batches;
  std::size_t tokens, mixtures, members, score_rows, rows;
  std::size_t bytes;

  /// The size of the parts that have a copy on the device.
  [[nodiscard]] std::size_t device_bytes() const { return rows; }
};

/// Plans of ticks, in one pinned block each. The first kernel of the tick reads counts and rows in place (see
/// preparation). Parts that only few ticks have (prompt tokens, mixtures, scores) are copied to fixed addresses on the
/// device. Among the tick's wanted rows, the sampled ones come first: rows that sample alone, then the members of
/// mixtures side by side. The other positions whose logits are wanted follow. The head processes them piece by piece.
class tick_upload {
 public:
  static constexpr std::size_t blocks = tick_runner::ticks_in_flight_max;  ///< written in turn

  /// Throws device_failure.
  explicit tick_upload(const tick_room& room, stream_handle in);

  /// Writes a block, which must no longer be in use, and the places of the rows' results.
  [[nodiscard]] tick_shape write(const tick& plan, std::size_t block, std::vector<row_place>& places);
  /// Queues the copy of the block that was written last, if the device needs more than counts and rows.
  [[nodiscard]] result<void> send(std::size_t block, stream_handle in);

  // In a block.
  [[nodiscard]] const std::uint32_t* planned_counts(std::size_t block) const {
    return reinterpret_cast<const std::uint32_t*>(pinned_.data() + block * layout_.bytes);
  }
  [[nodiscard]] const planned_row* planned_rows(std::size_t block) const {
    return reinterpret_cast<const planned_row*>(pinned_.data() + block * layout_.bytes + layout_.rows);
  }
  [[nodiscard]] std::uint32_t count_words() const {
    return static_cast<std::uint32_t>(layout_.tokens / sizeof(std::uint32_t));
  }

  // On the device, at fixed addresses.
  [[nodiscard]] std::uint32_t* counts() const { return at<std::uint32_t>(0); }
  [[nodiscard]] const std::uint32_t* sample_count() const { return counts() + 1; }
  [[nodiscard]] const std::uint32_t* score_count(std::uint32_t piece) const {
    return counts() + layout_.scores_count + piece;
  }
  [[nodiscard]] const std::uint32_t* mixture_count(std::uint32_t group) const {
    return counts() + layout_.mixture_counts + group;
  }
  /// The counts of one piece of the head; runs and rows are the tick's.
  [[nodiscard]] const batch_counts* batch(std::uint32_t piece) const {
    return reinterpret_cast<const batch_counts*>(counts() + layout_.batches) + piece;
  }
  [[nodiscard]] token_id* tokens() const { return at<token_id>(layout_.tokens); }
  [[nodiscard]] mixture* mixtures() const { return at<mixture>(layout_.mixtures); }
  [[nodiscard]] mixture_member* members() const { return at<mixture_member>(layout_.members); }
  [[nodiscard]] const score_row* scores() const { return at<score_row>(layout_.score_rows); }

  [[nodiscard]] const tick_room& room() const { return room_; }
  [[nodiscard]] std::size_t bytes() const { return device_.bytes(); }
  /// What bytes() will return, without constructing an object.
  [[nodiscard]] static std::size_t planned_bytes(const tick_room& room) { return block_layout(room).device_bytes(); }

 private:
  struct group {
    std::uint32_t id, first_row, members;
    float weights;
  };
  template <typename T>
  [[nodiscard]] T* at(std::size_t bytes) const {
    return reinterpret_cast<T*>(device_.data() + bytes);
  }

  void find_groups(std::span<const tick_row> rows);
  void place_samples(const tick& plan, std::vector<row_place>& places);
  void place_row(const tick& plan, std::uint32_t index, row_place& place);
  void add_scores(const tick_row& row, const tick& plan, row_place& place, const planned_row& planned);
  void add_score(std::uint32_t wanted, token_id token, std::uint32_t top);

  const tick_room room_;
  const block_layout layout_;
  pinned_buffer<std::byte> pinned_;  // [blocks] of layout_.bytes
  device_buffer<std::byte> device_;

  // The block that is being written.
  std::byte* block_ = nullptr;
  std::size_t used_ = 0;  // bytes to copy, including the counts before them
  tick_shape shape_;
  std::uint32_t sampled_rows_ = 0, score_total_ = 0;
  std::vector<group> groups_;
  std::vector<std::uint32_t> row_of_sample_;
  std::vector<sequence_run> runs_;
  std::vector<logits_copy> copies_;
  std::vector<std::uint32_t> scores_of_piece_;
};

}  // namespace skein::kernels::gpu
