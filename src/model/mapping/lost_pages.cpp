#include "model/mapping/lost_pages.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <utility>

namespace skein::model {

/// In a list that only grows: a signal handler can walk it at any time. Entries are used again.
struct lost_pages_guard::entry {
  std::atomic<bool> used{true};
  std::atomic<std::uint64_t> version{0};  ///< odd while the range changes
  std::atomic<std::uintptr_t> begin{0}, end{0};
  std::atomic<bool> lost{false};
  entry* next = nullptr;

  void set(std::uintptr_t from, std::uintptr_t to) {
    ++version;
    begin = from;
    end = to;
    ++version;
  }
};

namespace {

using entry = lost_pages_guard::entry;

static_assert(std::atomic<std::uintptr_t>::is_always_lock_free && std::atomic<entry*>::is_always_lock_free);
std::atomic<entry*> entries{nullptr};
std::atomic<std::uintptr_t> page_bytes{4096};
struct sigaction action_before;  ///< written while ours is not installed

/// Maps zeros from this page to the end of the mapping.
bool replace_pages(std::uintptr_t address) {
  for (entry* each = entries; each; each = each->next) {
    // The range of the page is not being changed: its mapping lives while it is read.
    const std::uint64_t version = each->version;
    const std::uintptr_t begin = each->begin, end = each->end;
    if (version % 2 != 0 || version != each->version || address < begin || address >= end) continue;
    const std::uintptr_t page = address / page_bytes * page_bytes;
    void* const start = reinterpret_cast<void*>(page);
    if (::mmap(start, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
      return false;
    each->lost = true;
    return true;
  }
  return false;
}

extern "C" void on_bus_error(int signal, siginfo_t* info, void*) {
  const int code = errno;
  const bool by_access = info->si_code > 0;  // else sent by a process
  if (!by_access || !replace_pages(reinterpret_cast<std::uintptr_t>(info->si_addr))) {
    ::sigaction(signal, &action_before, nullptr);  // the access is repeated and goes there
    if (!by_access) ::raise(signal);
  }
  errno = code;
}

void install_handler() {
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  page_bytes = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  struct sigaction now {};
  if (::sigaction(SIGBUS, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error) return;
  action_before = now;
  struct sigaction ours {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigaction(SIGBUS, &ours, nullptr);
}

entry* free_entry() {
  for (entry* each = entries; each; each = each->next)
    if (!each->used.exchange(true)) return each;
  auto* const made = new entry;  // never freed
  made->next = entries;
  while (!entries.compare_exchange_weak(made->next, made)) {
  }
  return made;
}

}  // namespace

lost_pages_guard::lost_pages_guard(std::span<const std::byte> mapping) : entry_(free_entry()) {
  install_handler();
  entry_->lost = false;
  const auto begin = reinterpret_cast<std::uintptr_t>(mapping.data());
  entry_->set(begin, begin + mapping.size());
}

lost_pages_guard::lost_pages_guard(lost_pages_guard&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}

lost_pages_guard& lost_pages_guard::operator=(lost_pages_guard&& other) noexcept {
  std::swap(entry_, other.entry_);
  return *this;
}

lost_pages_guard::~lost_pages_guard() { release(); }

void lost_pages_guard::release() {
  if (!entry_) return;
  entry_->set(0, 0);
  std::exchange(entry_, nullptr)->used = false;
}

bool lost_pages_guard::lost() const { return entry_ && entry_->lost; }

}  // namespace skein::model
