// What a figure was made from, after a move, and without the names of folders.
#include "tests/app/window/place.h"

namespace statescope::moved_test {
namespace {

using namespace test::place;
namespace fs = std::filesystem;

}  // namespace

TEST_CASE("figure: made again beside checkpoints that have moved, which are found by their digest", "[figure]") {
  const Place place;
  fs::create_directories(place.folder / "old");
  fs::copy_file(kCheckpoint, place.folder / "old/model.h5");
  const std::string here = place.folder.path().string();
  for (const std::string& ending : std::vector<std::string>{"pdf", "svg", "png"}) {
    INFO(ending);
    const std::string made = "made." + ending, again = "again." + ending;
    REQUIRE(place.run("figure similarity " + here + "/old/model.h5 --prompt " + kNeedle + " --dpi 80 -o " + made).status == 0);
    fs::create_directories(place.folder / "new");
    fs::rename(place.folder / made, place.folder / ("new/" + made));
    fs::rename(place.folder / "old/model.h5", place.folder / "new/renamed.h5");
    CHECK(place.run("figure --from new/" + made + " -o " + again).status == 0);
    CHECK(place.text_of(again) == place.text_of("new/" + made));
    fs::rename(place.folder / "new/renamed.h5", place.folder / "old/model.h5");
  }
}

TEST_CASE("figure: anonymous, it names no folder, and is made again all the same", "[figure]") {
  const Place place;
  const std::string owner = "home-of-anna";
  fs::create_directories(place.folder / owner);
  fs::copy_file(kCheckpoint, place.folder / (owner + "/model.h5"));
  const std::string figure = "figure similarity " + place.folder.path().string() + "/" + owner + "/model.h5 --prompt " + kNeedle;
  REQUIRE(place.run(figure + " -o plain.svg").status == 0);
  CHECK(place.text_of("plain.svg").find(owner) != std::string::npos);
  REQUIRE(place.run(figure + " --anonymous -o blind.svg").status == 0);
  CHECK(place.text_of("blind.svg").find(owner) == std::string::npos);
  CHECK(place.text_of("blind.svg").find(place.folder.path().string()) == std::string::npos);
  fs::rename(place.folder / (owner + "/model.h5"), place.folder / "model.h5");
  CHECK(place.run("figure --from blind.svg -o again.svg").status == 0);
  CHECK(place.text_of("again.svg") == place.text_of("blind.svg"));
}

TEST_CASE("figure: a viewer without its typeface is told the kind; a ground may be absent", "[figure]") {
  const Place place;
  REQUIRE(place.run("figure state " + kReading + " -o a.svg").status == 0);
  const std::string svg = place.text_of("a.svg");
  CHECK(svg.find("font-family=\"DejaVu Sans, sans-serif\"") != std::string::npos);
  CHECK(svg.find("font-family=\"DejaVu Sans Mono, monospace\"") != std::string::npos);
  CHECK(svg.find("<title>State</title>") != std::string::npos);
  REQUIRE(place.run("figure state " + kReading + " --transparent -o b.svg").status == 0);
  CHECK(place.text_of("b.svg").size() < svg.size() + 200);
  CHECK(place.text_of("b.svg") != svg);
}

}  // namespace statescope::moved_test
