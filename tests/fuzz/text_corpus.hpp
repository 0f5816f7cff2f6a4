#pragma once
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>

namespace skein::test {

/// The main function of a program that writes the texts that a fuzzer starts from, as 0, 1, ...: PROGRAM FOLDER.
inline int write_text_corpus(int argc, char** argv, std::span<const char* const> texts) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder = argv[1];
  std::filesystem::create_directories(folder);
  int number = 0;
  for (const char* const text : texts) std::ofstream(folder / std::to_string(number++), std::ios::binary) << text;
  return 0;
}

}  // namespace skein::test
