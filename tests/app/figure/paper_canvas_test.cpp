#include "app/canvas/paper_canvas.h"

#include <QBuffer>
#include <QPdfWriter>
#include <QSvgGenerator>
#include <functional>
#include <optional>

#include "app/panels/view_panel.h"
#include "tests/app/figure/golden_picture.h"
#include "tests/app/window/pixel.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "views/chart.h"
#include "views/colormaps.h"
#include "views/view.h"

namespace statescope::paper_canvas_test {
namespace {

constexpr Color kRed{200, 0, 0};

QImage picture(Size size, Color ground, const std::function<void(Canvas&)>& paint, HitRegions* hits = nullptr, PaperStyle style = {}) {
  qt_application();
  QImage image(static_cast<int>(size.w), static_cast<int>(size.h), QImage::Format_RGB32);
  image.fill(QColor(ground.r, ground.g, ground.b));
  QPainter painter(&image);
  PaperCanvas canvas(painter, size, hits, std::move(style));
  paint(canvas);
  return image;
}

/// The least rectangle around everything that is not white.
QRect inked(const QImage& image) {
  QRect box;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      if (pixel(image, x, y) != Color{255, 255, 255}) box |= QRect(x, y, 1, 1);
    }
  }
  return box;
}

/// In the folder of the first word of its name.
void check_golden(const std::string& name, const QImage& image) {
  check_golden_picture("views/" + name.substr(0, name.find('_')), name, image, 0.001);
}

/// In one of its modes with all that it asks for answered by the samples, or without answers.
QImage view_picture(std::string_view id, const Snapshot& snapshot, const Cursor& cursor, Size size, const Frame& frame,
                    std::optional<std::size_t> mode = {}) {
  for (const ViewRow& row : view_catalogue()) {
    if (row.id != id) continue;
    const auto view = row.make();
    view->set_mode(mode.value_or(0));
    const auto answers = [&] {
      return view->compares() ? sample_findings_beside(*view, snapshot, sample_other(snapshot), cursor)
                              : sample_findings(view->questions(snapshot, cursor), snapshot);
    };
    view->build(snapshot, cursor, mode ? answers() : Findings());
    return picture(size, frame.theme.ground, [&](Canvas& canvas) { view->draw(canvas, {0, 0, size.w, size.h}, frame); });
  }
  FAIL("no view " << id);
  return {};
}

struct Golden {
  const char* name;
  std::string_view view;
  Size size;
  const Frame& frame;
  std::optional<std::size_t> mode = {};  // as view_picture has it
};
void check_goldens(const Snapshot& snapshot, const Cursor& cursor, std::initializer_list<Golden> pictures) {
  for (const Golden& golden : pictures)
    check_golden(golden.name, view_picture(golden.view, snapshot, cursor, golden.size, golden.frame, golden.mode));
}

const float kCells[] = {-1, 0, 1, 0.5f, NAN, -0.5f};
const Heatmap kHeatmap{2, 3, kCells, {ColorMap::diverging, -1, 1}};

}  // namespace

TEST_CASE("rectangles, clips and lines land on their pixels") {
  const QImage image = picture({20, 20}, {255, 255, 255}, [](Canvas& canvas) {
    canvas.push_clip({0, 0, 10, 20});
    canvas.fill_rect({4, 4, 12, 4}, kRed);
    canvas.push_clip({5, 0, 15, 20});
    canvas.fill_rect({0, 12, 20, 2}, kRed);
    canvas.pop_clip();
    canvas.pop_clip();
    canvas.line({0, 18.5f}, {20, 18.5f}, kRed, 1);
  });
  CHECK(pixel(image, 4, 4) == kRed);
  CHECK(pixel(image, 9, 7) == kRed);
  CHECK(pixel(image, 10, 7) == Color{255, 255, 255});
  CHECK(pixel(image, 4, 12) == Color{255, 255, 255});
  CHECK(pixel(image, 5, 12) == kRed);
  CHECK(pixel(image, 19, 18) == kRed);
}

TEST_CASE("the painter gets back what it had, even with clips left open") {
  qt_application();
  QImage image(10, 10, QImage::Format_RGB32);
  QPainter painter(&image);
  painter.scale(2, 2);
  {
    PaperCanvas canvas(painter, {5, 5});
    canvas.push_clip({0, 0, 1, 1});
    canvas.push_clip({0, 0, 1, 1});
  }
  CHECK_FALSE(painter.hasClipping());
  CHECK(painter.transform().m11() == 2);
}

TEST_CASE("text begins, is centred and ends where it should, and its middle is the given height") {
  for (const Align align : {Align::left, Align::center, Align::right}) {
    float width = 0;
    const QImage image = picture({200, 40}, {255, 255, 255}, [&](Canvas& canvas) {
      const TextStyle style{.font = Font::value, .size = 20, .color = {0, 0, 0}, .align = align};
      width = canvas.text_width("HHHH", style);
      canvas.text({100, 20}, "HHHH", style);
    });
    const QRect box = inked(image);
    const double left = align == Align::left ? 100 : align == Align::center ? 100 - width / 2 : 100 - width;
    CHECK(box.left() == Approx(left).margin(3));
    CHECK(box.right() == Approx(left + width).margin(3));
    CHECK(box.center().y() == Approx(20).margin(2));
    CHECK(width == Approx(4 * 0.6 * 20).margin(1));  // DejaVu Sans Mono is 0.602 em wide
  }
}

TEST_CASE("figures have equal widths, bold is wider, larger is wider") {
  picture({10, 10}, {}, [](Canvas& canvas) {
    const TextStyle value{.font = Font::value, .size = 13}, label{.size = 13}, bold{.size = 13, .bold = true}, large{.size = 26};
    CHECK(canvas.text_width("1111", value) == canvas.text_width("8888", value));
    CHECK(canvas.text_width("token", bold) > canvas.text_width("token", label));
    CHECK(canvas.text_width("token", large) == Approx(2 * canvas.text_width("token", label)).margin(0.5));
    CHECK(canvas.text_width("", label) == 0);
  });
}

TEST_CASE("cells keep their exact colours, side by side, without smoothing") {
  const QImage image = picture({60, 40}, {255, 255, 255}, [](Canvas& canvas) { canvas.heatmap({0, 0, 60, 40}, kHeatmap); });
  const auto& table = color_table(ColorMap::diverging);
  CHECK(pixel(image, 0, 0) == table[0]);
  CHECK(pixel(image, 19, 19) == table[0]);
  CHECK(pixel(image, 20, 10) == table[128]);
  CHECK(pixel(image, 59, 0) == table[255]);
  CHECK(pixel(image, 0, 39) == table[191]);
  CHECK(pixel(image, 59, 39) == table[64]);
}

TEST_CASE("NaN is hatched grey where there is room, grey where there is none, and no number looks like it") {
  const auto& colors = color_table(ColorMap::diverging);
  const QImage hatched = heatmap_image(kHeatmap, 8, colors), small = heatmap_image(kHeatmap, 1, colors);
  int dark = 0, light = 0;
  for (int y = 8; y < 16; ++y) {
    for (int x = 8; x < 16; ++x) (pixel(hatched, x, y) == Color{90, 90, 90} ? dark : light)++;
  }
  CHECK(dark == 16);
  CHECK(light == 48);
  CHECK(pixel(small, 1, 1) == Color{160, 160, 160});
  CHECK(small.size() == QSize(3, 2));
}

TEST_CASE("NaN is not drawn where it is to be blank: what lies below is seen") {
  Heatmap cells = kHeatmap;
  cells.scale.blank = true;
  for (const bool moving : {false, true}) {
    const auto paint = [&](Canvas& canvas) { canvas.heatmap({0, 0, 60, 40}, cells); };
    const QImage image = picture({60, 40}, {10, 20, 30}, paint, nullptr, {.moving = moving});
    CHECK(pixel(image, 30, 30) == Color{10, 20, 30});
    CHECK(pixel(image, 0, 0) == color_table(ColorMap::diverging)[0]);
    CHECK(pixel(image, 59, 39) == color_table(ColorMap::diverging)[64]);
  }
}

TEST_CASE("a long curve is on a screen where it is on paper: no peak is lost, none is higher") {
  std::vector<Point> noise;
  for (int i = 0; i < 512; ++i) noise.push_back({5 + 1.3f * static_cast<float>(i), 60 + 50 * std::sin(static_cast<float>(i * i))});
  for (const float width : {1.0f, 1.5f, 4.5f}) {
    const auto paint = [&](Canvas& canvas) { canvas.path(noise, {0, 0, 0}, width); };
    const Size size{680, 120};
    const QImage paper = picture(size, {255, 255, 255}, paint), screen = picture(size, {255, 255, 255}, paint, nullptr, {.moving = true});
    double difference = 0;
    int lost = 0, added = 0;
    const int reach = width < 2 ? 1 : 2;  // lines end square: a fifth of their width further out than round joins
    const auto is_near_ink = [reach](const QImage& image, int x, int y) {
      for (int near = -reach; near <= reach; ++near)
        if (qGray(image.pixel(std::clamp(x + near, 0, image.width() - 1), y)) < 160 ||
            qGray(image.pixel(x, std::clamp(y + near, 0, image.height() - 1))) < 160)
          return true;
      return false;
    };
    for (int x = 0; x < paper.width(); ++x) {
      for (int y = 0; y < paper.height(); ++y) {
        lost += qGray(paper.pixel(x, y)) < 100 && !is_near_ink(screen, x, y);
        added += qGray(screen.pixel(x, y)) < 100 && !is_near_ink(paper, x, y);
        difference += std::abs(qGray(paper.pixel(x, y)) - qGray(screen.pixel(x, y)));
      }
    }
    CHECK(lost == 0);
    CHECK(added == 0);
    CHECK(difference / (255.0 * paper.width() * paper.height()) < 0.02);
  }
}

TEST_CASE("cells are on a screen as on paper, however little of them is in sight") {
  std::vector<float> values;
  for (int i = 0; i < 64 * 48; ++i) values.push_back(static_cast<float>(i % 97) / 97);
  const Heatmap cells{48, 64, values, {ColorMap::viridis, 0, 1}};
  const Rect places[] = {{0, 0, 64, 48}, {-300, -200, 1280, 960}, {20, 10, 640, 480}, {-3, -5, 192, 144}, {200, 200, 64, 48}};
  for (const Rect place : places) {
    const auto paint = [&](Canvas& canvas) {
      canvas.push_clip({10, 10, 80, 60});
      canvas.heatmap(place, cells);
      canvas.pop_clip();
    };
    const Size size{100, 80};
    CHECK(picture(size, {9, 9, 9}, paint) == picture(size, {9, 9, 9}, paint, nullptr, {.moving = true}));
  }
}

TEST_CASE("hit regions are kept for a widget, as far as they are visible") {
  HitRegions hits;
  picture(
      {100, 100}, {},
      [](Canvas& canvas) {
        canvas.push_clip({0, 0, 50, 100});
        canvas.hit({0, 0, 100, 100}, {{7, 0, 0}, 2, 2});
        canvas.pop_clip();
      },
      &hits);
  CHECK(hits.at({10, 10}) == Hit(7, 0, 0));
  CHECK(hits.at({10, 60}) == Hit(7, 1, 0));
  CHECK_FALSE(hits.at({60, 10}));
}

TEST_CASE("a PDF has embedded fonts and lossless cells, an SVG has text as text and cells large enough not to be smoothed") {
  qt_application();
  const Sample sample({.tokens = 40, .partitions = 0, .rows = 80, .columns = 80});  // more than are drawn as shapes
  const auto view = find_view("state")->make();
  view->build(sample.at(12), {.token = 12});
  const auto paint = [&](QPaintDevice& device, double scale) {
    QPainter painter(&device);
    painter.scale(scale, scale);
    PaperCanvas canvas(painter, {600, 400});
    view->draw(canvas, {0, 0, 600, 400}, {light_theme(), 1});
  };

  QBuffer pdf;
  pdf.open(QIODevice::WriteOnly);
  QPdfWriter writer(&pdf);
  writer.setResolution(1200);
  paint(writer, 1200 / 96.0);
  REQUIRE(pdf.data().startsWith("%PDF"));
  CHECK(pdf.data().contains("/FontFile2"));
  CHECK_FALSE(pdf.data().contains("/DCTDecode"));
  CHECK_FALSE(pdf.data().contains("/Type3"));

  QBuffer svg;
  svg.open(QIODevice::WriteOnly);
  QSvgGenerator generator;
  generator.setOutputDevice(&svg);
  generator.setSize({600, 400});
  paint(generator, 1);
  CHECK(svg.data().contains("DejaVu Sans"));
  CHECK(svg.data().contains("value column"));
  const qsizetype begin = svg.data().indexOf("base64,") + 7, end = svg.data().indexOf('"', begin);
  REQUIRE(begin > 7);
  const QImage cells = QImage::fromData(QByteArray::fromBase64(svg.data().mid(begin, end - begin)));
  CHECK(cells.width() % 80 == 0);
  CHECK(cells.height() % 80 == 0);
  CHECK(cells.width() >= 400);
}

TEST_CASE("golden pictures of the views") {
  const Sample sample({.tokens = 40}), two({.tokens = 40, .partitions = 8, .chosen = 2}), many({.tokens = 300, .partitions = 12});
  const Frame light{light_theme(), 1}, dark{dark_theme(), 1}, large{light_theme(), 3};
  const Cursor cursor{.token = 12, .slot = 3, .row = 3, .column = 5};
  Cursor moving = cursor;
  moving.progress = 0.5f;
  const Snapshot snapshot = sample.at(12);
  check_goldens(snapshot, cursor,
                {
                    {"token_strip_light", "token_strip", {1000, 190}, light},
                    {"token_strip_dark", "token_strip", {1000, 190}, dark},
                });
  check_golden("token_strip_two", view_picture("token_strip", two.at(33), {.token = 33}, {700, 240}, light));
  check_goldens(snapshot, cursor,
                {
                    {"token_strip_3x", "token_strip", {1280, 260}, large},
                    {"routing_light", "routing", {620, 400}, light},
                    {"routing_dark", "routing", {620, 400}, dark},
                });
  check_golden("routing_moving", view_picture("routing", snapshot, moving, {620, 400}, light));
  check_golden("routing_many", view_picture("routing", many.at(3), {.token = 299, .slot = 9}, {500, 300}, light));
  check_golden("routing_none", view_picture("routing", sample.attention_at(12), cursor, {620, 200}, light));
  check_goldens(snapshot, cursor,
                {
                    {"routing_3x", "routing", {1280, 720}, large},
                    {"state_light", "state", {800, 460}, light},
                    {"state_dark", "state", {800, 460}, dark},
                    {"state_3x", "state", {1280, 720}, large},
                });
}

TEST_CASE("golden pictures: a needle, predictions, the model's map, who wrote a cell") {
  const Sample sample({.tokens = 40}), delta({.tokens = 40, .partitions = 0, .memory = "gated delta rule"});
  const Frame light{light_theme(), 1}, dark{dark_theme(), 1}, large{light_theme(), 2};
  const Cursor cursor{.token = 20, .slot = 3, .row = 3, .column = 5};
  Snapshot snapshot = sample.at(20);
  snapshot.predictions = {{7, " mill", 0.61f}, {20, " the", 0.25f}, {21, " river", 0.125f}};
  check_goldens(snapshot, cursor,
                {
                    {"needle_light", "needle", {960, 420}, light, 0},
                    {"needle_places_dark", "needle", {620, 320}, dark, 1},
                    {"needle_2x", "needle", {1280, 720}, large, 0},
                    {"predictions_light", "predictions", {900, 400}, light, 0},
                    {"predictions_logits_dark", "predictions", {620, 300}, dark, 1},
                    {"model_map_light", "model_map", {620, 300}, light, 0},
                    {"model_map_dark", "model_map", {1100, 320}, dark, 0},
                    {"state_history_light", "state", {800, 460}, light, 0},
                });
  check_golden("state_write_dark", view_picture("state", delta.at(20), cursor, {620, 400}, dark, 4));
}

TEST_CASE("golden pictures: rows that are written, and how deep and long until a needle is lost") {
  const Sample sample({.tokens = 40});
  const Frame light{light_theme(), 1}, dark{dark_theme(), 1}, large{light_theme(), 2};
  const Cursor cursor{.token = 20, .slot = 3, .row = 3, .column = 5};
  check_goldens(sample.at(20), cursor,
                {
                    {"writes_light", "writes", {620, 340}, light, 0},
                    {"writes_half_gone_dark", "writes", {620, 340}, dark, 1},
                    {"writes_spread_2x", "writes", {1280, 720}, large, 2},
                    {"needle_grid_light", "needle_grid", {860, 400}, light, 0},
                    {"needle_grid_dark", "needle_grid", {520, 340}, dark, 0},
                    {"needle_grid_2x", "needle_grid", {1280, 720}, large, 0},
                });
}

TEST_CASE("golden pictures: decay, the delta rule, the contest of heads") {
  const Sample gla({.tokens = 40, .partitions = 0}), delta({.tokens = 40, .partitions = 0, .memory = "gated delta rule"});
  const Frame light{light_theme(), 1}, dark{dark_theme(), 1}, large{light_theme(), 2};
  const Cursor cursor{.token = 28, .head = 1, .row = 11};
  const Snapshot snapshot = gla.at(28, 1), corrected = delta.at(28, 1);
  check_goldens(snapshot, cursor,
                {
                    {"decay_light", "decay", {620, 340}, light, 0},
                    {"decay_each_dark", "decay", {620, 340}, dark, 1},
                    {"decay_half_life", "decay", {620, 300}, light, 2},
                    {"decay_field_2x", "decay", {1280, 720}, large, 3},
                });
  check_goldens(corrected, cursor,
                {
                    {"delta_rule_light", "delta_rule", {820, 400}, light, 0},
                    {"delta_rule_gates_dark", "delta_rule", {620, 300}, dark, 4},
                });
  check_goldens(snapshot, cursor,
                {
                    {"head_gates_light", "head_gates", {720, 300}, light, 0},
                    {"head_gates_time_dark", "head_gates", {620, 400}, dark, 1},
                    {"head_gates_flow_2x", "head_gates", {1280, 720}, large, 2},
                });
}

TEST_CASE("golden pictures: a branch and what it left") {
  const Frame light{light_theme(), 1}, dark{dark_theme(), 1};
  const Cursor cursor{.token = 30};
  Snapshot branch = Sample({.tokens = 40}).at(30);
  branch.run = sample_branch(branch.run);
  check_goldens(branch, cursor,
                {
                    {"branches_light", "branches", {820, 400}, light, 0},
                    {"branches_logits_dark", "branches", {620, 300}, dark, 1},
                });
}

TEST_CASE("golden pictures: similarity, spectrum, implicit attention") {
  const Sample sample({.tokens = 40}), plain({.tokens = 40, .partitions = 0});
  const Frame light{light_theme(), 1}, dark{dark_theme(), 1}, large{light_theme(), 2};
  const Cursor cursor{.token = 30, .head = 1, .slot = 3, .row = 3};
  const Snapshot snapshot = sample.at(30, 1);
  check_goldens(snapshot, cursor,
                {
                    {"similarity_light", "similarity", {620, 300}, light, 0},
                    {"similarity_clustered_dark", "similarity", {620, 300}, dark, 1},
                    {"similarity_partitions", "similarity", {620, 300}, light, 2},
                    {"similarity_tokens_2x", "similarity", {1280, 720}, large, 4},
                });
  check_golden("similarity_one_memory", view_picture("similarity", plain.at(30, 1), cursor, {620, 300}, light, 0));
  check_goldens(snapshot, cursor,
                {
                    {"spectrum_light", "spectrum", {620, 300}, light, 0},
                    {"spectrum_partitions_dark", "spectrum", {620, 300}, dark, 2},
                    {"spectrum_run_2x", "spectrum", {1280, 720}, large, 3},
                    {"attention_light", "attention", {820, 400}, light, 0},
                    {"attention_shares_dark", "attention", {620, 300}, dark, 1},
                    {"attention_2x", "attention", {1280, 720}, large, 0},
                });
  const Cursor of_attention{.token = 30, .layer = 1, .head = 1};
  check_goldens(sample.attention_at(30), of_attention,
                {
                    {"choices_light", "choices", {820, 400}, light, 0},
                    {"choices_dark", "choices", {620, 300}, dark, 0},
                });
  const Cursor of_experts{.token = 30, .layer = 1};
  check_goldens(Sample({.tokens = 40, .experts = 16}).attention_at(30), of_experts, {{"experts_light", "experts", {820, 400}, light, 0}});
  check_goldens(Sample({.tokens = 700, .experts = 512, .chosen_experts = 10}).attention_at(650), {.token = 650, .layer = 1},
                {
                    {"experts_dark", "experts", {620, 300}, dark, 0},
                    {"experts_2x", "experts", {1280, 720}, large, 0},
                });
}

TEST_CASE("golden pictures: against another model", "[peers]") {
  const Sample sample({.tokens = 40});
  const Frame light{light_theme(), 1}, dark{dark_theme(), 1}, large{light_theme(), 2};
  const Cursor cursor{.token = 30, .head = 1, .slot = 3, .row = 3, .column = 5};
  Snapshot snapshot = sample.at(30, 1);
  snapshot.predictions = {{7, " mill", 0.61f}, {20, " the", 0.25f}, {21, " river", 0.125f}};
  check_goldens(snapshot, cursor,
                {
                    {"state_other_light", "state", {800, 460}, light, 6},
                    {"predictions_other_light", "predictions", {900, 320}, light, 2},
                    {"predictions_other_2x", "predictions", {1280, 720}, large, 2},
                    {"similarity_other_heads_dark", "similarity", {620, 300}, dark, 5},
                    {"similarity_other_rows", "similarity", {620, 300}, light, 6},
                    {"difference_light", "difference", {820, 300}, light, 0},
                    {"difference_2x", "difference", {1280, 600}, large, 0},
                });
}

TEST_CASE("golden pictures: a chart") {
  Chart chart{.title = "", .x = {"length", "tokens", true}, .y = {"time", "ms", true}, .series = {}, .interval = "", .equation = ""};
  for (int i = 0; i < 8; ++i) {
    const double factor = 0.4 * (i + 1);
    chart.series.push_back({"model " + std::to_string(i), {256, 512, 1024, 2048}, {factor, 1.8 * factor, 3.2 * factor, 6 * factor}});
  }
  const auto drawn = [&](Size size, const Frame& frame) {
    return picture(size, frame.theme.ground, [&](Canvas& canvas) { draw_chart(canvas, {0, 0, size.w, size.h}, chart, frame); });
  };
  check_golden("chart_light", drawn({420, 280}, {light_theme(), 1}));
  for (ChartSeries& series : chart.series) {
    for (const double y : series.y) {
      series.low.push_back(0.9 * y);
      series.high.push_back(1.1 * y);
    }
  }
  chart.interval = "95 %";
  chart.y.logarithmic = false;
  chart.series.resize(3);
  check_golden("chart_intervals_dark", drawn({420, 280}, {dark_theme(), 1}));
  check_golden("chart_above_2x", drawn({400, 560}, {light_theme(), 2}));
}

}  // namespace statescope::paper_canvas_test
