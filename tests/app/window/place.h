// The program as a shell runs it, in a folder of its own.
#pragma once

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::test::place {

inline const std::string kAssets = from_source("assets/"), kNeedle = kAssets + "prompts/needle.json";
inline const std::string kCheckpoint = kAssets + "checkpoints/niah/niah-gla.h5", kReading = kCheckpoint + " --prompt " + kNeedle;

inline std::string program_path() { return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "statescope"; }

struct Outcome {
  int status;
  std::string errors;
};

/// Where the program is run.
class Place {
 public:
  /// Standard output goes to the file `out`, standard input comes from `in`; `before` stands in front of the program: "env -u HOME".
  Outcome run(const std::string& arguments, const std::string& out = "/dev/null", const std::string& in = "/dev/null",
              const std::string& before = "") const {
    const std::string command = fmt::format("cd '{}' && export QT_QPA_PLATFORM=offscreen XDG_RUNTIME_DIR=/tmp; {} '{}' {} 2>&1 >{} <{}",
                                            folder.path().string(), before, program_path(), arguments, out, in);
    FILE* const pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe);
    std::string errors;
    for (int c; (c = std::fgetc(pipe)) != EOF;) errors += static_cast<char>(c);
    return {WEXITSTATUS(::pclose(pipe)), errors};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator(folder.path())) all.push_back(entry.path().filename().string());
    return all;
  }
  std::string text_of(const std::string& name) const {
    std::ifstream file(folder / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void write(const std::string& name, const std::string& text) const { std::ofstream(folder / name, std::ios::binary) << text; }

  TemporaryFolder folder;
};

/// The shipped checkpoint as the folder `name`, with NaN as the first element of one of its tensors.
inline void write_broken(const Place& place, const std::string& name, const std::string& tensor) {
  REQUIRE(place.run("convert " + kCheckpoint + " " + name).status == 0);
  // In safetensors 8 bytes tell how long the JSON before the numbers is.
  std::fstream file(place.folder / (name + "/model.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
  std::uint64_t length = 0;
  REQUIRE(file.read(reinterpret_cast<char*>(&length), sizeof length));
  std::string header(length, ' ');
  REQUIRE(file.read(header.data(), static_cast<std::streamsize>(length)));
  const nlohmann::json entry = nlohmann::json::parse(header).at(tensor);
  const std::string not_a_number = entry.at("dtype") == "F32" ? "\xff\xff\xff\x7f" : "\xff\x7f";
  file.seekp(static_cast<std::streamoff>(sizeof length + length + entry.at("data_offsets").at(0).get<std::uint64_t>()));
  REQUIRE(file.write(not_a_number.data(), static_cast<std::streamsize>(not_a_number.size())));
}

}  // namespace statescope::test::place
