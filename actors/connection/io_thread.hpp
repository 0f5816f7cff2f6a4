#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace boost::asio {
class io_context;
}

namespace skein::connection {

/// A thread that runs one single-threaded io_context. Everything that is posted here, and every handler of a socket or
/// timer of its context, runs on that thread, one after the other; so what lives here needs no lock.
///
/// An exception that leaves a handler is logged and ends that handler only. The end: stop() lets the running handler
/// finish and drops what is still queued.
class io_thread {
 public:
  explicit io_thread(const std::string& name);
  ~io_thread();
  io_thread(const io_thread&) = delete;  // one owner of the thread
  io_thread& operator=(const io_thread&) = delete;

  /// Runs `work` on this thread, soon and never before this returns. Thread safe.
  void post(std::function<void()> work);
  /// Ends the thread and waits for it. Harmless when repeated; never called on the thread itself.
  void stop();

  [[nodiscard]] bool on_this_thread() const { return std::this_thread::get_id() == thread_.get_id(); }
  [[nodiscard]] boost::asio::io_context& context() { return *context_; }

 private:
  std::unique_ptr<boost::asio::io_context> context_;
  std::thread thread_;
};

}  // namespace skein::connection
