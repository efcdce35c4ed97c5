// The program without a display: the answer and pictures of the views, or what else would do what was asked.
#include <tuple>

#include "tests/app/window/place.h"

namespace statescope::headless_test {
namespace {

using namespace test::place;

constexpr const char* kNoDisplay = "env -u DISPLAY -u WAYLAND_DISPLAY -u QT_QPA_PLATFORM";

Outcome without_display(const Place& place, const std::string& arguments) { return place.run(arguments, "out", "/dev/null", kNoDisplay); }

}  // namespace

TEST_CASE("headless: what a view has not to show is left out, with a line that says why") {
  const Place place;
  std::filesystem::create_directory(place.folder / "statescope-views");
  place.write("statescope-views/experts.png", "of another run");
  REQUIRE(without_display(place, kReading).status == 0);
  const std::string said = place.text_of("out");
  INFO(said);
  CHECK(said.find("wrote statescope-views/state.png\n") != std::string::npos);
  CHECK(said.find("left out experts: Layer 0 (gla) has no experts") != std::string::npos);
  CHECK(std::filesystem::exists(place.folder / "statescope-views/state.png"));
  for (const char* empty : {"routing", "experts", "choices", "remembered", "difference", "branches"}) {
    INFO(empty);
    CHECK(said.find(fmt::format("left out {}: ", empty)) != std::string::npos);
    CHECK(!std::filesystem::exists(place.folder / fmt::format("statescope-views/{}.png", empty)));
  }
}

TEST_CASE("headless: what needs a display is refused, with what needs none") {
  const Place place;
  const auto refused = [&](const std::string& arguments, const std::string& words) {
    const Outcome outcome = without_display(place, arguments);
    INFO(arguments << ": " << outcome.errors);
    CHECK(outcome.status == 2);
    CHECK(outcome.errors == "statescope: " + words + "\n");
    CHECK(place.text_of("out").empty());
  };
  refused("--lesson forgetting",
          "a lesson needs a display; as a page for a browser it needs none: statescope page forgetting -o lesson.html");
  refused("niah-gla.h5 niah-retnet.h5", "models side by side need a display, or --screenshot");
  refused("--view state", "--view, --token, --layer, --head and --slot need a display, or --screenshot");
}

TEST_CASE("headless: a screenshot is as large as it was asked, also where the screen is smaller") {
  const Place place;
  for (const auto& [size, width, height] : {std::tuple{"1280x720", 1280, 720}, std::tuple{"640x900", 640, 900}}) {
    const Outcome outcome = place.run(kReading + " --screenshot a.png --size " + size);
    INFO(outcome.errors);
    REQUIRE(outcome.status == 0);
    const std::string png = place.text_of("a.png");  // its size: two numbers of four bytes, the larger part first
    const auto number = [&](std::size_t at) {
      return 256 * static_cast<unsigned char>(png[at + 2]) + static_cast<unsigned char>(png[at + 3]);
    };
    CHECK(number(16) == width);
    CHECK(number(20) == height);
  }
  const Outcome small = place.run(kReading + " --screenshot b.png --size 300x300");
  CHECK(small.status == 1);
  CHECK(small.errors == "statescope: --size 300x300: a window has at least 640x400\n");
  CHECK(!std::filesystem::exists(place.folder / "b.png"));
}

}  // namespace statescope::headless_test
