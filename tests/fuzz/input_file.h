// Fuzz inputs as files: the parsers open paths.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace statescope::fuzz {

/// A file in memory with a path of its own, ending as `suffix` says; gone at the end.
class InputFile {
 public:
  InputFile(const std::uint8_t* data, std::size_t size, const std::string& suffix) : descriptor_(::memfd_create("input", 0)) {
    if (::write(descriptor_, data, size) != static_cast<ssize_t>(size)) ::abort();
    path_ = std::filesystem::temp_directory_path() / ("statescope-fuzz-" + std::to_string(::getpid()) + suffix);
    std::filesystem::remove(path_);
    std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(descriptor_), path_);
  }
  ~InputFile() {
    std::filesystem::remove(path_);
    ::close(descriptor_);
  }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  int descriptor_;
  std::filesystem::path path_;
};

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

}  // namespace statescope::fuzz
