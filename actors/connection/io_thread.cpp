#include "actors/connection/io_thread.hpp"

#include <pthread.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <exception>

#include "base/check.hpp"
#include "base/log/log.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::connection {
namespace {

void run(boost::asio::io_context& context) {
  const auto stay = boost::asio::make_work_guard(context);
  while (!context.stopped()) {
    try {
      context.run();
    } catch (const std::exception& e) {
      log::error("an io handler failed", {{"what", e.what()}});
    }
  }
}

}  // namespace

io_thread::io_thread(const std::string& name) : context_(std::make_unique<boost::asio::io_context>(1)) {
  thread_ = start_thread("HTTP thread " + name, [this] { run(*context_); });
  pthread_setname_np(thread_.native_handle(), name.substr(0, 15).c_str());
}

io_thread::~io_thread() { stop(); }

void io_thread::post(std::function<void()> work) { boost::asio::post(*context_, std::move(work)); }

void io_thread::stop() {
  check(!on_this_thread(), "an io thread cannot join itself");
  context_->stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace skein::connection
