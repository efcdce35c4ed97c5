// statescope model: what a shipped model is made of.
#include "app/cli/commands.h"
#include "tests/app/window/place.h"
#include "tests/catch.h"
#include "tests/source.h"

namespace statescope::model_test {

TEST_CASE("model: layers, programs and a layer that is not there") {
  ModelArguments arguments{.checkpoint = from_source("assets/checkpoints/mqar/mqar-sse-gla-n4k1.h5")};
  CHECK(model_command(arguments) == 0);
  arguments.program = true;
  CHECK(model_command(arguments) == 0);
  arguments.after_passes = arguments.one_token = true;
  arguments.layer = 1;
  CHECK(model_command(arguments) == 0);
  arguments.layer = 2;
  CHECK_THROWS_WITH(model_command(arguments), "there is no layer 2 (layers are 0 to 1)");
}

TEST_CASE("model: how many experts a layer has, and how many of them a token goes to") {
  const test::place::Place place;
  REQUIRE(place.run("model " + from_source("tests/golden/models/nemotron_h"), "out").status == 0);
  CHECK(place.text_of("out").find("  8 experts, 3 a token\n2 ") != std::string::npos);
}

TEST_CASE("model: heads of softmax attention, a layer's own or beside its memory") {
  const test::place::Place place;
  REQUIRE(place.run("model " + from_source("tests/golden/models/hymba"), "beside").status == 0);
  CHECK(place.text_of("beside").find("state × channel; beside it softmax attention, 4 heads\n") != std::string::npos);
  REQUIRE(place.run("model " + from_source("tests/golden/models/lfm2"), "own").status == 0);
  CHECK(place.text_of("own").find("softmax attention            4") != std::string::npos);
}

}  // namespace statescope::model_test
