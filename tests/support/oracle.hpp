#pragma once
#include <filesystem>
#include <string>

#include "boost/test/unit_test.hpp"

namespace skein::test {

/// The folder with the reference implementation, tiny models and golden data: $SKEIN_ORACLE, else ../shared/oracle
/// beside the project. Empty when there is none.
[[nodiscard]] std::filesystem::path oracle();

/// Precondition for cases that need it: without the folder they show as skipped, not as passed.
///   BOOST_AUTO_TEST_CASE(name, *boost::unit_test::precondition(skein::test::have_oracle))
[[nodiscard]] boost::test_tools::assertion_result have_oracle(boost::unit_test::test_unit_id);

/// A fresh folder under the system's temporary folder; removed by its destructor.
class temporary_folder {
 public:
  temporary_folder();
  ~temporary_folder();
  temporary_folder(const temporary_folder&) = delete;  // one owner removes it
  temporary_folder& operator=(const temporary_folder&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

/// All bytes of a file; empty if it cannot be read.
[[nodiscard]] std::string content_of(const std::filesystem::path& file);

}  // namespace skein::test
