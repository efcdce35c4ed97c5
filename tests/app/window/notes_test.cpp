// What was passed over of a real folder is said by every command that opens it, on standard error and in JSON.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/catch.h"
#include "tests/source.h"
#include "tests/temporary_folder.h"

namespace statescope::notes_test {
namespace {

/// The golden case has a vision tower and further heads; a vocabulary of 97 and no tokenizer.
const std::string kReading = from_source("tests/golden/models/qwen3_5_vl_bf16") + " --ids ids.txt";
const std::string kWords = "21 tensors of a vision or sound tower passed over";

/// What a command says on standard error, in a folder where ids.txt is.
std::string said(const test::TemporaryFolder& folder, const std::string& arguments, const std::string& out = "/dev/null") {
  std::ofstream(folder / "ids.txt") << "1 5 9 2 7 3 11 4";
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "statescope";
  const std::string command = fmt::format("cd '{}' && QT_QPA_PLATFORM=offscreen XDG_RUNTIME_DIR=/tmp '{}' {} 2>&1 >{} </dev/null",
                                          folder.path().string(), program.string(), arguments, out);
  FILE* const pipe = ::popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string errors;
  for (int c; (c = std::fgetc(pipe)) != EOF;) errors += static_cast<char>(c);
  INFO(arguments << "\n" << errors);
  CHECK(WEXITSTATUS(::pclose(pipe)) == 0);
  return errors;
}

}  // namespace

TEST_CASE("notes: commands say what was passed over") {
  const test::TemporaryFolder folder;
  for (const std::string& command : {"run " + kReading + " --generate 1", "intervene " + kReading + " --do 'zero state at 2' --generate 1",
                                     "observe " + kReading + " --layer 0", "inspect " + kReading}) {
    const std::string errors = said(folder, command);
    INFO(command << "\n" << errors);
    CHECK(errors.find("note: " + kWords) != errors.npos);
  }
}

TEST_CASE("notes: they stand in JSON") {
  const test::TemporaryFolder folder;
  const auto has_note = [](const nlohmann::json& notes) {
    return std::ranges::any_of(notes, [](const nlohmann::json& note) { return note.get<std::string>().find(kWords) == 0; });
  };
  said(folder, "run " + kReading + " --generate 1 --json", "run.json");
  said(folder, "observe " + kReading + " --layer 0 --json observe.json");
  said(folder, "inspect " + kReading + " --json inspect.json");
  for (const char* name : {"run.json", "observe.json"}) CHECK(has_note(nlohmann::json::parse(std::ifstream(folder / name)).at("notes")));
  CHECK(has_note(nlohmann::json::parse(std::ifstream(folder / "inspect.json")).at("checkpoints").at(0).at("notes")));
}

}  // namespace statescope::notes_test
