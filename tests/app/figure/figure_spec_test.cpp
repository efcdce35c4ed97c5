// A figure as plain data: what is read, what is refused and where, and what a figure says it was made from.
#include "app/figure/spec.h"

#include <fmt/format.h>

#include "app/figure/provenance.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "views/chosen.h"

namespace statescope::figure_spec_test {
namespace {

constexpr const char* kGrid = R"({"size": "double", "type": 6, "map": "cividis", "shared_range": true, "ticks": 0.5,
 "defaults": {"view": "similarity", "prompt": {"text": "a b c", "expected": "d", "spans": [{"part": "needle", "begin": 0, "end": 1}]}},
 "panels": [{"checkpoint": ["a.h5", "b.h5"], "layer": [0, 1, 2], "mode": "Heads", "range": [-0.5, 1], "token": -1}]})";

std::string error_of(const std::string& text) {
  try {
    parse_figure_spec(text, "spec.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool says(const std::string& error, const char* words) {
  UNSCOPED_INFO(error);
  return error.find(words) != error.npos && error.find('\n') == error.npos;
}

std::string panel(const std::string& keys) { return R"({"panels": [{"view": "state", "checkpoint": "a.h5")" + keys + "}]}"; }

}  // namespace

TEST_CASE("figure spec: lists make a grid, the last one along its rows") {
  const FigureSpec spec = parse_figure_spec(kGrid, "spec.json");
  CHECK(spec.width_mm == 183);
  CHECK_FALSE(spec.height_mm);
  CHECK(spec.type_pt == 6);
  CHECK(spec.colors == FigureColors::cividis);
  REQUIRE(spec.panels.size() == 6);
  CHECK(spec.grid_columns() == 3);
  CHECK(spec.grid_rows() == 2);
  CHECK(spec.panels[4].checkpoints == std::vector<std::string>{"b.h5"});
  CHECK(spec.panels[4].layer == 1);
  CHECK(spec.panels[4].range.high == 1);
  REQUIRE(spec.panels[4].input);
  CHECK(spec.panels[4].input->spans.size() == 1);
}

TEST_CASE("figure spec: written and read back it is the same") {
  const std::string text = to_json(parse_figure_spec(kGrid, "spec.json"));
  CHECK(to_json(parse_figure_spec(text, "again")) == text);
}

TEST_CASE("figure spec: a chat keeps its turns and what is marked in them") {
  const std::string turns = R"([{"role": "user", "text": "It is 41.", "spans": [{"part": "needle", "begin": 6, "end": 8}]}])";
  const auto spec_with = [](const std::string& said) {
    return panel(R"(, "prompt": {"text": "<user>It is 41.", "in_chat": true, "turns": )" + said + "}");
  };
  const FigureSpec spec = parse_figure_spec(spec_with(turns), "spec.json");
  const FigureSpec again = parse_figure_spec(to_json(spec), "again");
  REQUIRE(again.panels[0].input);
  REQUIRE(again.panels[0].input->turns.size() == 1);
  const ChatTurn& turn = again.panels[0].input->turns[0];
  CHECK((turn.role == "user" && turn.text == "It is 41."));
  REQUIRE(turn.spans.size() == 1);
  CHECK((turn.spans[0].kind == SpanKind::needle && turn.spans[0].begin == 6 && turn.spans[0].end == 8));
  CHECK(says(error_of(spec_with("3")), "turns"));
  CHECK(says(error_of(spec_with(R"([{"role": 1}])")), "turns[0]: \"role\""));
  CHECK(says(error_of(spec_with(R"([{"role": "user", "text": "a", "spans": [{"part": "needle", "begin": 0, "end": 2}]}])")),
             "turns[0].spans[0]"));
}

TEST_CASE("figure spec: token ids have their spans in tokens") {
  const auto spec_with = [](int end) {
    return panel(fmt::format(R"(, "prompt": {{"ids": [4, 5, 6], "spans": [{{"part": "needle", "begin": 1, "end": {}}}]}})", end));
  };
  const FigureSpec again = parse_figure_spec(to_json(parse_figure_spec(spec_with(3), "spec.json")), "again");
  REQUIRE(again.panels[0].input);
  REQUIRE(again.panels[0].input->spans.size() == 1);
  CHECK(again.panels[0].input->spans[0].end == 3);
  CHECK(says(error_of(spec_with(4)), "spans[0]"));
}

TEST_CASE("figure spec: a row is a number, or all of them") {
  const FigureSpec spec = parse_figure_spec(panel(", \"row\": \"all\""), "spec.json");
  CHECK(spec.panels[0].row == kAllRows);
  CHECK(to_json(spec).find("\"row\": \"all\"") != std::string::npos);
  CHECK(says(error_of(panel(", \"row\": -2")), "panels[0]: \"row\""));
}

TEST_CASE("figure spec: sizes by name and by number; the preset brings its type") {
  FigureSpec spec;
  set_size(spec, "slide");
  CHECK(spec.width_mm / *spec.height_mm == Approx(16.0 / 9));
  CHECK(spec.type_pt == 10);
  set_size(spec, "89x60mm");
  CHECK(spec.width_mm == 89);
  CHECK(spec.height_mm == 60);
  for (const char* wrong : {"", "mm", "89", "89x", "x60mm", "-5mm", "5mm", "89x9000mm", "nanmm", "infmm", "1e99mm", "big"}) {
    INFO(wrong);
    CHECK_THROWS_AS(set_size(spec, wrong), Error);
  }
}

TEST_CASE("figure spec: what is wrong is said with its place, in a line") {
  CHECK(says(error_of("{\n\n  \"panels\": [}"), "spec.json:3: this is not JSON"));
  CHECK(says(error_of("377e338"), "spec.json: has a number that is too large"));
  CHECK(says(error_of("[]"), "is not an object"));
  CHECK(says(error_of(R"({"panels": [{"view": "state", "checkpoint": []}]})"), "panels[0]: \"checkpoint\" is an empty list"));
  CHECK(says(error_of(panel(", \"layer\": []")), "panels[0]: \"layer\" is an empty list"));
  CHECK(says(error_of("{}"), "\"panels\" is not a list"));
  CHECK(says(error_of(panel(", \"layer\": -1")), "panels[0]: \"layer\" is not a whole number from 0"));
  CHECK(says(error_of(panel(", \"layer\": 1e3")), "panels[0]: \"layer\""));
  CHECK(says(error_of(panel(", \"colour\": 1")), "panels[0]: 'colour' is no key of a panel"));
  CHECK(says(error_of(panel(", \"mode\": \"upside down\"")), "has no mode 'upside down': there are "));
  CHECK(says(error_of(panel(", \"range\": [1, 0]")), "panels[0]: \"range\""));
  CHECK(says(error_of(R"({"panels": [{"view": "stat", "checkpoint": "a.h5"}]})"), "there is no view 'stat'"));
  CHECK(says(error_of(R"({"panels": [{"view": "state"}]})"), "a view has one checkpoint"));
  CHECK(says(error_of(R"({"size": "5mm", "panels": []})"), "size: '5mm' is no size of a figure"));
  CHECK(says(error_of(R"({"type": 50, "panels": []})"), "\"type\" is not a number from 5 to 12"));
  CHECK(says(error_of(R"({"map": "jet", "panels": []})"), "there is no colour map 'jet'"));
  const std::string many =
      R"({"panels": [{"view": "state", "checkpoint": "a.h5", "layer": [0,1,2,3,4,5,6,7,8,9,10], "head": [0,1,2,3,4,5,6,7,8,9]}]})";
  CHECK(says(error_of(many), "at most 100 panels"));
}

TEST_CASE("figure spec and provenance: cut off at any byte they are refused in one line") {
  const Provenance provenance{parse_figure_spec(kGrid, "spec.json"),
                              {{"a.h5", "00ff", "{\"model_type\": \"<sse>\"}"}},
                              "statescope figure 'a & b'",
                              "0.1.0",
                              "cpu"};
  const std::string text = to_json(provenance), file = "before" + provenance_element(text) + "after";
  CHECK(to_json(parse_provenance(text, "fig.pdf")) == text);
  CHECK(provenance_in(file, "fig.svg") == text);
  CHECK(parse_provenance(text, "fig.pdf").sources == provenance.sources);
  const std::string spec = kGrid;
  for (std::size_t length = 0; length < std::max({spec.size(), text.size(), file.size() - 5}); ++length) {
    INFO(length);
    if (length < spec.size()) {
      const std::string words = error_of(spec.substr(0, length));
      CHECK((!words.empty() && words.find('\n') == words.npos));
    }
    if (length + 2 < text.size()) CHECK_THROWS_AS(parse_provenance(text.substr(0, length), "fig.pdf"), Error);
    if (length < file.size() - 5) CHECK_THROWS_AS(provenance_in(file.substr(0, length), "fig.pdf"), Error);
  }
}

TEST_CASE("figure spec: with any byte of it changed it is read or refused in one line") {
  for (std::size_t at = 0; at < std::string_view(kGrid).size(); ++at) {
    for (const char byte : {'"', '9', '\0', '\xff', '{'}) {
      std::string text = kGrid;
      text[at] = byte;
      INFO(at << " " << static_cast<int>(byte));
      CHECK(error_of(text).find('\n') == std::string::npos);
    }
  }
}

}  // namespace statescope::figure_spec_test
