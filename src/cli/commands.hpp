#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "access/api_key.hpp"
#include "app/model_options.hpp"
#include "app/state_command.hpp"
#include "base/ids.hpp"
#include "base/result.hpp"
#include "config/load.hpp"
#include "load/load_plan.hpp"
#include "sampling/sampling_params.hpp"

/// The commands of the program: the parsed command line as plain values, and the functions that execute it. cli/run
/// prints their errors and converts them to exit codes.
namespace skein::cli {

/// Help or version: printed, then the program exits.
struct print_text {
  std::string text;
};

struct serve_command {
  config::sources configuration;
  bool dump_config = false;          ///< print the merged configuration and exit
  std::vector<std::string> remarks;  ///< for the log: flags of older servers that have no or another effect
};

struct check_config_command {
  config::sources configuration;
};

struct generate_command {
  model_options model;
  std::variant<std::string, std::filesystem::path, std::vector<token_id>> prompt;  ///< text, file or tokens
  std::uint32_t max_tokens = 128;
  sampling::sampling_params sampling;
  bool seed_given = false;   ///< false: a random seed is used
  bool show_tokens = false;  ///< print token ids instead of text
};

struct logits_command {
  model_options model;
  std::filesystem::path tokens_file;
  std::uint32_t chunk_tokens = 256;
  std::filesystem::path state_in, state_out;  ///< empty: none
  std::filesystem::path out;
};

struct score_command {
  model_options model;
  std::filesystem::path text_file;  ///< empty: stdin
  std::uint32_t chunk_tokens = 512;
  bool json = false;
};

struct tokenize_command {
  std::string vocab;
  bool ids = false;  ///< read ids from stdin and write bytes
};

/// A grammar for constrained decoding: exactly one of schema, regex, gbnf, kbnf and choices is given.
struct grammar_command {
  std::filesystem::path schema, gbnf, kbnf;
  std::string regex;
  std::vector<std::string> choices;
  std::vector<std::filesystem::path> instances;
  std::string vocab;
  bool json = false;
};

struct inspect_command {
  std::filesystem::path path;
  std::vector<std::string> adapters;
  std::string vocab;
};

/// Writes a model as a .safetensors file with original names.
struct convert_command {
  std::filesystem::path path, out;
  std::vector<std::string> adapters;  ///< merged before
  std::string dtype = "auto";         ///< auto: as they are
  std::string weight_format;          ///< formats of single matrices
  bool allow_nonfinite = false;
  bool force = false;  ///< replace the output file
};

/// A tick that feeds `tokens` to each of `sequences`.
struct prefill_shape {
  std::uint32_t sequences = 1, tokens = 1;
};

/// Measures what is fastest for a model on a GPU, and keeps it for later loads.
struct tune_command {
  model_options model;
  std::filesystem::path out;  ///< empty: beside the model
  double seconds = 110;       ///< no other candidate begins after this time
};

struct bench_engine_command {
  model_options model;
  std::string random_size;             ///< "0.4b", "v6-3b": use random weights of that size, not a model
  std::filesystem::path random_file;   ///< where the random weights are kept or reused; empty: a temporary file
  bool sparse = false;                 ///< for the random weights, see random_model
  std::vector<std::uint32_t> batches;  ///< empty: the device's defaults
  std::vector<prefill_shape> prefill;  ///< likewise
  double seconds = 2;                  ///< per case
  float temperature = 0;
  std::filesystem::path json;  ///< empty: print the table only
};

/// Requests for a running server.
struct bench_serve_command {
  std::string url = "http://127.0.0.1:8000";
  std::string unix_socket;              ///< if not empty: used instead of the URL's host and port
  bool chat = false;                    ///< send words to the chat route; false: token ids to /v1/completions
  std::string model;                    ///< model name in requests; empty: none
  std::filesystem::path password_file;  ///< empty: none
  std::uint32_t vocab = 0;              ///< sample token ids below it; 0: printable ASCII
  load::plan_options plan;
  std::uint32_t concurrency = 0;  ///< 0: no limit
  double timeout_s = 600;         ///< per request
  std::filesystem::path json;     ///< empty: print the table only
};

/// API keys of a server.
struct keys_command {
  enum class task : std::uint8_t { create, hash, list };
  task what = task::list;
  std::filesystem::path file;  ///< key file; create: empty: print the line
  access::api_key key;         ///< create, hash: without its hash
};

/// A manual page or a shell completion; for packages.
struct manual_command {
  std::string page;  ///< one of manual_pages
};

using command =
    std::variant<print_text, serve_command, check_config_command, generate_command, logits_command, score_command,
                 tokenize_command, grammar_command, inspect_command, convert_command, keys_command, state_command,
                 tune_command, bench_engine_command, bench_serve_command, manual_command>;

/// Continues a prompt; streams text (or ids) to stdout.
[[nodiscard]] result<void> generate(const generate_command& what);
/// Writes the logits after every input token as raw little-endian float32 [tokens, vocab].
[[nodiscard]] result<void> logits(const logits_command& what);
/// Prints how well the model predicts a text: bits per byte and perplexity of all its tokens except the first.
[[nodiscard]] result<void> score(const score_command& what);
/// Converts text on stdin to one line of comma-separated ids, or ids to bytes.
[[nodiscard]] result<void> tokenize(const tokenize_command& what);
/// Compiles a grammar; prints whether it accepts each instance, and the time to compile it and to compute its masks.
[[nodiscard]] result<void> check_grammar(const grammar_command& what);
/// Prints the contents of a checkpoint.
[[nodiscard]] result<void> inspect(const inspect_command& what);
/// Converts a checkpoint; the output appears when it is complete. Errors: conflict if it exists and is not to be
/// replaced.
[[nodiscard]] result<void> convert(const convert_command& what);
/// Manages the sessions in a state directory, through the server if one has it open. Errors: conflict if the server
/// does not answer, damaged if records are.
[[nodiscard]] result<void> state(const state_command& what);
/// Creates a key (prints the secret, appends its line to the file), prints the line for a secret read from stdin, or
/// lists a key file.
[[nodiscard]] result<void> keys(const keys_command& what);
/// Measures candidates and writes the tuning file that open_engine reads. Errors: invalid_argument for a CPU.
[[nodiscard]] result<void> tune(const tune_command& what);
/// Measures decode and prefill, and the device's limits in the same run: a table on stdout, a line per case on stderr.
[[nodiscard]] result<void> bench_engine(const bench_engine_command& what);
/// Sends load to a running server and reports its speed. Errors: unavailable if no request succeeded.
[[nodiscard]] result<void> bench_serve(const bench_serve_command& what);

}  // namespace skein::cli
