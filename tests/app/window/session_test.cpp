// statescope run --session: begun, gone on with, and what it refuses.
#include <filesystem>
#include <fstream>

#include "app/cli/cli.h"
#include "app/cli/commands.h"
#include "engine/error.h"
#include "engine/session/session_file.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::session_test {
namespace {

const std::string kAssets = from_source("assets/");

int command_line(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "statescope");
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  return run_command_line(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

TEST_CASE("run --session: a session goes on where it was, with the tokens that one run would have drawn") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope-session-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const std::string once = folder / "once.scope", twice = folder / "twice.scope";
  const auto begin = [&](const std::string& session, const char* tokens) {
    return command_line({"run", kAssets + "checkpoints/niah/niah-gla.h5", "--prompt", kAssets + "prompts/needle.json", "--session", session,
                         "--generate", tokens, "--temperature", "1.5", "--seed", "7"});
  };
  REQUIRE(begin(once, "12") == 0);
  REQUIRE(begin(twice, "5") == 0);
  REQUIRE(command_line({"run", "--session", twice, "--generate", "7", "--json"}) == 0);
  CHECK(SessionFile::open(once).record().generated == SessionFile::open(twice).record().generated);
  CHECK(SessionFile::open(twice).record().generated.size() == 12);
  CHECK(command_line({"run", "--session", twice}) == 0);  // nothing is left to do
  CHECK(SessionFile::open(twice).record().generated.size() == 12);

  // A branch is kept, with what leads to it; the session goes on where it was left, or where it is told to.
  const std::vector<std::int32_t> root = SessionFile::open(once).record().generated;
  REQUIRE(command_line({"run", "--session", once, "--do", "zero state at 240", "--do", "freeze decay from 230"}) == 0);
  REQUIRE(command_line({"run", "--session", once, "--generate", "3"}) == 0);
  const SessionRecord branched = SessionFile::open(once).record();
  CHECK(branched.generated == root);
  CHECK(branched.current == 1);
  REQUIRE(branched.branches.size() == 1);
  CHECK(branched.branches[0].generated.size() == 15);
  CHECK(to_text(branched.branches[0].interventions.at(1)) == "freeze decay from 230");
  CHECK(command_line({"run", "--session", once, "--branch", "0"}) == 0);
  CHECK(SessionFile::open(once).record().current == 0);
  CHECK(SessionFile::open(once).record().generated == root);
  CHECK(command_line({"run", "--session", once, "--branch", "2"}) == 1);
  CHECK(command_line({"run", "--session", once, "--do", "dance"}) == 2);

  // Two branches of it are compared, and a state of another prompt is imported; what is kept has both.
  REQUIRE(command_line({"run", "--session", once, "--do", "zero head 1 at 235"}) == 0);
  CHECK(command_line({"run", "--session", once, "--branch", "2", "--against", "1"}) == 0);
  CHECK(command_line({"run", "--session", once, "--branch", "1", "--against", "2", "--json", "--memory", "64"}) == 0);
  CHECK(command_line({"run", "--session", once, "--against", "3"}) == 1);
  REQUIRE(command_line({"run", "--session", once, "--branch", "0", "--other", kAssets + "prompts/needles-512.json", "--do",
                        "import run 3 at 240"}) == 0);
  const SessionRecord imported = SessionFile::open(once).record();
  REQUIRE(imported.branches.size() == 4);
  CHECK((imported.branches[2].parent == -1 && imported.branches[3].parent == 0 && imported.current == 4));
  CHECK(command_line({"run", "--session", once, "--branch", "3"}) == 1);  // is of another prompt
  CHECK(command_line({"run", "--session", once, "--branch", "4", "--against", "0"}) == 0);
  CHECK(command_line({"run", kAssets + "checkpoints/niah/niah-gla.h5", "--text", "ivan", "--memory", "64"}) == 2);

  CHECK(begin(once, "1") == 1);  // is there already
  CHECK(command_line({"run", "--session", folder / "none.scope"}) == 1);
  CHECK(command_line({"run", "--session", once, "--text", "ivan"}) == 2);
  CHECK(command_line({"run", "--session", once, "--seed", "1"}) == 2);
  CHECK(command_line({"run", "--prompt", kAssets + "prompts/needle.json"}) == 2);
  CHECK(command_line({"run", kAssets + "checkpoints/niah/niah-gla.h5"}) == 2);
  std::filesystem::remove_all(folder);
}

TEST_CASE("run --session: saved after every pass of a prompt, the session has all of it") {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / "statescope-session-interval-test";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream ids(folder / "ids.txt");
  for (int i = 0; i < 3000; ++i) ids << i % 40 << ' ';
  ids.close();
  RunArguments arguments{.checkpoint = kAssets + "checkpoints/niah/niah-gla.h5",
                         .prompt = {.text = {}, .ids = folder / "ids.txt", .file = {}},
                         .generate = 2,
                         .session = folder / "run.scope",
                         .interval = std::chrono::milliseconds(0)};
  REQUIRE(run_command(arguments) == 0);
  const SessionRecord record = SessionFile::open(arguments.session).record();
  CHECK(record.tokens() >= 3000);
  CHECK(record.pieces.size() > 3);
  std::int64_t passes = 0;
  for (const Passes& pass : record.passes) passes += pass.times;
  CHECK(passes > 3);
  std::filesystem::remove_all(folder);
}

}  // namespace statescope::session_test
