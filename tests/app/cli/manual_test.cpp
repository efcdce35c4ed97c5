// The manual page, the completions, and the program as it is installed.
#include <cstdlib>

#include "tests/app/window/place.h"

namespace statescope::manual_test {
namespace {

using namespace test::place;
namespace fs = std::filesystem;

bool is_there(const std::string& program) { return std::system(fmt::format("command -v {} >/dev/null", program).c_str()) == 0; }

/// What bash would offer on a line whose last word is `words`' last.
std::string offered(const Place& place, const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += fmt::format(" '{}'", word);
  place.write("ask",
              fmt::format("source ./completions\nCOMP_WORDS=(statescope{})\nCOMP_CWORD={}\n_statescope\necho \"${{COMPREPLY[*]}}\"\n", line,
                          words.size()));
  REQUIRE(std::system(fmt::format("cd '{}' && bash ./ask >offered", place.folder.path().string()).c_str()) == 0);
  std::string text = place.text_of("offered");
  text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("manual: a page for man with every command and option") {
  const Place place;
  REQUIRE(place.run("manual", "page").status == 0);
  const std::string page = place.text_of("page");
  CHECK(page.starts_with(".TH STATESCOPE 1"));
  for (const char* part :
       {"\n.SS run\n", "\n.SS dataset niah\n", "\\fB\\-\\-generate\\fR \\fIINT\\fR", "\nlight, dark, high\\-contrast, system\n"})
    CHECK(page.find(part) != page.npos);
  if (!is_there("groff")) {
    WARN("skipped: groff is not installed");
    return;
  }
  const std::string format = "cd '{}' && LC_ALL=C.UTF-8 groff -man -k -Tutf8 -ww -z page 2>warnings";
  CHECK(std::system(fmt::format(fmt::runtime(format), place.folder.path().string()).c_str()) == 0);
  CHECK(place.text_of("warnings").empty());
}

TEST_CASE("manual: bash completes commands, options and their values") {
  const Place place;
  REQUIRE(place.run("completion bash", "completions").status == 0);
  CHECK(offered(place, {"insp"}) == "inspect");
  CHECK(offered(place, {"run", "--gen"}) == "--generate");
  CHECK(offered(place, {"dataset", "ni"}) == "niah");
  CHECK(offered(place, {"dataset", "mqar", "--pai"}) == "--pairs");
  CHECK(offered(place, {"--theme", "li"}) == "light");
  CHECK(offered(place, {"completion", "f"}) == "fish");
  CHECK(offered(place, {"run", "--dump", ""}).empty());  // a file, which bash completes by itself
  CHECK(offered(place, {"run", "insp"}).empty());
}

TEST_CASE("manual: completions are scripts of their shells") {
  const Place place;
  for (const char* shell : {"bash", "zsh", "fish"}) {
    INFO(shell);
    REQUIRE(place.run(fmt::format("completion {}", shell), shell).status == 0);
    CHECK(place.text_of(shell).find("high-contrast") != std::string::npos);
    if (!is_there(shell)) {
      WARN("not checked further: " << shell << " is not installed");
      continue;
    }
    CHECK(std::system(fmt::format("{} -n '{}'", shell, (place.folder / shell).string()).c_str()) == 0);
  }
  CHECK(place.run("completion tcsh").status == 2);
}

TEST_CASE("installed: the program runs from where it was installed, with what came with it") {
  const Place place;
  const std::string build = fs::path(program_path()).parent_path().string();
  const std::string install = "cmake --install '{}' --prefix '{}/usr' --component runtime >/dev/null";
  REQUIRE(std::system(fmt::format(fmt::runtime(install), build, place.folder.path().string()).c_str()) == 0);
  for (const char* file : {"bin/statescope", "lib/statescope/statescope-reader", "share/statescope/checkpoints/niah/niah-gla.h5",
                           "share/man/man1/statescope.1.gz", "share/bash-completion/completions/statescope",
                           "share/metainfo/org.statescope.Statescope.metainfo.xml", "share/applications/org.statescope.Statescope.desktop",
                           "share/icons/hicolor/scalable/apps/org.statescope.Statescope.svg"})
    CHECK(fs::exists(place.folder / "usr" / file));
  const auto run = [&](const std::string& arguments) {
    const std::string line = "cd '{}' && QT_QPA_PLATFORM=offscreen usr/bin/statescope {} >out 2>&1";
    return std::system(fmt::format(fmt::runtime(line), place.folder.path().string(), arguments).c_str());
  };
  CHECK(run("run usr/share/statescope/checkpoints/niah/niah-gla.h5 --prompt usr/share/statescope/prompts/needle.json --generate 4") == 0);
  for (const auto& spec : fs::directory_iterator(place.folder / "usr/share/statescope/figures")) {
    const std::string name = spec.path().filename().string();
    if (spec.path().extension() != ".json" || name == "needle-grid.json") continue;  // that one takes a minute
    INFO(name);
    CHECK(run("figure --spec usr/share/statescope/figures/" + name + " -o " + name + ".svg") == 0);
  }
  const std::string lesson = "--lesson forgetting --step 1 --screenshot lesson.png";
  CHECK(run(lesson) == 0);
  CHECK(fs::exists(place.folder / "lesson.png"));
  fs::remove(place.folder / "usr/share/statescope/lessons/1-forgetting.md");  // so it was this one that was read
  CHECK(run(lesson) != 0);
}

}  // namespace statescope::manual_test
