#include "tests/support/oracle.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>

namespace skein::test {

std::filesystem::path oracle() {
  if (const char* given = std::getenv("SKEIN_ORACLE")) return given;
  const auto beside = std::filesystem::path(SKEIN_SOURCE_DIR).parent_path() / "shared" / "oracle";
  return std::filesystem::is_directory(beside) ? beside : std::filesystem::path();
}

boost::test_tools::assertion_result have_oracle(boost::unit_test::test_unit_id) {
  boost::test_tools::assertion_result answer(!oracle().empty());
  answer.message() << "no oracle folder: set SKEIN_ORACLE";
  return answer;
}

temporary_folder::temporary_folder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "skein-test-XXXXXX").string();
  if (!mkdtemp(pattern.data())) throw std::runtime_error("mkdtemp " + pattern);
  path_ = pattern;
}

temporary_folder::~temporary_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string content_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::error_code unknown;
  const auto size = std::filesystem::file_size(file, unknown);
  std::string all(unknown ? 0 : size, '\0');
  in.read(all.data(), static_cast<std::streamsize>(all.size()));
  all.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return all;
}

}  // namespace skein::test
