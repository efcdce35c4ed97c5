// A file with the given bytes, gone at the end.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/catch.h"

namespace statescope::test {

class InputFile {
 public:
  InputFile(const std::string& name, const std::string& text) {
    std::string pattern = (std::filesystem::temp_directory_path() / "statescope-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    path = folder / name;
    add(name, text);
  }
  ~InputFile() { std::filesystem::remove_all(folder); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// Another file beside it.
  void add(const std::string& name, const std::string& text) const { std::ofstream(folder / name, std::ios::binary) << text; }

  std::filesystem::path folder, path;
};

/// The error that reading this file throws: one line that names the file.
template <class Read>
std::string error_of(const InputFile& file, Read read) {
  try {
    read(file.path);
  } catch (const std::runtime_error& error) {
    const std::string what = error.what();
    CHECK(what.find(file.path.string()) != what.npos);
    CHECK(what.find('\n') == what.npos);
    return what;
  }
  FAIL("no error was thrown");
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  INFO(text);
  CHECK(text.find(part) != text.npos);
  return text.find(part) != text.npos;
}

}  // namespace statescope::test
