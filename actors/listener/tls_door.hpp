#pragma once
#include <memory>
#include <mutex>
#include <string>

#include "base/result.hpp"

namespace boost::asio::ssl {
class context;
}

namespace skein::listener {

/// The certificate of TLS connections; a new one applies to new connections. Thread safe.
class tls_door {
 public:
  /// Both files are PEM; the certificate file may contain the chain. Errors: bad_config naming the file.
  [[nodiscard]] result<void> load(const std::string& certificate_file, const std::string& key_file);
  /// Null before the first load.
  [[nodiscard]] std::shared_ptr<boost::asio::ssl::context> current() const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace skein::listener
