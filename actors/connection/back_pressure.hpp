#pragma once
#include <cstddef>
#include <cstdint>

namespace skein::connection {

/// Whether a service writes faster than its client reads or than memory allows, and when it may write again.
class back_pressure {
 public:
  /// The service has queued bytes; `queued`: all that the socket has not taken.
  void on_write(std::size_t queued, std::size_t limit) {
    if (now_ != level::none)
      ++deaf_writes_;
    else if (queued > limit)
      now_ = level::queue_full;
  }
  /// There is no memory for them.
  void on_no_memory(std::size_t queued) {
    now_ = level::no_memory;
    relieved_at_ = queued / 2;
  }
  /// The socket has taken bytes. True: the service may write again, and must be told.
  [[nodiscard]] bool on_sent(std::size_t queued, std::size_t limit) {
    if (now_ == level::none || queued > (now_ == level::no_memory ? relieved_at_ : limit / 2)) return false;
    now_ = level::none;
    deaf_writes_ = 0;
    return true;
  }

  /// Whether on_sent will return true.
  [[nodiscard]] bool is_on() const { return now_ != level::none; }
  [[nodiscard]] bool lacks_memory() const { return now_ == level::no_memory; }
  /// The service does not stop writing.
  [[nodiscard]] bool is_ignored(std::size_t queued, std::size_t limit) const {
    return queued > limit * overrun && deaf_writes_ > deaf_writes_max;
  }

 private:
  enum class level : std::uint8_t { none, queue_full, no_memory };
  /// Back pressure is ignored at this multiple of the limit, but not before this number of writes above the limit:
  /// tokens that a fast device generated while this thread waited for a CPU arrive in one large piece, which is not the
  /// reader's fault.
  static constexpr std::size_t overrun = 8;
  static constexpr std::uint32_t deaf_writes_max = 256;

  level now_ = level::none;
  std::size_t relieved_at_ = 0;    ///< bytes, after a lack of memory
  std::uint32_t deaf_writes_ = 0;  ///< since the level rose
};

}  // namespace skein::connection
