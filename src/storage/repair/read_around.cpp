#include "storage/repair/read_around.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <optional>

namespace skein::storage {
namespace {

constexpr int tries_max = 1000;  ///< attempts to resume between two damaged places
constexpr std::size_t probe_bytes_max = 1024;

/// A key about halfway between two keys, as digits in base 256.
std::string halfway(const std::string& low, const std::string& high) {
  const std::size_t digits = std::max(low.size(), high.size()) + 1;
  const auto digit = [](const std::string& key, std::size_t i) {
    return i < key.size() ? static_cast<unsigned>(static_cast<unsigned char>(key[i])) : 0u;
  };
  std::string sum(digits, '\0');
  unsigned carry = 0;
  for (std::size_t i = digits; i-- > 0;) {
    carry += digit(low, i) + digit(high, i);
    sum[i] = static_cast<char>(carry & 0xff);
    carry >>= 8;
  }
  for (std::size_t i = 0; i < digits; ++i) {  // the carry becomes the leading digit
    const unsigned value = carry << 8 | static_cast<unsigned char>(sum[i]);
    sum[i] = static_cast<char>(value >> 1);
    carry = value & 1;
  }
  return sum;
}

class reader {
 public:
  explicit reader(rocksdb::SstFileReader& file) : file_(file) {}

  std::map<std::string, std::string> run() {
    const auto last_forward = forward({}, {});
    if (whole_) return std::move(found_);
    const auto first_backward = backward({}, last_forward.value_or(""));
    gaps_.push_back({last_forward.value_or(""), first_backward.value_or(std::string(64, '\xff'))});
    for (int tries = 0; tries < tries_max && !gaps_.empty(); ++tries) {
      const auto gap = std::move(gaps_.front());
      gaps_.pop_front();
      look_into(gap);
    }
    return std::move(found_);
  }

 private:
  struct gap {
    std::string low, high;  ///< keys already read, or keys outside the file
  };

  std::unique_ptr<rocksdb::Iterator> begin() {
    rocksdb::ReadOptions wish;
    wish.fill_cache = false;
    return std::unique_ptr<rocksdb::Iterator>(file_.NewIterator(wish));
  }

  /// Reads from a key, or the first, up to but not including `end`, or to damage. Returns the last key read; sets
  /// whole_ if there was no damage.
  std::optional<std::string> forward(const std::string& from, const std::string& end) {
    std::optional<std::string> last;
    const auto at = begin();
    from.empty() ? at->SeekToFirst() : at->Seek(from);
    for (; at->Valid(); at->Next()) {
      last = at->key().ToString();
      if (!end.empty() && *last >= end) break;
      found_[*last] = at->value().ToString();
    }
    whole_ = at->status().ok();
    return last;
  }

  /// Reads backward from a key, or the last, down to but not including `end`, or to damage.
  std::optional<std::string> backward(const std::string& from, const std::string& end) {
    std::optional<std::string> first;
    const auto at = begin();
    from.empty() ? at->SeekToLast() : at->SeekForPrev(from);
    for (; at->Valid(); at->Prev()) {
      first = at->key().ToString();
      if (*first <= end) break;
      found_[*first] = at->value().ToString();
    }
    whole_ = at->status().ok();
    return first;
  }

  void look_into(const gap& where) {
    const std::string middle = halfway(where.low, where.high);
    if (middle <= where.low || middle >= where.high || middle.size() > probe_bytes_max) return;
    const auto first = backward(middle, where.low);
    if (!whole_) gaps_.push_back({where.low, std::min(first.value_or(middle), middle)});
    const auto last = forward(middle, where.high);
    if (!whole_) gaps_.push_back({std::max(last.value_or(middle), middle), where.high});
  }

  rocksdb::SstFileReader& file_;
  bool whole_ = false;
  std::map<std::string, std::string> found_;
  std::deque<gap> gaps_;
};

}  // namespace

std::map<std::string, std::string> read_around_damage(rocksdb::SstFileReader& file) { return reader(file).run(); }

}  // namespace skein::storage
