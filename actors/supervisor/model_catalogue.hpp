#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "config/config.hpp"

namespace skein::supervisor {

/// The models that clients may have loaded: the files in model.root, and the model that the server was started with.
class model_catalogue {
 public:
  explicit model_catalogue(const config::config& settings);

  [[nodiscard]] const std::string& own_id() const { return own_.id; }
  /// Looks into the folder. Sorted.
  [[nodiscard]] std::vector<std::string> ids() const;

  struct choice {
    std::filesystem::path path;
    std::string id;       ///< the file's name without its ending
    bool is_own = false;  ///< the one that the server was started with
  };
  /// Errors, of the field "model": those of by_path; missing_file for what is no id of ids() too.
  [[nodiscard]] result<choice> by_id(const std::string& id) const;
  /// A path from the working directory or the folder, with or without its ending, or an id. Links are followed before
  /// it is judged. Errors: forbidden for what lies elsewhere, there or not; missing_file.
  [[nodiscard]] result<choice> by_path(const std::string& name) const;

 private:
  std::filesystem::path root_;  // empty: there is none
  choice own_;
};

}  // namespace skein::supervisor
