// The main function of the tests. What a test prints is shown only where it failed, warned or was skipped: the output is then what matters.
// A case that cannot be tested here says so, WARN("skipped: …"); run by itself, as ctest runs each, it ends with the status of a skipped
// test.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Listener = Catch::EventListenerBase;
using Heard = void;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
using Heard = bool;
#endif

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/temporary_folder.h"

namespace {

constexpr int kSkipped = 77, kNoSuchCase = 4;

/// What the run consisted of.
struct {
  std::size_t cases = 0;
  bool ended = false, skipped = false;
} run;

/// Standard output goes to a nameless file while a test runs, Catch's own messages with it. Where there is no room for such a file, nothing
/// is held back.
class QuietTests : public Listener {
 public:
  using Listener::Listener;

  void testCaseStarting(const Catch::TestCaseInfo&) override {
    flush();
    warned_ = false;
    held_ = std::tmpfile();
    if (held_) terminal_ = dup(STDOUT_FILENO), dup2(fileno(held_), STDOUT_FILENO);
  }

  Heard assertionEnded(const Catch::AssertionStats& assertion) override {
    if (assertion.assertionResult.getResultType() == Catch::ResultWas::Warning) {
      warned_ = true;
      run.skipped |= std::string(assertion.assertionResult.getMessage()).starts_with("skipped: ");
    }
    return Heard(true);
  }

  void testCaseEnded(const Catch::TestCaseStats& test) override {
    if (!held_) return;
    flush();
    dup2(terminal_, STDOUT_FILENO);
    close(terminal_);
    if (warned_ || test.aborting || !test.totals.assertions.allOk()) show();
    std::fclose(held_);
    held_ = nullptr;
  }

  void testRunEnded(const Catch::TestRunStats& stats) override {
    run.cases = stats.totals.testCases.total();
    run.ended = true;
  }

 private:
  static void flush() {
    std::cout.flush();
    std::fflush(stdout);
  }

  void show() {
    std::rewind(held_);
    char piece[4096];
    while (const std::size_t count = std::fread(piece, 1, sizeof piece, held_)) std::fwrite(piece, 1, count, stdout);
    std::fflush(stdout);
  }

  std::FILE* held_ = nullptr;
  int terminal_ = -1;
  bool warned_ = false;
};

}  // namespace

CATCH_REGISTER_LISTENER(QuietTests)

int main(int argc, char** argv) {
  const statescope::test::TemporaryFolder folder;  // several of these programs may run at once
  ::setenv("TMPDIR", folder.path().c_str(), 1);
  const int status = Catch::Session().run(argc, argv);
  if (status != 0) return status;
  if (run.ended && run.cases == 0) return kNoSuchCase;
  return run.cases == 1 && run.skipped ? kSkipped : 0;
}
