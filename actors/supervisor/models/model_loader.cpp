#include "actors/supervisor/models/model_loader.hpp"

#include <boost/asio/post.hpp>
#include <exception>
#include <memory>
#include <new>
#include <utility>

#include "actors/supervisor/models/open_states.hpp"
#include "base/threads/start_thread.hpp"

namespace skein::supervisor {
namespace {

result<opened_engine> open_or_say_why(const config::config& settings, const load_order& order) {
  try {
    auto opened = open_engine(settings, order);
    if (opened) open_fitting_states(settings, *opened);
    return opened;
  } catch (const std::bad_alloc&) {
    return error{error_kind::no_memory, "not enough memory for the model", "model"};
  } catch (const std::exception& trouble) {
    return error{error_kind::internal, trouble.what(), ""};
  }
}

}  // namespace

model_loader::~model_loader() {
  if (thread_.joinable()) thread_.join();
}

result<void> model_loader::start(config::config settings, load_order order, loaded done) {
  try {
    auto load = [this, c = std::move(settings), order = std::move(order), done = std::move(done)]() mutable {
      auto opened = std::make_shared<result<opened_engine>>(open_or_say_why(c, order));
      boost::asio::post(main_, [this, opened, done = std::move(done)] {
        thread_.join();
        done(std::move(*opened));
      });
    };
    thread_ = start_thread("the thread that loads the model", std::move(load));
    return {};
  } catch (const std::exception& trouble) {  // no thread, or no memory
    return error{error_kind::internal, trouble.what(), ""};
  }
}

}  // namespace skein::supervisor
