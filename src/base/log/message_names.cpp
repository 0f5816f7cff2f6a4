#include "base/log/message_names.hpp"

#include <utility>

namespace skein::log {
namespace {

// Messages that were reworded: now, and first. Entries are kept as long as their message exists.
constexpr std::pair<std::string_view, std::string_view> reworded[] = {
    {"GEMM library", "products of many rows"},
    {"TLS can be disabled only by a restart; the old certificate stays",
     "TLS ends with a restart only; the old certificate stays"},
    {"TLS handshake failed", "no TLS with a client"},
    {"a damaged file was repaired", "a damaged file was mended"},
    {"a deprecated flag was used", "an old flag"},
    {"a job of the state worker failed", "work on states or sessions failed"},
    {"a stored state cannot be read; it will be rebuilt from tokens",
     "a stored state cannot be read; it is made again from the tokens"},
    {"a thread does not end; exiting without it", "a thread does not end; leaving it behind"},
    {"a tuned state was skipped", "a tuned state is left out"},
    {"an end outside a stream was dropped", "the end of no stream was dropped"},
    {"an interrupted answer cannot be recovered", "what a running answer had is lost"},
    {"closing the database failed", "the database did not close well"},
    {"decode graphs captured", "decode ticks recorded"},
    {"expired sessions are removed", "sessions that nobody used are removed"},
    {"model idle", "nobody uses the model"},
    {"model retired", "model retires"},
    {"no GPU, using the CPU", "no GPU: the CPU serves"},
    {"no TLS until a restart: the service manager passed no socket named https",
     "no TLS until a restart: the service manager handed no socket https over"},
    {"self check of sessions and states failed", "the books of sessions and states do not add up"},
    {"states were not written before the deadline; they will be rebuilt from tokens",
     "states were not written in time; they are made again when they are wanted"},
    {"stored sessions cannot be counted; tenant limits count only sessions of this process",
     "stored sessions cannot be counted; the limits of tenants count those of this process alone"},
    {"stored states cannot be listed; they will be rebuilt from tokens",
     "stored states cannot be listed; they are made again from the tokens"},
    {"the admin socket is not available", "there is no admin socket"},
    {"the configuration has faults; the old one stays", "the configuration is wrong; the old one stays"},
    {"the descriptor limit is too low for limits.connections_max",
     "fewer descriptors than limits.connections_max needs"},
    {"the disk accepts writes again", "the disk takes sessions again"},
    {"the disk rejects writes; turns stay in memory until it recovers",
     "the disk takes no sessions; turns stay in memory until it does"},
    {"the keys file has no key; all clients are refused until it has one",
     "the file of keys holds no key: until it has one, no client gets in"},
    {"the service manager cannot be notified", "nobody can be told how the service is"},
    {"unsaved turns are lost: the disk rejects writes", "turns that only memory had are lost: the disk takes none"},
    {"work in the worker pool failed", "work on the worker pool failed"},
};

}  // namespace

std::string_view first_wording(std::string_view message) {
  for (const auto& [now, first] : reworded)
    if (now == message) return first;
  return message;
}

}  // namespace skein::log
