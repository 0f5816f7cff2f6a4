#include "cli/old_spellings.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace skein::cli {
namespace {

using words = std::vector<std::string>;

error wrong(std::string_view flag, std::string_view message) {
  return {error_kind::invalid_argument, std::string(flag).append(": ").append(message), std::string(flag)};
}

bool is_truth(std::string_view text) { return text == "True" || text == "true" || text == "1"; }
bool is_falsehood(std::string_view text) { return text == "False" || text == "false" || text == "0"; }

/// Iterates over the words of a command line.
class reader {
 public:
  explicit reader(const words& all) : all_(all) {}

  /// Moves to the next flag or word. The text after a flag's '=' is its value.
  bool next() {
    if (at_ == all_.size()) return false;
    whole_ = flag = all_[at_++];
    value_.reset();
    const std::size_t equals = whole_.find('=');
    if (!whole_.starts_with("--") || equals == std::string::npos) return true;
    flag = whole_.substr(0, equals);
    value_ = whole_.substr(equals + 1);
    return true;
  }
  /// The word as given.
  [[nodiscard]] const std::string& whole() const { return whole_; }
  /// The flag's value, which may be the next word.
  std::optional<std::string> value() {
    if (!value_ && at_ < all_.size()) value_ = all_[at_++];
    return value_;
  }
  /// The value if it is a boolean; otherwise the next word is not consumed.
  std::optional<bool> truth() {
    if (!value_ && at_ < all_.size() && (is_truth(all_[at_]) || is_falsehood(all_[at_]))) value_ = all_[at_++];
    return value_ ? std::optional(is_truth(*value_)) : std::nullopt;
  }

  std::string flag;

 private:
  const words& all_;
  std::size_t at_ = 0;
  std::string whole_;
  std::optional<std::string> value_;
};

/// The first number of "[0,1]" or "0,1".
std::optional<std::string> first_device(std::string list) {
  std::erase_if(list, [](char c) { return c == '[' || c == ']' || c == ' '; });
  const bool numbers = list.find_first_not_of("0123456789,") == std::string::npos;
  const std::string first = list.substr(0, list.find(','));
  return numbers && !first.empty() ? std::optional(first) : std::nullopt;
}

result<void> pipeline(reader& from, modern_words& to) {
  const std::string list = from.value().value_or("");
  const auto first = first_device(list);
  if (!first) return wrong(from.flag, "must be a list of device numbers such as [0,1]");
  to.arguments.insert(to.arguments.end(), {"--device", "cuda:" + *first});
  if (list.find(',') != std::string::npos)
    to.remarks.push_back("--pp-devices: a model runs on one GPU only; using cuda:" + *first);
  return {};
}

result<void> inference_engine(reader& from, modern_words& to) {
  const std::string name = from.value().value_or("");
  if (name != "fp16" && name != "gemlite" && name != "cutlass")
    return wrong(from.flag, "must be fp16, gemlite or cutlass");
  to.arguments.insert(to.arguments.end(), {"--dtype", name == "fp16" ? "fp16" : "int8"});
  return {};
}

result<void> mixture_max(reader& from, modern_words& to) {
  const auto count = from.value();
  if (!count) return wrong(from.flag, "must be a number");
  to.arguments.insert(to.arguments.end(), {"--set", "limits.mixture_max=" + *count});
  return {};
}

result<void> take(reader& from, modern_words& to) {
  if (from.flag == "--pp-devices") return pipeline(from, to);
  if (from.flag == "--inference-engine") return inference_engine(from, to);
  if (from.flag == "--mrssmax") return mixture_max(from, to);
  if (from.flag == "--debug") {
    if (from.truth().value_or(true)) to.arguments.insert(to.arguments.end(), {"--log-level", "debug"});
  } else if (from.flag == "--wkv32") {
    to.arguments.insert(to.arguments.end(), {"--state-dtype", "fp32"});
  } else if (from.flag != "--chunk-load" && from.flag != "--enable-dynamic-loading" && from.flag != "--webui" &&
             from.flag != "--rwkv-beta") {
    to.arguments.push_back(from.whole());
  }
  return {};
}

}  // namespace

result<modern_words> modern_arguments(const std::vector<std::string>& arguments) {
  modern_words made;
  reader from(arguments);
  while (from.next())
    if (const auto ok = take(from, made); !ok) return ok.error();
  return made;
}

}  // namespace skein::cli
