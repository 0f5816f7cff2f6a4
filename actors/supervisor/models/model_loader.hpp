#pragma once
#include <boost/asio/io_context.hpp>
#include <functional>
#include <thread>

#include "actors/supervisor/models/open_engine.hpp"
#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// A thread that reads model files, one model at a time, so that the main thread stays free.
class model_loader {
 public:
  explicit model_loader(boost::asio::io_context& main) : main_(main) {}
  ~model_loader();
  model_loader(const model_loader&) = delete;  // owns a thread
  model_loader& operator=(const model_loader&) = delete;

  using loaded = std::function<void(result<opened_engine>)>;
  /// Opens a model with the tuned states that fit it. `done` is called on the main thread, once the loader is free
  /// again. Not while it is busy. Errors: internal, if there is no thread or no memory; `done` is then not called.
  [[nodiscard]] result<void> start(config::config settings, load_order order, loaded done);
  [[nodiscard]] bool busy() const { return thread_.joinable(); }

 private:
  boost::asio::io_context& main_;
  std::thread thread_;
};

}  // namespace skein::supervisor
