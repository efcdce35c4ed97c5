// `--device` where there is no device: the one line that is said, the exit status, and what goes on nevertheless. The program is run from a
// folder of its own, for it looks for its CUDA module beside itself.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "app/window/window_main.h"
#include "tests/app/window/window_cases.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::device_test {
namespace {

namespace fs = std::filesystem;

const std::string kAssets = from_source("assets/");
const std::string kModule = "libstatescope-cuda.so";
const std::string kReading = kAssets + "checkpoints/niah/niah-gla.h5 --prompt " + kAssets + "prompts/needle.json --generate 2";

fs::path program_folder() { return fs::read_symlink("/proc/self/exe").parent_path(); }

struct Outcome {
  int status;
  std::string said;  // on both streams

  /// Whether nothing was said but this error.
  bool is_only(const std::string& line) const { return said == "statescope: " + line + "\n"; }
};

/// The program in a folder of its own, without a CUDA module.
class Installed {
 public:
  Installed() {
    std::string pattern = (program_folder() / "device-test-XXXXXX").string();
    folder = ::mkdtemp(pattern.data());
    for (const char* program : {"statescope", "statescope-reader"}) fs::create_hard_link(program_folder() / program, folder / program);
  }
  ~Installed() { fs::remove_all(folder); }
  Installed(const Installed&) = delete;
  Installed& operator=(const Installed&) = delete;

  Outcome run(const std::string& arguments, const std::string& environment = "") const {
    const std::string command =
        fmt::format("cd '{}' && env -u DISPLAY -u WAYLAND_DISPLAY -u QT_QPA_PLATFORM {} ./statescope {} 2>&1 </dev/null", folder.string(),
                    environment, arguments);
    FILE* const pipe = ::popen(command.c_str(), "r");
    REQUIRE(pipe);
    std::string said;
    for (int c; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
    return {WEXITSTATUS(::pclose(pipe)), said};
  }

  fs::path folder;
};

constexpr const char* kNoModule = "cuda: this program was built without its CUDA module";

}  // namespace

TEST_CASE("device: a program without its CUDA module says so in a line, in every command that reads a model") {
  const Installed program;
  const std::string checkpoint = kAssets + "checkpoints/niah/niah-gla.h5";
  for (const std::string& command :
       {"run " + kReading, "eval " + checkpoint + " --task niah --samples 1 --length 64", std::string("bench")}) {
    for (const char* device : {"cuda", "cuda:7", "cpu,cuda:1"}) {
      const Outcome outcome = program.run(command + " --device " + device);
      INFO(command << ": " << outcome.said);
      CHECK(outcome.status == 1);
      CHECK(outcome.is_only(kNoModule));
    }
  }
  const Outcome outcome = program.run("run " + kReading + " --device auto");
  CHECK(outcome.status == 0);
  CHECK(outcome.said.find("1 8\n") != std::string::npos);
  CHECK(outcome.said.find("CPU") != std::string::npos);
}

TEST_CASE("device: without a display the window's job falls back to the CPU") {
  const Installed program;
  const Outcome outcome = program.run("--device cuda");
  CHECK(outcome.status == 0);
  CHECK(outcome.said.find(fmt::format("Reads on the CPU: {}.\n", kNoModule)) != std::string::npos);
  CHECK(outcome.said.find("answers: ") != std::string::npos);
}

TEST_CASE("device: a module that cannot be loaded, or is none, is refused in a line") {
  const Installed program;
  std::ofstream(program.folder / kModule) << "not a library";
  Outcome outcome = program.run("run " + kReading + " --device cuda");
  CHECK(outcome.status == 1);
  CHECK(outcome.said.starts_with("statescope: cuda: the CUDA module cannot be loaded: "));
  CHECK(std::ranges::count(outcome.said, '\n') == 1);

  fs::remove(program.folder / kModule);
  std::ifstream maps("/proc/self/maps");  // any library will do
  std::string library;
  for (std::string line; library.empty() && std::getline(maps, line);) {
    if (line.find("libstdc++.so") != line.npos) library = line.substr(line.find('/'));
  }
  REQUIRE(!library.empty());
  fs::create_symlink(library, program.folder / kModule);
  outcome = program.run("run " + kReading + " --device cuda");
  CHECK(outcome.status == 1);
  CHECK(outcome.said.starts_with("statescope: cuda: the CUDA module is damaged: "));
}

TEST_CASE("device: the module of this build finds its device, or says in a line why not") {
  const fs::path module = program_folder() / kModule;
  if (!fs::exists(module)) {
    WARN("skipped: this build has no CUDA module");
    return;
  }
  const Installed program;
  fs::create_symlink(module, program.folder / kModule);
  const Outcome first = program.run("run " + kReading + " --device cuda"), hundredth = program.run("run " + kReading + " --device cuda:99");
  INFO(first.said);
  CHECK(hundredth.status == 1);
  CHECK(hundredth.said.starts_with("statescope: cuda: "));
  CHECK(std::ranges::count(hundredth.said, '\n') == 1);
  if (first.status == 0) {
    CHECK(first.said.find("1 8\n") != std::string::npos);
    CHECK(hundredth.said.find("there is no device 99, only 0 to ") != std::string::npos);
  } else {
    CHECK(first.status == 1);
    CHECK(first.said == hundredth.said);
  }
}

TEST_CASE("device: a driver that is too old, or knows no GPU, is told of in a line") {
  const fs::path module = program_folder() / kModule;
  if (!fs::exists(module)) {
    WARN("skipped: this build has no CUDA module");
    return;
  }
  const Installed program;
  fs::create_symlink(module, program.folder / kModule);
  const std::string driver = fmt::format("LD_LIBRARY_PATH='{}':$LD_LIBRARY_PATH ", (program_folder() / "fake_driver").string());
  const std::string command = "run " + kReading + " --device cuda";
  const Outcome old = program.run(command, driver + "FAKE_DRIVER_VERSION=11040"), none = program.run(command, driver);
  INFO(old.said << none.said);
  CHECK((old.status == 1 && none.status == 1));
  CHECK(old.said.starts_with("statescope: cuda: the NVIDIA driver is too old (it knows CUDA 11.4, "));
  CHECK(std::ranges::count(old.said, '\n') == 1);
  CHECK(none.is_only("cuda: there is no NVIDIA GPU here"));
}

TEST_CASE("device: wrong use is status 2") {
  const Installed program;
  for (const char* name : {"tpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "CPU", "\"\""}) {
    INFO(name);
    const Outcome outcome = program.run("run " + kReading + " --device " + name);
    CHECK(outcome.status == 2);
    CHECK(outcome.said.starts_with("--device: "));
    CHECK(outcome.said.find("give cpu, cuda, cuda:1 or auto") != std::string::npos);
  }
  CHECK(program.run("run " + kReading + " --device cuda:0,cuda").said.starts_with("--device: the device \"cuda\" is named twice"));
  CHECK(program.run("run " + kReading + " --device check:cpu").said.starts_with("--device: \"check:cpu\" does not name two devices"));
  CHECK(program.run("run " + kReading + " --device check:cpu,cpu,much").said.starts_with("--device: \"much\" is no tolerance"));
  CHECK(program.run("run " + kReading + " --device auto --precision float8").status == 2);
  CHECK(program.run("--device cuda run " + kReading).said.starts_with("--device: belongs after the command"));
}

TEST_CASE("device: two that check each other answer what one does") {
  const Installed program;
  const Outcome checked = program.run("run " + kReading + " --device check:cpu,cpu,0");
  INFO(checked.said);
  CHECK(checked.status == 0);
  CHECK(checked.said.find("; each operation checked on CPU, ") != std::string::npos);
  CHECK(checked.said.find("1 8\n") != std::string::npos);
}

TEST_CASE("device: the CPU rounds where it is asked to, and says so") {
  const Installed program;
  CHECK(program.run("run " + kReading + " --precision bfloat16").status == 0);
  CHECK(start_words({}, "", Precision::bfloat16).contains("products in bfloat16"));
  CHECK(!start_words({}, "").contains("bfloat16"));
}

TEST_CASE("device: the window begins on the CPU with a sentence that says why") {
  CHECK(open_window_device({}).backend == nullptr);
  CHECK(open_window_device({}).why_cpu.empty());
  CHECK(open_window_device({.name = "auto"}).why_cpu.empty());
  const WindowDevice device = open_window_device({.name = "cuda:99"});
  CHECK(device.backend == nullptr);
  CHECK(device.why_cpu.starts_with("Reads on the CPU: cuda: "));
  CHECK(device.why_cpu.ends_with("."));
}

TEST_CASE("device: the window says in a sentence what it runs on, then what is missing") {
  const QString plain = start_words({}, "");
  CHECK(plain.startsWith("Reads on CPU"));
  CHECK(plain.endsWith("; draws with OpenGL."));
  const QString missing = start_words({nullptr, "Reads on the CPU: cuda: there is no NVIDIA GPU here."}, "no OpenGL driver answers");
  CHECK(missing.contains("; draws without OpenGL: no OpenGL driver answers."));
  CHECK(missing.endsWith("cuda: there is no NVIDIA GPU here."));
}

TEST_CASE("device: one that fails under way is told of in the window, over the run that came to the CPU") {
  TestWindow test;
  test.window.open_checkpoint("fake.h5", {});
  test.source.grow(fake_run(64));
  test.source.opening.device_failed("cuda: the device is lost; the CPU reads from here on");
  test.source.opening.done();
  QTest::qWait(1);
  CHECK(test.window.error_bar().isVisible());
  bool told = false;
  for (const QLabel* label : test.window.error_bar().findChildren<QLabel*>()) told = told || label->text().contains("the device is lost");
  CHECK(told);
  CHECK(test.navigator().tokens() == 64);

  // A snapshot that failed: the run is read again, as far as it was, and the place stays.
  test.navigator().step(60);
  test.source.opening.progress(0, "opening");
  CHECK(test.navigator().is_opening());  // can be cancelled
  test.source.stand(fake_run(64));
  CHECK(test.token() == 60);
  CHECK(test.navigator().is_current());
  CHECK_FALSE(test.navigator().is_opening());
}

}  // namespace statescope::device_test
