#include "engine/fake/fake_stages.hpp"

#include "base/check.hpp"

namespace skein::engine {

void fake_stages::embed(const kernels::batch& rows) {
  row_states_.resize(rows.tokens.size());
  for (const kernels::sequence_run& run : rows.runs) {
    sha256_digest& state = states_[run.slot];
    for (std::uint32_t i = run.first_row; i < run.first_row + run.rows; ++i)
      row_states_[i] = state = fake_feed(state, rows.tokens[i]);
  }
}

void fake_stages::head(const kernels::batch&, std::span<const std::uint32_t> wanted, std::span<float> logits) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    fake_logits(model_, row_states_[wanted[i]], logits.subspan(i * model_.vocab, model_.vocab));
}

void fake_stages::write_state(slot_id slot, std::span<const float> in) {
  check(read_fake_state(in, states_[slot]), "a torn or mixed fake state");
}

}  // namespace skein::engine
