#include "cli/command_line.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <optional>
#include <sstream>

#include "base/version.hpp"
#include "base/weight_format_names.hpp"
#include "cli/command_line_words.hpp"
#include "cli/help/manual.hpp"
#include "cli/old_spellings.hpp"
#include "cli/token_list.hpp"
#include "config/keys.hpp"
#include "config/limits.hpp"
#include "config/nearest.hpp"

namespace skein::cli {
namespace {

/// Adds a subcommand whose flags fill in a Command, which becomes the result if the subcommand is given.
template <typename Command>
std::pair<CLI::App*, std::shared_ptr<Command>> add_command(CLI::App& app, command& chosen, const std::string& name,
                                                           const std::string& help) {
  auto* sub = app.add_subcommand(name, help);
  auto made = std::make_shared<Command>();
  sub->final_callback([made, &chosen] { chosen = *made; });
  return {sub, made};
}

/// As CLI::Range, but rejects "nan", which CLI::Range accepts because it is neither below nor above.
CLI::Validator between(double low, double high) {
  CLI::Range range(low, high);
  const auto judge = [range](std::string& text) -> std::string {
    std::string outside = range(text);
    double number = 0;
    if (!outside.empty() || !CLI::detail::lexical_cast(text, number) || !std::isnan(number)) return outside;
    return "Value " + text + " is not a number";
  };
  return CLI::Validator(judge, range.get_description(), "RANGE");
}

/// A whole number of 64 bits. CLI11 itself takes -1 and numbers beyond the last one for the last one.
CLI::Validator seed_range() {
  const auto judge = [](const std::string& text) -> std::string {
    std::uint64_t seed = 0;
    const auto [end, trouble] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (trouble == std::errc() && end == text.data() + text.size()) return {};
    return text + " is out of range (0 to 18446744073709551615)";
  };
  return CLI::Validator(judge, "UINT in [0 - 18446744073709551615]", "SEED");
}

/// An empty text, as "$UNSET" is, would mean the demo model.
CLI::Validator not_empty() {
  return {[](const std::string& text) { return std::string(text.empty() ? "must not be empty" : ""); }, "", "PATH"};
}

void add_configuration(CLI::App& app, config::sources& into) {
  if (const char* file = std::getenv("SKEIN_CONFIG")) into.file = file;
  app.add_option("--config", into.file, "Configuration file; also $SKEIN_CONFIG");
  app.add_option_function<std::vector<std::string>>(
         "--set",
         [&into](const std::vector<std::string>& settings) {
           for (const auto& setting : settings) {
             const auto equals = setting.find('=');
             if (equals == std::string::npos) throw CLI::ValidationError("--set", "must be KEY=VALUE, not " + setting);
             into.flags.push_back({setting.substr(0, equals), setting.substr(equals + 1), "--set"});
           }
         },
         "Set any configuration key, as KEY=VALUE; may be repeated")
      ->allow_extra_args(false)
      ->take_all();
}

std::string joined(const std::vector<std::string_view>& names) {
  std::string list;
  for (const auto name : names) list.append(list.empty() ? "" : ",").append(name);
  return list;
}

/// The value of a setting's flag in --help: TEXT, NUMBER, or the accepted words. The loader validates the value.
std::string kind_of(const config::value& standard, const std::vector<std::string>& words) {
  const bool is_number = std::holds_alternative<std::int64_t>(standard) || std::holds_alternative<double>(standard);
  if (words.empty()) return is_number ? "NUMBER" : "TEXT";
  std::string list;
  for (const auto& word : words) list.append(list.empty() ? "{" : ",").append(word);
  return list + '}';
}

/// Adds a flag for each key that has one.
void add_settings(CLI::App& app, config::sources& into) {
  for (const auto& key : config::keys()) {
    if (key.flags.empty()) continue;
    const std::string flag(key.flags.front());
    std::string help(key.help);
    const auto standard = key.standard();
    if (std::holds_alternative<bool>(standard)) {
      app.add_flag_function(
          joined(key.flags),
          [&into, path = key.path, flag](std::int64_t) {
            into.flags.push_back({path, "true", flag});
          },
          help);
    } else {
      const auto words = key.words();
      const bool is_list = std::holds_alternative<std::vector<std::string>>(standard);
      if (const auto legal = key.legal(); !legal.empty() && words.empty()) help += " [" + legal + "]";
      auto* option = app.add_option_function<std::string>(
          joined(key.flags),
          [&into, path = key.path, flag](const std::string& text) {
            into.flags.push_back({path, text, flag});
          },
          help);
      option->type_name(kind_of(standard, words));
      if (is_list)
        option->join(',');
      else
        option->take_last();
    }
  }
}

void add_vocabulary(CLI::App& app, std::string& vocab, const std::string& found) {
  app.add_option("--vocab,--vocab-path", vocab,
                 "Vocabulary file, or bytes; default: searched " + found + "in $SKEIN_DATA_DIR and /usr/share/skein");
}

void add_formats(CLI::App& app, std::string& dtype, std::string& weight_format, const std::string& help) {
  app.add_option("--dtype", dtype, help)->capture_default_str();
  app.add_option("--weight-format", weight_format,
                 "Formats of single matrices, before --dtype: PATTERN=FORMAT,..., e.g. ffn.*=nf4,head=int8");
}

void add_adapters(CLI::App& app, std::vector<std::string>& into) {
  app.add_option("--adapter", into, "Adapter to merge into the weights: FILE or FILE:SCALE; may be repeated")
      ->allow_extra_args(false);
}

constexpr std::string_view model_forms =
    "File (.pth, .safetensors, .st of web-rwkv, .gguf of llama.cpp, .bin of rwkv.cpp) or folder of a Hugging Face "
    "repository";

CLI::Option* add_model(CLI::App& app, model_options& into, const std::string& otherwise) {
  app.add_option("--device", into.device, "Device that runs the model: auto, cpu, cuda, cuda:N, hip, hip:N")
      ->capture_default_str();
  add_formats(app, into.dtype, into.weight_format,
              "Format of the weights: " + std::string(weight_format_words) +
                  "; auto: as in the file; of quantised GGUF files the one of about the same size");
  app.add_option("--threads", into.threads, "CPU threads; 0: all that the process may use")
      ->check(CLI::Range(0u, config::limits::engine_threads_max))
      ->capture_default_str();
  app.add_option("--state-dtype", into.state_dtype, "Data type of states: fp32, or fp16 on a GPU")
      ->check(CLI::IsMember({"fp32", "fp16"}))
      ->capture_default_str();
  app.add_option("--invariance", into.invariance,
                 "On a GPU, results may depend on: default (the prompt), strict (its tokens) or fast (the load)")
      ->check(CLI::IsMember({"default", "strict", "fast"}))
      ->capture_default_str();
  add_adapters(app, into.adapters);
  app.add_flag("--allow-nonfinite", into.allow_nonfinite, "Load weights and states that contain NaN or infinity");
  return app.add_option("--model,--model-path", into.path, std::string(model_forms) + otherwise)->check(not_empty());
}

void add_serve(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<serve_command>(app, chosen, "serve", "Run the server");
  auto& into = *made;
  add_configuration(*sub, into.configuration);
  sub->add_flag("--dump-config", into.dump_config, "Print the merged configuration with the origin of each value");
  add_settings(*sub, into.configuration);
}

void add_check_config(CLI::App& app, command& chosen) {
  auto [sub, made] =
      add_command<check_config_command>(app, chosen, "check-config", "Check a configuration and list all faults");
  auto& into = *made;
  add_configuration(*sub, into.configuration);
}

void add_generate(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<generate_command>(app, chosen, "generate", "Continue a prompt; text to stdout");
  auto& into = *made;
  add_model(*sub, into.model, "; default: the demo model");
  add_vocabulary(*sub, into.model.vocab, "next to the model, ");
  auto* prompt = sub->add_option_group("prompt", "The prompt");
  prompt->add_option_function<std::string>(
      "--prompt", [&into](const std::string& text) { into.prompt = text; }, "Text");
  prompt->add_option_function<std::string>(
      "--prompt-file", [&into](const std::string& path) { into.prompt = std::filesystem::path(path); },
      "File with the text");
  prompt->add_option_function<std::string>(
      "--tokens",
      [&into](const std::string& list) {
        auto tokens = parse_tokens(list);
        if (!tokens) throw CLI::ValidationError("--tokens", tokens.error().message);
        into.prompt = std::move(*tokens);
      },
      "Token ids, separated by commas");
  prompt->require_option(1);
  sub->add_option("--max-tokens", into.max_tokens, "Maximum number of tokens to generate")
      ->check(CLI::Range(1u, 1u << 30))
      ->capture_default_str();
  sub->add_option("--temperature", into.sampling.temperature, "Sampling temperature; 0: greedy")
      ->check(between(0.0, 1000.0))
      ->capture_default_str();
  sub->add_option("--top-k", into.sampling.top_k, "Sample from the K most probable tokens; 0: all")
      ->check(CLI::Range(-1, 1 << 24))
      ->capture_default_str();
  sub->add_option("--top-p", into.sampling.top_p, "Sample from the most probable tokens up to this total probability")
      ->check(between(0.0, 1.0))
      ->capture_default_str();
  sub->add_option_function<std::uint64_t>(
         "--seed",
         [&into](std::uint64_t seed) {
           into.sampling.seed = seed;
           into.seed_given = true;
         },
         "Seed of the sampler; default: a random one")
      ->check(seed_range());
  sub->add_flag("--show-tokens", into.show_tokens, "Print the generated token ids instead of text");
}

void add_logits(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<logits_command>(
      app, chosen, "logits", "Write the logits after each input token as raw float32 [tokens, vocab]");
  auto& into = *made;
  add_model(*sub, into.model, "")->required();
  sub->add_option("--tokens-file", into.tokens_file, "File with token ids, separated by commas")->required();
  sub->add_option("--chunk", into.chunk_tokens, "Tokens fed at once")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  sub->add_option("--state-in", into.state_in, "Start from this state or state-tuning file");
  sub->add_option("--state-out", into.state_out, "Write the state after the last token (.safetensors)");
  sub->add_option("--out", into.out, "Output file for the logits")->required();
}

void add_score(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<score_command>(app, chosen, "score", "Print bits per byte and perplexity of a text");
  auto& into = *made;
  add_model(*sub, into.model, "; default: the demo model");
  add_vocabulary(*sub, into.model.vocab, "next to the model, ");
  sub->add_option("file", into.text_file, "The text; default: stdin");
  sub->add_option("--chunk", into.chunk_tokens, "Tokens fed at once")
      ->check(CLI::Range(1u, 65536u))
      ->capture_default_str();
  sub->add_flag("--json", into.json, "Print JSON");
}

void add_tokenize(CLI::App& app, command& chosen) {
  auto [sub, made] =
      add_command<tokenize_command>(app, chosen, "tokenize", "Convert stdin to token ids, or ids to bytes");
  auto& into = *made;
  add_vocabulary(*sub, into.vocab, "");
  sub->add_flag("--ids", into.ids, "Read ids from stdin and write bytes");
}

void add_grammar(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<grammar_command>(app, chosen, "grammar",
                                                  "Check a grammar for constrained decoding, and texts against it");
  auto& into = *made;
  auto* source = sub->add_option_group("grammar", "The grammar");
  source->add_option("--schema", into.schema, "File with a JSON Schema");
  source->add_option("--regex", into.regex, "Regular expression for the whole text");
  source->add_option("--gbnf", into.gbnf, "File with rules in the GBNF syntax of llama.cpp");
  source->add_option("--kbnf", into.kbnf, "File with rules in the KBNF syntax of ai00");
  source->add_option("--choice", into.choices, "Text that is allowed; may be repeated");
  source->require_option(1);
  sub->add_option("--instance", into.instances, "File with a text to check; may be repeated");
  add_vocabulary(*sub, into.vocab, "");
  sub->add_flag("--json", into.json, "Print JSON");
}

void add_inspect(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<inspect_command>(app, chosen, "inspect", "Print the contents of a checkpoint");
  auto& into = *made;
  sub->add_option("path", into.path, std::string(model_forms) + "; default: the demo model")->check(not_empty());
  add_adapters(*sub, into.adapters);
  add_vocabulary(*sub, into.vocab, "next to the model, ");
}

void add_convert(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<convert_command>(app, chosen, "convert", "Write a model as a .safetensors file");
  auto& into = *made;
  sub->add_option("in", into.path, std::string(model_forms))->required()->check(not_empty());
  sub->add_option("out", into.out, "Output file (.safetensors)")->required()->check(not_empty());
  add_formats(*sub, into.dtype, into.weight_format,
              "Format of the weights: " + std::string(weight_format_words) + "; auto: as in the file");
  add_adapters(*sub, into.adapters);
  sub->add_flag("--allow-nonfinite", into.allow_nonfinite, "Convert weights that contain NaN or infinity");
  sub->add_flag("--force", into.force, "Replace the output file if it exists");
}

void add_tune(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<tune_command>(app, chosen, "tune", "Measure what is fastest for a model on a GPU");
  auto& into = *made;
  add_model(*sub, into.model, "");
  sub->add_option("--out", into.out, "Tuning file; default: beside the model, where it is found at every load");
  sub->add_option("--seconds", into.seconds, "Begin no other candidate after this time")
      ->check(between(0.0, 3600.0))
      ->capture_default_str();
}

constexpr std::uint32_t bench_sequences_max = 1u << 16, bench_tokens_max = 1u << 20;

/// "32x128"
prefill_shape parse_shape(const std::string& text) {
  prefill_shape shape;
  const char* const end = text.data() + text.size();
  const auto [middle, first] = std::from_chars(text.data(), end, shape.sequences);
  const bool cut = first == std::errc() && middle != end && *middle == 'x';
  const auto [last, second] = std::from_chars(cut ? middle + 1 : end, end, shape.tokens);
  const bool legal = cut && second == std::errc() && last == end && shape.sequences > 0 && shape.tokens > 0;
  if (!legal || shape.sequences > bench_sequences_max || shape.tokens > bench_tokens_max / shape.sequences)
    throw CLI::ValidationError("--prefill", "must be SEQUENCESxTOKENS with at most 1048576 tokens in all, not " + text);
  return shape;
}

void add_bench_engine(CLI::App& bench, command& chosen) {
  auto [sub, made] = add_command<bench_engine_command>(
      bench, chosen, "engine", "Measure decode and prefill by batch size, relative to the machine's limits");
  auto& into = *made;
  auto* model = add_model(*sub, into.model, "; or --random");
  sub->add_option("--random", into.random_size,
                  "Use random weights of a released size: 0.1b, 0.4b, 1.5b, 2.9b, 7.2b or 13.3b of RWKV-7; v6-1.6b, "
                  "v6-3b, v6-7b, v6-14b; v5-1.6b, v5-3b, v5-7b; v4-0.17b, v4-0.4b, v4-1.5b, v4-3b, v4-7b, v4-14b")
      ->excludes(model);
  sub->add_option("--random-file", into.random_file, "File for the random weights; reused if it exists");
  sub->add_flag("--sparse", into.sparse,
                "Make 88 % of the random model's feed-forward activations zero, as in trained models");
  sub->add_option("--batches", into.batches, "Decode batch sizes, as 1,8,32; default: depends on the device")
      ->delimiter(',')
      ->check(CLI::Range(1u, bench_sequences_max));
  sub->add_option_function<std::vector<std::string>>(
         "--prefill",
         [&into](const std::vector<std::string>& shapes) {
           for (const auto& shape : shapes) into.prefill.push_back(parse_shape(shape));
         },
         "Prefill shapes, prompts x tokens, as 1x512,32x128; default: depends on the device")
      ->delimiter(',');
  sub->add_option("--seconds", into.seconds, "Seconds per measurement")
      ->check(between(0.0, 3600.0))
      ->capture_default_str();
  sub->add_option("--temperature", into.temperature, "Sampling temperature; 0: greedy")
      ->check(between(0.0, 1000.0))
      ->capture_default_str();
  sub->add_option("--json", into.json, "Output file for all results as JSON");
}

void add_lengths(CLI::App& app, load::length_wish& into, const std::string& what, const std::string& of) {
  app.add_option("--" + what + "-mean", into.mean, "Mean tokens of " + of + " (log-normal)")
      ->check(between(1.0, double{load::planned_tokens_max}))
      ->capture_default_str();
  app.add_option("--" + what + "-sigma", into.sigma, "Standard deviation of the logarithm of the number of tokens")
      ->check(between(0.0, 4.0))
      ->capture_default_str();
  app.add_option("--" + what + "-len", into.fixed, "Use this number of tokens for all requests")
      ->check(CLI::Range(1u, load::planned_tokens_max));
}

void add_bench_serve(CLI::App& bench, command& chosen) {
  auto [sub, made] = add_command<bench_serve_command>(
      bench, chosen, "serve",
      "Send load to a running server; report success, TTFT, ITL, TPOT, E2E and tokens per second");
  auto& into = *made;
  auto* url = sub->add_option("--url", into.url, "URL of the server")->capture_default_str();
  sub->add_option("--unix-socket", into.unix_socket, "Unix socket of the server, instead of --url")->excludes(url);
  sub->add_flag("--chat", into.chat, "Send words to /v1/chat/completions; default: token ids to /v1/completions");
  sub->add_option("--vocab-size", into.vocab, "Sample token ids below this; default: printable ASCII")
      ->excludes("--chat")
      ->check(CLI::Range(2u, 1u << 24));
  sub->add_option("--model", into.model, "Model name in requests; default: none");
  sub->add_option("--password-file", into.password_file, "File with the server's password");
  sub->add_option("--num-prompts", into.plan.prompts, "Number of requests")
      ->check(CLI::Range(1u, 10'000'000u))
      ->capture_default_str();
  sub->add_option("--request-rate", into.plan.rate, "Requests per second, at random times; default: all at once")
      ->check(between(1e-3, 1e6));
  sub->add_option("--concurrency", into.concurrency, "Maximum number of concurrent requests; default: no limit")
      ->check(CLI::Range(1u, 1'000'000u));
  add_lengths(*sub, into.plan.input, "input", "a prompt");
  add_lengths(*sub, into.plan.output, "output", "an answer");
  sub->add_option("--seed", into.plan.seed, "Seed of the requests")->check(seed_range())->capture_default_str();
  sub->add_option("--timeout", into.timeout_s, "Timeout of a request in seconds")
      ->check(between(0.001, 86400.0))
      ->capture_default_str();
  sub->add_option("--json", into.json, "Output file for all results as JSON");
}

void add_bench(CLI::App& app, command& chosen) {
  auto* bench = app.add_subcommand("bench", "Measure the speed of the engine or of a running server");
  bench->require_subcommand(1);
  add_bench_engine(*bench, chosen);
  add_bench_serve(*bench, chosen);
}

/// Adds `skein state ACTION`; each action has its own flags.
void add_state(CLI::App& app, command& chosen) {
  auto* state = app.add_subcommand("state", "Manage the sessions of a server, running or stopped");
  state->require_subcommand(1);
  const auto add = [&](state_action action, const std::string& name, const std::string& help) {
    auto [sub, made] = add_command<state_command>(*state, chosen, name, help);
    made->action = action;
    sub->add_option("--state-dir", made->state_dir, "The server's state directory")->required();
    sub->add_option("--admin-socket", made->admin_socket,
                    "Admin socket of the running server; default: in its directory");
    return std::pair<CLI::App*, state_command*>(sub, made.get());
  };
  const auto add_tenant = [](CLI::App& sub, state_command& into) {
    sub.add_option("--tenant", into.tenant, "Owner of the sessions")->capture_default_str();
  };
  const auto add_id = [&](CLI::App& sub, state_command& into) {
    sub.add_option("id", into.id, "Name of the session")->required();
    add_tenant(sub, into);
  };
  const auto add_key = [](CLI::App& sub, state_command& into, const std::string& help) {
    sub.add_option("--key-file", into.key_file, help);
  };
  const auto add_json = [](CLI::App& sub, state_command& into) { sub.add_flag("--json", into.json, "Print JSON"); };

  if (const auto [sub, into] = add(state_action::list, "list", "List the sessions of a tenant by name"); true) {
    add_tenant(*sub, *into);
    add_json(*sub, *into);
  }
  if (const auto [sub, into] = add(state_action::info, "info", "Show a session and the tree of its versions"); true) {
    add_id(*sub, *into);
    add_json(*sub, *into);
  }
  if (const auto [sub, into] = add(state_action::export_session, "export", "Write a session to a file"); true) {
    add_id(*sub, *into);
    sub->add_option("--out", into->file, "Output file")->required();
    sub->add_flag_callback(
        "--no-states", [into = into] { into->with_states = false; },
        "Export only texts and tokens; states are recomputed from them");
    add_key(*sub, *into, "Sign with the key in this file");
  }
  if (const auto [sub, into] = add(state_action::import_session, "import", "Read a session from a file"); true) {
    sub->add_option("file", into->file, "File written by export")->required();
    sub->add_option("--as", into->new_id, "Name of the session; default: as in the file");
    sub->add_flag("--replace", into->replace, "Replace a session of that name");
    add_tenant(*sub, *into);
    add_key(*sub, *into, "Accept the file only if it is signed with the key in this file");
  }
  if (const auto [sub, into] = add(state_action::remove, "delete", "Delete a session"); true) add_id(*sub, *into);
  if (const auto [sub, into] = add(state_action::fork, "fork", "Copy a session up to one of its versions"); true) {
    add_id(*sub, *into);
    sub->add_option("new", into->new_id, "Name of the copy")->required();
    sub->add_option("--version-number", into->version, "Last version to copy; default: the head");
  }
  if (const auto [sub, into] = add(state_action::verify, "verify", "Read all data and report damage"); true)
    add_json(*sub, *into);
  if (const auto [sub, into] =
          add(state_action::repair, "repair",
              "Recover the readable data of a damaged database while no server is running on it; needs "
              "free space of the database's size");
      true) {
    sub->add_flag("--dry-run", into->dry_run, "Only report the damage and what would be lost");
    add_json(*sub, *into);
  }
  add(state_action::compact, "compact", "Free the disk space of deleted data");
  if (const auto [sub, into] = add(state_action::backup, "backup", "Copy all data into a new state directory"); true)
    sub->add_option("into", into->file, "The directory, which must not exist")->required();
}

void add_keys(CLI::App& app, command& chosen) {
  auto* keys = app.add_subcommand("keys", "Create, hash and list API keys");
  keys->require_subcommand(1);
  const auto add = [&](keys_command::task what, const std::string& name, const std::string& help) {
    auto [sub, made] = add_command<keys_command>(*keys, chosen, name, help);
    made->what = what;
    return std::pair<CLI::App*, keys_command*>(sub, made.get());
  };
  const auto add_rights = [](CLI::App& sub, access::api_key& key) {
    sub.add_option("name", key.name, "The key's name in logs and metrics")->required();
    sub.add_option("--concurrent", key.concurrent_max, "Maximum number of concurrent requests; default: no limit")
        ->check(CLI::Range(1u, ~0u));
    sub.add_option("--tokens-per-minute", key.tokens_per_minute,
                   "Prompt and generated tokens per minute; default: no limit")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000'000'000}));
    sub.add_option("--models", key.models, "Models that the key may use, as a,b; default: all")->delimiter(',');
    sub.add_option("--tenant", key.tenant, "Tenant whose sessions the key sees; default: the key's name");
    sub.add_flag("--admin", key.admin, "Allow the key to change models and to see the activity of all clients");
  };
  if (const auto [sub, into] = add(keys_command::task::create, "new", "Create a key and print its secret"); true) {
    add_rights(*sub, into->key);
    sub->add_option("--keys-file", into->file, "Key file to append to; default: print the line too");
  }
  if (const auto [sub, into] = add(keys_command::task::hash, "hash", "Print the line for a secret read from stdin");
      true)
    add_rights(*sub, into->key);
  if (const auto [sub, into] =
          add(keys_command::task::list, "list", "List the names and permissions of the keys in a file");
      true)
    sub->add_option("--keys-file", into->file, "Key file")->required();
}

void add_manual(CLI::App& app, command& chosen) {
  auto [sub, made] = add_command<manual_command>(app, chosen, "manual", "Print a manual page or a shell completion");
  auto& into = *made;
  sub->add_option("page", into.page, "The page")->required()->check(CLI::IsMember(manual_pages()));
}

void add_program(CLI::App& app, command& chosen) {
  app.require_subcommand(1);
  app.set_version_flag("--version", version_line());
  add_serve(app, chosen);
  add_generate(app, chosen);
  add_logits(app, chosen);
  add_score(app, chosen);
  add_tokenize(app, chosen);
  add_grammar(app, chosen);
  add_inspect(app, chosen);
  add_convert(app, chosen);
  add_keys(app, chosen);
  add_state(app, chosen);
  add_bench(app, chosen);
  add_tune(app, chosen);
  add_check_config(app, chosen);
  add_manual(app, chosen);
}

}  // namespace

result<command> parse_command_line(std::span<const std::string> arguments) {
  auto words = modern_arguments({arguments.begin(), arguments.end()});
  if (!words) return words.error();
  auto* const modern = &words->arguments;

  CLI::App app("RWKV inference server", "skein");
  command chosen;
  add_program(app, chosen);
  if (!modern->empty() && (modern->front() == "help" || modern->front() == "version")) modern->front().insert(0, "--");
  if (const auto wrong = not_a_command(app, *modern)) return *wrong;
  try {
    std::reverse(modern->begin(), modern->end());  // the order that CLI11 expects
    app.parse(*modern);
    if (auto* serve = std::get_if<serve_command>(&chosen)) serve->remarks = std::move(words->remarks);
    return chosen;
  } catch (const CLI::Success& wish) {
    std::ostringstream text, unused;
    app.exit(wish, text, unused);
    return command(print_text{text.str()});
  } catch (const CLI::ExtrasError&) {
    return unexpected(app);
  } catch (const CLI::RequiredError& wrong) {
    return error{error_kind::invalid_argument,
                 std::string(wrong.what()) + ". See " + called_command(app).second + " --help",
                 {}};
  } catch (const CLI::ParseError& wrong) {
    return error{error_kind::invalid_argument, wrong.what(), {}};
  }
}

command_help program_help() {
  CLI::App app("RWKV inference server", "skein");
  command unused;
  add_program(app, unused);
  return described(app, "skein");
}

}  // namespace skein::cli
