// The plain chart: columns of any file, its names, axes and what is wrong with it.
#include <cmath>
#include <fstream>

#include "app/figure/columns_file.h"
#include "app/figure/studies.h"
#include "app/figure/study_makers.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace statescope::columns_test {
namespace {

struct Written {
  test::TemporaryFolder folder;
  std::filesystem::path path = folder / "run.csv";
  explicit Written(const std::string& text) { std::ofstream(path, std::ios::binary) << text; }
};

std::string error_of(const std::string& text) {
  const Written file(text);
  try {
    const ColumnsFile columns = read_columns(file.path);
    for (std::size_t row = 0; row < columns.rows.size(); ++row) columns.number(row, columns.column("y"));
    return "";
  } catch (const std::exception& error) {
    return error.what();
  }
}

Chart chart_of(const std::string& text, const std::string& keys) {
  const Written file(text);
  FigureRuns runs;
  const FigureSpec spec =
      parse_figure_spec(R"({"panels": [{"chart": "columns", "data": [")" + file.path.string() + "\"], " + keys + "}]}", "spec.json");
  CHECK(to_json(parse_figure_spec(to_json(spec), "again")) == to_json(spec));
  Chart chart = columns_of_a_file(spec.panels[0], runs);
  apply(spec.panels[0].keys, chart);
  return chart;
}

}  // namespace

TEST_CASE("columns: CSV of each separator, quotes, empty fields; lines of JSON", "[figure]") {
  for (const char* text : {"x,y\n1,2\n3,\n", "x;y\r\n1;2\r\n3;nan\r\n", "x\ty\n1\t\"2\"\n3\t\n", "\xef\xbb\xbfx,y\n1,2\n\n3,inf\n",
                           "{\"x\": 1, \"y\": 2, \"z\": [1]}\n{\"x\": 3, \"y\": null}\n"}) {
    INFO(text);
    const Written file(text);
    const ColumnsFile columns = read_columns(file.path);
    CHECK(columns.names == std::vector<std::string>{"x", "y"});
    REQUIRE(columns.rows.size() == 2);
    CHECK(columns.number(0, 1) == 2);
    CHECK(columns.number(1, 0) == 3);
    CHECK(std::isnan(columns.number(1, 1)));
  }
  const Written quoted("x,\"a \"\"b\"\", c\"\n1,2\n");
  CHECK(read_columns(quoted.path).names[1] == "a \"b\", c");
}

TEST_CASE("columns: what is wrong with a file is said in a line", "[figure]") {
  CHECK(error_of("").find("is empty") != std::string::npos);
  CHECK(error_of("x,y\n").find("has no rows") != std::string::npos);
  CHECK(error_of("x,y\n1,2,3\n").find("record 2 has 3 fields, the first line 2") != std::string::npos);
  CHECK(error_of("x,y\n1,abc\n").find("column 'y', row 1: 'abc' is no number") != std::string::npos);
  CHECK(error_of("x,z\n1,2\n").find("has no column 'y'; it has x, z") != std::string::npos);
  CHECK(error_of("x,\"y\n1,2\n").find("a quotation mark is not closed") != std::string::npos);
  for (const char* bare : {"{}", "{}\n{}\n", "{\"y\": [1]}"})
    CHECK(error_of(bare).find("no line has a number or a text under a key") != std::string::npos);
  CHECK(error_of("{\"y\": 1}\n[2]\n").find("line 2 is no object") != std::string::npos);
}

TEST_CASE("columns: series by column and by value, renamed; axes as the spec has them", "[figure]") {
  const std::string text = "step,model,loss,val\n2,a,3,4\n1,a,5,6\n1,b,7,\n";
  const Chart plain = chart_of(text, R"("y": "loss")");
  REQUIRE(plain.series.size() == 1);
  CHECK(plain.x.name == "step");
  CHECK(plain.series[0].name.empty());
  const Chart chart = chart_of(text, R"("x": "step", "y": ["loss", "val"], "by": "model", "names": {"a, loss": "A"},
                                        "x_axis": {"label": "steps", "logarithmic": true}, "y_axis": {"range": [0, 10]})");
  REQUIRE(chart.series.size() == 4);
  CHECK(chart.series[0].name == "A");
  CHECK(chart.series[0].x == std::vector<double>{1, 2});
  CHECK(chart.series[0].y == std::vector<double>{5, 3});
  CHECK(chart.series[2].name == "a, val");
  CHECK(chart.x.name == "steps");
  CHECK(chart.x.logarithmic);
  CHECK(chart.y.high == 10);
  CHECK_THROWS_WITH(chart_of(text, R"("y": "loss", "names": {"nothing": "A"})"),
                    Catch::Matchers::ContainsSubstring("there is no series 'nothing'"));
  CHECK_THROWS_WITH(chart_of(text, R"("y": "loss", "y_axis": {"range": [3, 1]})"), Catch::Matchers::ContainsSubstring("low < high"));
  CHECK_THROWS_WITH(chart_of(text, R"("y": "loss", "x_axis": {"colour": 1})"), Catch::Matchers::ContainsSubstring("colour"));
}

}  // namespace statescope::columns_test
