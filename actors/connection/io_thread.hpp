#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace boost::asio {
class io_context;
}

namespace skein::connection {

/// A thread that runs one single-threaded io_context. Posted work and every handler of a socket or timer of its context
/// run on that thread, one after the other, so objects of this thread need no lock.
///
/// An exception from a handler is logged and ends only that handler. stop() lets the running handler finish and drops
/// queued ones.
class io_thread {
 public:
  explicit io_thread(const std::string& name);
  ~io_thread();
  io_thread(const io_thread&) = delete;  // one owner of the thread
  io_thread& operator=(const io_thread&) = delete;

  /// Runs `work` on this thread, never before post() returns. Thread safe.
  void post(std::function<void()> work);
  /// Ends the thread and waits for it. May be repeated; never called on the thread itself.
  void stop();

  [[nodiscard]] bool on_this_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  [[nodiscard]] boost::asio::io_context& context() { return *context_; }

 private:
  std::unique_ptr<boost::asio::io_context> context_;
  std::thread thread_;
};

}  // namespace skein::connection
