#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.hpp"
#include "sampling/sampler.hpp"

namespace skein::engine {

/// Mixture of states: the rows of a group sample one token from the weighted mean of their logits, each penalised by
/// its own sampler first. Sums run in plan order, so a group's token depends on nothing else in the tick.
class group_mixer {
 public:
  struct group {
    std::uint32_t id = 0;
    std::uint32_t first_row = 0;   ///< index in the plan; its sampler samples the token
    float weights = 0;             ///< sum over the rows
    std::vector<float> penalised;  ///< [vocab] weighted mean of the rows added so far
    std::vector<float> raw;        ///< [vocab] the same without penalties; for log-probabilities
  };

  explicit group_mixer(std::uint32_t vocab) : vocab_(vocab) {}

  /// Finds the groups of a tick.
  void begin(std::span<const row> rows);
  [[nodiscard]] std::span<group> groups() { return {groups_.data(), count_}; }
  [[nodiscard]] const group& of(const row& r) const;

  /// Adds a row's logits; overwrites `logits`.
  void add(const row& r, const sampling::sampler& sampler, std::span<float> logits);

 private:
  [[nodiscard]] group* find(std::uint32_t id);

  const std::uint32_t vocab_;
  std::vector<group> groups_;  // the first count_ belong to this tick; the others keep their memory
  std::size_t count_ = 0;
};

}  // namespace skein::engine
