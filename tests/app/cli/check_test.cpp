// statescope check: two devices beside each other on a shipped model.
#include "app/cli/commands.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::check_test {
namespace {

CheckArguments of_needles() {
  CheckArguments arguments;
  arguments.checkpoint = from_source("assets/checkpoints/niah/niah-sse-gla-n4k1.h5");
  arguments.prompt.file = from_source("assets/prompts/needle.json");
  arguments.devices = {"cpu", "cpu"};
  return arguments;
}

}  // namespace

TEST_CASE("check: status 0 where two devices agree, 3 where they differ") {
  CheckArguments arguments = of_needles();
  arguments.tolerance = 0;
  CHECK(check_command(arguments) == 0);
  arguments.other_precision = Precision::bfloat16;
  arguments.tolerance = 1e-6;
  CHECK(check_command(arguments) == 3);
}

}  // namespace statescope::check_test
