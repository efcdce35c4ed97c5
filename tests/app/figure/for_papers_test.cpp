// What a paper asks of a figure: cells as shapes, pages, one bar, letters as outlines, LaTeX.
#include <fmt/format.h>

#include <QRegularExpression>
#include <cmath>

#include "app/canvas/paper_canvas.h"
#include "app/figure/colors.h"
#include "app/figure/figure.h"
#include "app/figure/latex.h"
#include "engine/error.h"
#include "tests/app/window/place.h"
#include "tests/app/window/qt_application.h"
#include "views/color_vision.h"
#include "views/colormaps.h"

namespace statescope::for_papers_test {
namespace {

using namespace test::place;

/// A heatmap of signed numbers, one of them none.
class Cells : public PanelPicture {
 public:
  explicit Cells(std::int64_t side) : side_(side), values_(static_cast<std::size_t>(side * side)) {
    for (std::size_t i = 0; i < values_.size(); ++i) values_[i] = std::sin(static_cast<float>(i));
    values_[1] = std::nanf("");
  }
  void draw(Canvas& canvas, Rect area, const Frame&) const override {
    canvas.heatmap({area.x, area.y, 60, 60}, {side_, side_, values_, {ColorMap::diverging, -1, 1}});
    canvas.text({area.x + 20, area.y + 75}, "cells", {});
  }
  std::vector<Array> arrays() const override { return {}; }
  std::string caption() const override { return ""; }

 private:
  std::int64_t side_;
  std::vector<float> values_;
};

Figure figure_of(std::int64_t side, const FigureSpec& spec = {}) {
  std::vector<std::unique_ptr<PanelPicture>> panels;
  panels.push_back(std::make_unique<Cells>(side));
  return Figure(spec, std::move(panels));
}

std::string error_of(const Figure& figure, FigureFormat format) {
  try {
    figure_bytes(figure, format, nullptr);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

/// Where a spec of that name is, with keys beside its panels.
void write_grid(const Place& place, const std::string& keys, const std::string& layers = "[0, 1, 2, 3]") {
  place.write("grid.json", R"({"size": "double", )" + keys +
                               R"("panels": [{"view": "state", "prompt": "needle.json", "checkpoint": "niah-gla.h5", "layer": )" + layers +
                               R"(, "head": [0, 1]}]})");
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

const std::string kCsv = "step,loss,model\n1,2.5,a\n2,1.5,a\n1,3,b & c\n";
std::string chart(const std::string& keys) {
  return R"({"panels": [{"chart": "columns", "data": ["a.csv"], "y": "loss", "by": "model")" + keys + "}]}";
}

}  // namespace

TEST_CASE("for papers: cells are shapes up to 64 × 64, more of them a picture of 300 dots to an inch") {
  qt_application();
  for (const FigureFormat format : {FigureFormat::svg, FigureFormat::pdf}) {
    const QByteArray few = figure_bytes(figure_of(64), format, nullptr), many = figure_bytes(figure_of(80), format, nullptr);
    const char* picture = format == FigureFormat::svg ? "<image" : "/Subtype /Image";
    CHECK(few.count(picture) == 0);
    REQUIRE(many.count(picture) == 1);
    if (format == FigureFormat::pdf) continue;
    const auto size = QRegularExpression(R"re(<image[^>]* width="([0-9.]+)"[^>]*base64,([A-Za-z0-9+/=\s]+)")re").match(many);
    REQUIRE(size.hasMatch());
    const QImage image = QImage::fromData(QByteArray::fromBase64(size.captured(2).toLatin1()));
    const double inches = 60 / figure_of(80).units_per_mm() / 25.4;
    CHECK(image.width() % 80 == 0);
    CHECK(image.width() / inches >= 300);
  }
}

TEST_CASE("for papers: shapes have the colours of pixels, and stripes where there is no number") {
  qt_application();
  const QByteArray svg = figure_bytes(figure_of(3), FigureFormat::svg, nullptr);
  for (const float value : {std::sin(0.0f), std::sin(5.0f)}) {
    const Color c = color_table(ColorMap::diverging)[static_cast<std::size_t>(color_index({ColorMap::diverging, -1, 1}, value))];
    CHECK(svg.contains(QByteArray::fromStdString(fmt::format("#{:02x}{:02x}{:02x}", c.r, c.g, c.b))));
  }
  CHECK(svg.contains("#a0a0a0"));
  CHECK(svg.contains("#5a5a5a"));
}

TEST_CASE("for papers: letters are outlines where that is asked for, but not of a PNG") {
  qt_application();
  FigureSpec spec;
  spec.outlines = true;
  CHECK(figure_bytes(figure_of(3), FigureFormat::svg, nullptr).contains("<text"));
  CHECK_FALSE(figure_bytes(figure_of(3, spec), FigureFormat::svg, nullptr).contains("<text"));
  CHECK_FALSE(figure_bytes(figure_of(3, spec), FigureFormat::pdf, nullptr).contains("/FontFile"));
  CHECK(error_of(figure_of(3, spec), FigureFormat::png) == "letters as outlines are of PDF, SVG and EPS: a PNG has no letters");
}

TEST_CASE("for papers: a grid that is higher than a page goes on, in a PDF") {
  const Place place;
  write_grid(place, R"("max_height": 110, )");
  REQUIRE(place.run("figure --spec grid.json -o a.pdf --caption a.txt").status == 0);
  const std::string pdf = place.text_of("a.pdf");
  const std::size_t pages = count(pdf, "/Type /Page\n");
  CHECK(pages == 4);  // of a row each
  for (const char* other : {"b.svg", "b.png", "b.eps"}) {
    const Outcome outcome = place.run(std::string("figure --spec grid.json --force -o ") + other);
    CHECK(outcome.status == 1);
    CHECK(outcome.errors.find("a PDF alone has pages") != std::string::npos);
  }
  write_grid(place, R"("max_height": 600, )");
  REQUIRE(place.run("figure --spec grid.json -o c.pdf").status == 0);
  CHECK(count(place.text_of("c.pdf"), "/Type /Page\n") == 1);
  write_grid(place, R"("max_height": 22, )");
  CHECK(place.run("figure --spec grid.json -o d.pdf").errors.find("another \"max_height\", may have it") != std::string::npos);
  place.write("grid.json", R"({"size": "89x60mm", "max_height": 50, "panels": [{"view": "state", "checkpoint": "niah-gla.h5"}]})");
  CHECK(place.run("figure --spec grid.json -o d.pdf").errors.find("max_height") != std::string::npos);
}

TEST_CASE("for papers: panels of one range have one bar for all of them, others one each") {
  const Place place;
  write_grid(place, R"("map": "cividis", )", "[0, 2]");
  REQUIRE(place.run("figure --spec grid.json -o own.svg").status == 0);
  write_grid(place, R"("map": "cividis", "shared_range": true, )", "[0, 2]");
  REQUIRE(place.run("figure --spec grid.json -o shared.svg").status == 0);
  CHECK(count(place.text_of("own.svg"), ">S_t<") + count(place.text_of("own.svg"), ">S<") == 4);
  CHECK(count(place.text_of("shared.svg"), ">S_t<") + count(place.text_of("shared.svg"), ">S<") == 1);
}

TEST_CASE("for papers: colours that are safe in grey grow lighter all the way, and nothing warns of them") {
  qt_application();
  const std::array<Color, 256>* table = figure_signs(FigureColors::grey_safe);
  REQUIRE(table != nullptr);
  for (std::size_t i = 1; i < table->size(); ++i) CHECK(luminance(light_of((*table)[i])) >= luminance(light_of((*table)[i - 1])));
  CHECK(luminance(light_of(table->back())) > 10 * luminance(light_of(table->front())));
  CHECK(figure_signs(FigureColors::viridis) == nullptr);
  CHECK(!figure_of(3).warning().empty());
  FigureSpec spec;
  spec.colors = FigureColors::grey_safe;
  CHECK(figure_of(3, spec).warning().empty());
}

TEST_CASE("for papers: the names of a chart's series stand where they are wanted") {
  const Place place;
  place.write("a.csv", kCsv);
  place.write("s.json", chart(""));
  REQUIRE(place.run("figure --spec s.json -o usual.svg").status == 0);
  for (const char* legend : {"above", "beside", "none"}) {
    place.write("s.json", chart(std::string(R"(, "legend": ")") + legend + "\""));
    REQUIRE(place.run("figure --spec s.json --force -o a.svg").status == 0);
    const std::string svg = place.text_of("a.svg");
    CHECK((svg.find(">b &amp; c<") == svg.npos) == (std::string(legend) == "none"));
    CHECK(count(svg, "<path") + count(svg, "<polyline") > 0);
    if (std::string(legend) == "above") CHECK(svg != place.text_of("usual.svg"));
  }
  place.write("s.json", chart(R"(, "legend": "inside")"));
  CHECK(place.run("figure --spec s.json -o b.svg").errors.find("beside, above or none") != std::string::npos);
}

TEST_CASE("for papers: LaTeX's own signs are escaped, symbols are mathematics") {
  CHECK(latex_text("50 % of A_1 & {b}") == "50 \\% of A\\_1 \\& \\{b\\}");
  CHECK(latex_text("S_{t−1}") == "S\\ensuremath{_{\\mathrm{t\\ensuremath{-}1}}}");
  CHECK(latex_text("α ‖k‖") == "\\ensuremath{\\alpha} \\ensuremath{\\|}k\\ensuremath{\\|}");
  for (const char* bar : {"A\u0304 u", "Ā u"}) CHECK(latex_text(bar) == "\\ensuremath{\\bar{A}} u");
  CHECK(latex_text("“a” – 4.6e-06") == "``a'' -- 4.6\\ensuremath{\\times}10\\ensuremath{^{-}}\\ensuremath{^{6}}");
}

TEST_CASE("for papers: a caption for LaTeX, and a chart's numbers for pgfplots") {
  const Place place;
  place.write("a.csv", kCsv);
  place.write("s.json", chart(""));
  REQUIRE(place.run("figure --spec s.json -o a.svg --data a.dat --caption a.tex").status == 0);
  CHECK(place.text_of("a.dat") == "step a {b & c}\n1 2.5 3\n2 1.5 nan\n");
  CHECK(place.text_of("a.tex").starts_with("\\caption{%\n"));
  CHECK(place.run("figure state " + kReading + " -o b.svg --data b.dat").errors.find("is of one chart") != std::string::npos);
  CHECK(place.run("figure state " + kReading + " -o b.svg --data b.txt").status == 2);
  CHECK_FALSE(std::filesystem::exists(place.folder / "b.svg"));
}

TEST_CASE("for papers: captions cite the recurrence of the family that is shown") {
  const Place place;
  const std::vector<std::pair<std::string, std::string>> families{{"rwkv7", "(RWKV-7)"},
                                                                  {"mamba2", "(Mamba-2)"},
                                                                  {"mamba", "(Mamba eq. 2, 4)"},
                                                                  {"s4d", "(S4)"},
                                                                  {"gla", "(GLA eq. 3)"},
                                                                  {"sla_gla", "(SLA eq. 12)"},
                                                                  {"sse_gdn_n4k1", "(SSE eq. 9, Gated DeltaNet eq. 10)"}};
  place.write("ids", "1 2 3");
  for (const auto& [family, source] : families) {
    INFO(family);
    const Outcome outcome = place.run("figure state " + from_source("tests/golden/models/" + family) +
                                          " --ids ids --generate 0 --size 183x120mm --force -o a.svg --caption -",
                                      "caption");
    INFO(outcome.errors);
    CHECK(outcome.status == 0);
    const std::string caption = place.text_of("caption");
    CHECK(caption.find(source) != caption.npos);
    CHECK((caption.find("GLA eq. 3") != caption.npos) == (family == "gla"));
  }
}

}  // namespace statescope::for_papers_test
