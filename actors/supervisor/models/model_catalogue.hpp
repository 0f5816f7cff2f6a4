#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// The models that clients may load: the files in model.root, and the model that the server was started with.
class model_catalogue {
 public:
  explicit model_catalogue(const config::config& settings);

  [[nodiscard]] const std::string& own_id() const { return own_.id; }
  /// Reads the folder. Sorted.
  [[nodiscard]] std::vector<std::string> ids() const;

  struct choice {
    std::filesystem::path path;
    std::string id;       ///< file name without its extension
    bool is_own = false;  ///< the model that the server was started with
  };
  /// Errors (field "model"): those of by_path, and missing_file if ids() does not contain the id.
  [[nodiscard]] result<choice> by_id(const std::string& id) const;
  /// `name`: a path relative to the working directory or the folder, with or without its extension, or an id. Symbolic
  /// links are resolved before the check. Errors: forbidden for a path outside the folder, whether it exists or not;
  /// missing_file.
  [[nodiscard]] result<choice> by_path(const std::string& name) const;
  /// An adapter in the folder, a file or a folder. Errors (field "adapter_filename"): as by_path.
  [[nodiscard]] result<std::filesystem::path> adapter(const std::string& name) const;

 private:
  std::filesystem::path root_;  // empty: not set
  choice own_;
};

}  // namespace skein::supervisor
