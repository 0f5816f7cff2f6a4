#include "actors/connection/link/link_writer.hpp"

#include <array>
#include <boost/asio/buffer.hpp>
#include <chrono>
#include <string_view>

#include "actors/connection/link/awaiting.hpp"

namespace skein::connection {

namespace asio = boost::asio;

void link_writer::flush() {
  if (phase_ != phase::idle || queue_.empty()) return;
  std::array<std::string_view, 8> pieces;
  std::array<asio::const_buffer, 8> buffers;
  const std::size_t count = queue_.gather(pieces);
  for (std::size_t i = 0; i < count; ++i) buffers[i] = asio::buffer(pieces[i]);
  phase_ = phase::writing;
  deadlines_.begin_write(now() + std::chrono::milliseconds(limits_.write_timeout_ms));
  socket_.async_write_some(
      buffers, [this, alive = owner_.keep_alive()](const boost::system::error_code& ec, std::size_t written) {
        on_written(ec, written);
      });
}

void link_writer::on_written(const boost::system::error_code& ec, std::size_t count) {
  if (phase_ == phase::ending) return drop();
  phase_ = phase::idle;
  deadlines_.end_write();
  if (ec) return owner_.cut("client closed");
  queue_.consumed(count);
  (void)account();
  flush();
  owner_.on_sent();
}

void link_writer::close() {
  if (phase_ == phase::writing)
    phase_ = phase::ending;
  else if (phase_ == phase::idle)
    drop();
}

void link_writer::drop() {
  phase_ = phase::closed;
  queue_.clear();
  hold_.clear();
}

}  // namespace skein::connection
