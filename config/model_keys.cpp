#include "config/key_row.hpp"
#include "config/keys.hpp"
#include "config/limits.hpp"

namespace skein::config {
namespace {

const model_defaults& defaults_of(const config& c, const std::string& model_name) {
  static const model_defaults standard;
  const auto found = c.models.find(model_name);
  return found == c.models.end() ? standard : found->second;
}

/// `Fields`: a member of model_defaults, or one and then a member of that.
template <auto... Fields>
constexpr row model_default(std::string_view name, std::string_view help) {
  return {
      .section = "models",
      .name = name,
      .help = help,
      .get = [](const config& c, const std::string& model) { return to_value((defaults_of(c, model).*....*Fields)); },
      .set = [](config& c, const std::string& model, const value& v) { assign((c.models[model].*....*Fields), v); },
      .live = true};
}

}  // namespace

std::vector<key> model_keys(std::string_view model) {
  using m = model_defaults;
  static constexpr row rows[] = {
      model_default<&m::temperature>(
          "temperature",
          "Temperature of chat requests that set none; 0 is greedy. Answers that begin with "
          "thoughts, or may call tools, have the values of thinking_ and tools_ instead of these six.")
          .range(0, 1000),
      model_default<&m::top_p>("top_p", "Probability mass that is kept.").range(0, 1),
      model_default<&m::top_k>("top_k", "Tokens that are kept; 0: all.").range(-1, 1 << 24),
      model_default<&m::alpha_presence>("alpha_presence", "Penalty of a token that was sampled once.").range(-100, 100),
      model_default<&m::alpha_frequency>("alpha_frequency", "Penalty added each further time a token is sampled.")
          .range(-100, 100),
      model_default<&m::alpha_decay>("alpha_decay", "Factor applied to all penalties after each token.").range(1e-6, 1),
      model_default<&m::thinking, &sampler_defaults::temperature>("thinking_temperature",
                                                                  "Temperature of answers that begin with thoughts.")
          .range(0, 1000),
      model_default<&m::thinking, &sampler_defaults::top_p>("thinking_top_p",
                                                            "top_p of answers that begin with thoughts.")
          .range(0, 1),
      model_default<&m::thinking, &sampler_defaults::top_k>("thinking_top_k",
                                                            "top_k of answers that begin with thoughts.")
          .range(-1, 1 << 24),
      model_default<&m::thinking, &sampler_defaults::alpha_presence>(
          "thinking_alpha_presence", "alpha_presence of answers that begin with thoughts.")
          .range(-100, 100),
      model_default<&m::thinking, &sampler_defaults::alpha_frequency>(
          "thinking_alpha_frequency", "alpha_frequency of answers that begin with thoughts.")
          .range(-100, 100),
      model_default<&m::thinking, &sampler_defaults::alpha_decay>("thinking_alpha_decay",
                                                                  "alpha_decay of answers that begin with thoughts.")
          .range(1e-6, 1),
      model_default<&m::tools, &sampler_defaults::temperature>("tools_temperature",
                                                               "Temperature of answers that may call tools.")
          .range(0, 1000),
      model_default<&m::tools, &sampler_defaults::top_p>("tools_top_p", "top_p of answers that may call tools.")
          .range(0, 1),
      model_default<&m::tools, &sampler_defaults::top_k>("tools_top_k", "top_k of answers that may call tools.")
          .range(-1, 1 << 24),
      model_default<&m::tools, &sampler_defaults::alpha_presence>("tools_alpha_presence",
                                                                  "alpha_presence of answers that may call tools.")
          .range(-100, 100),
      model_default<&m::tools, &sampler_defaults::alpha_frequency>("tools_alpha_frequency",
                                                                   "alpha_frequency of answers that may call tools.")
          .range(-100, 100),
      model_default<&m::tools, &sampler_defaults::alpha_decay>("tools_alpha_decay",
                                                               "alpha_decay of answers that may call tools.")
          .range(1e-6, 1),
      model_default<&m::max_tokens>("max_tokens", "Tokens of a chat answer.").range(1, limits::max_tokens_max),
      model_default<&m::completion_max_tokens>("completion_max_tokens", "Tokens of an answer of /v1/completions.")
          .range(1, limits::max_tokens_max),
      model_default<&m::stop>(
          "stop", "Stop strings of chat requests, in addition to a request's `stop`; `stop_tokens` replaces them."),
      model_default<&m::no_think_opening>("no_think_opening", "Text that opens an answer without thinking."),
      model_default<&m::default_think>("default_think", "Whether chat requests think first if they do not specify it."),
      model_default<&m::default_think_tokens_max>(
          "default_think_tokens_max",
          "Tokens of the thoughts of an answer, for requests that set no limit; 0: no limit.")
          .range(0, limits::max_tokens_max),
      model_default<&m::tool_template>("tool_template",
                                       "Form of conversations with tools: list, as RWKV-LM describes it, or headings, "
                                       "as official chat templates write it; "
                                       "auto: headings if the model's own chat template does so.")
          .texts("auto, list, headings"),
      model_default<&m::unset_sampling>(
          "unset_sampling",
          "Sampler fields that a chat request leaves out while it sets others: preset, "
          "the model's values above; neutral, those of OpenAI's API (temperature and top_p 1, no "
          "top_k, no penalties).")
          .texts("preset, neutral"),
      model_default<&m::chat_template>(
          "chat_template",
          "Form of conversations: assistant (\"User: text\", blank line), bot "
          "(\"User✿text✿\", newline), or custom, of the pieces below; auto: bot if the "
          "model's name says g1h or newer, or a date since July 2026, otherwise assistant.")
          .texts("auto, assistant, bot, custom"),
      model_default<&m::template_system>("template_system", "Text before a system text of a custom template."),
      model_default<&m::template_user>("template_user", "Text before a user's text of a custom template."),
      model_default<&m::template_assistant>("template_assistant", "Text before an answer of a custom template."),
      model_default<&m::template_gap>("template_gap", "Text after each of these three, if a text follows."),
      model_default<&m::template_end>(
          "template_end",
          "Text after each turn of a custom template. Without its white space at both ends, "
          "it also ends answers."),
  };
  std::vector<key> made;
  for (const auto& one : rows) made.push_back(key_of(one, "models." + quoted_text(model), std::string(model)));
  return made;
}

}  // namespace skein::config
