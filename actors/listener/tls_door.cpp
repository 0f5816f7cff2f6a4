#include "actors/listener/tls_door.hpp"

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <string_view>
#include <utility>

namespace skein::listener {
namespace {

namespace ssl = boost::asio::ssl;

/// Selects HTTP/1.1 if the client offers it (ALPN).
int choose_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_bytes, const unsigned char* offered,
                    unsigned offered_bytes, void*) {
  static constexpr unsigned char http[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* found = nullptr;
  if (SSL_select_next_proto(&found, chosen_bytes, http, sizeof http, offered, offered_bytes) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *chosen = found;
  return SSL_TLSEXT_ERR_OK;
}

}  // namespace

result<void> tls_door::load(const std::string& certificate_file, const std::string& key_file) {
  auto made = std::make_shared<ssl::context>(ssl::context::tls_server);
  made->set_options(ssl::context::default_workarounds | ssl::context::no_compression);
  SSL_CTX* const native = made->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // idle connections keep no buffers
  SSL_CTX_set_alpn_select_cb(native, choose_protocol, nullptr);

  boost::system::error_code no;
  const auto trouble = [&](const std::string& file, const char* key) {
    std::error_code none;
    const bool missing = !std::filesystem::exists(file, none) && !none;
    return error{missing ? error_kind::missing_file : error_kind::bad_config,
                 std::string(key) + ": " + file + ": " + no.message(), key};
  };
  made->use_certificate_chain_file(certificate_file, no);
  if (no) return trouble(certificate_file, "server.tls_certificate");
  made->use_private_key_file(key_file, ssl::context::pem, no);
  if (no) return trouble(key_file, "server.tls_key");
  const std::lock_guard lock(mutex_);
  context_ = std::move(made);
  return {};
}

std::shared_ptr<ssl::context> tls_door::current() const {
  const std::lock_guard lock(mutex_);
  return context_;
}

}  // namespace skein::listener
