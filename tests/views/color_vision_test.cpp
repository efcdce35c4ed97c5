// Colours of things as eyes without red, green or blue cones see them, and how well drawn text stands out from what lies behind it.
#include <cmath>
#include <optional>

#include "app/canvas/text_canvas.h"
#include "tests/catch.h"
#include "tests/views/sample_answers.h"
#include "tests/views/samples.h"
#include "tests/views/vision.h"
#include "views/colormaps.h"
#include "views/view.h"

namespace statescope::color_vision_test {
using namespace statescope::vision;

namespace {

/// A text canvas that also knows what lies behind each text, and keeps the least contrast of any.
class ContrastCanvas : public TextCanvas {
 public:
  ContrastCanvas(Size size, Color ground) : TextCanvas(size), ground_(ground) {}

  void fill_rect(Rect rect, Color color, float corner) override {
    TextCanvas::fill_rect(rect, color, corner);
    layers_.push_back({rect, color, {}});
  }
  void heatmap(Rect rect, const Heatmap& cells) override {
    TextCanvas::heatmap(rect, cells);
    Layer layer{rect, {}, cells};
    layer.values.assign(cells.values.begin(), cells.values.end());
    layers_.push_back(std::move(layer));
  }
  void text(Point at, std::string_view text, const TextStyle& style) override {
    TextCanvas::text(at, text, style);
    const Rect box = texts().back().rect;
    for (int i = 0; i <= 8; ++i) {
      const Color behind = color_at_point({box.x + box.w * static_cast<float>(i) / 8, box.y + box.h / 2});
      const float contrast = contrast_ratio(over(style.color, behind), behind);
      if (contrast < least_) least_ = contrast, worst_ = std::string(text);
    }
  }

  float least_contrast() const { return least_; }
  const std::string& worst_text() const { return worst_; }

 private:
  struct Layer {
    Rect rect;
    Color color;
    Heatmap cells;
    std::vector<float> values = {};

    Color at(Point p) const {
      if (cells.rows == 0) return color;
      const auto row = static_cast<std::int64_t>((p.y - rect.y) / rect.h * static_cast<float>(cells.rows));
      const auto column = static_cast<std::int64_t>((p.x - rect.x) / rect.w * static_cast<float>(cells.columns));
      const float value = values[static_cast<std::size_t>(row * cells.columns + column)];
      if (std::isnan(value)) return {0, 0, 0, 0};
      return color_table(cells.scale.map)[static_cast<std::size_t>(color_index(cells.scale, value))];
    }
  };

  Color color_at_point(Point p) const {
    Color color = ground_;
    for (const Layer& layer : layers_)
      if (layer.rect.contains(p)) color = over(layer.at(p), color);
    return color;
  }

  Color ground_;
  std::vector<Layer> layers_;
  float least_ = 21;
  std::string worst_;
};

}  // namespace

TEST_CASE("colours of things stay apart without red, green or blue cones") {
  for (const Theme& theme : {light_theme(), dark_theme(), high_contrast_theme()}) {
    for (const Vision& vision : visions) {
      INFO(vision.name);
      for (std::int64_t i = 0; i < 8; ++i) {
        for (std::int64_t j = 0; j < i; ++j) {
          INFO("identities " << j << " and " << i);
          CHECK(distance(identity_color(i, theme), identity_color(j, theme), vision) >= apart);
        }
      }
      CHECK(distance(theme.needle, theme.question, vision) >= apart);
      CHECK(distance(theme.needle, theme.answer, vision) >= apart);
      CHECK(distance(theme.question, theme.answer, vision) >= apart);
      CHECK(distance(theme.needle, theme.ink, vision) >= apart);
    }
  }
}

TEST_CASE("sequential maps grow lighter for every eye; diverging ones keep their ends and their middle apart") {
  for (const Vision& vision : visions) {
    INFO(vision.name);
    for (const ColorMap map : {ColorMap::viridis, ColorMap::cividis})
      for (std::size_t i = 16; i < 256; i += 16) {
        INFO("step " << i);
        CHECK(lab(color_table(map)[i], vision)[0] > lab(color_table(map)[i - 16], vision)[0]);
      }
    for (const ColorMap map : {ColorMap::diverging, ColorMap::diverging_dark}) {
      const Color low = color_at(map, 0), middle = color_at(map, 0.5f), high = color_at(map, 1);
      CHECK(distance(low, high, vision) >= far_apart);
      CHECK(distance(low, middle, vision) >= far_apart);
      CHECK(distance(high, middle, vision) >= far_apart);
      for (const float far : {0.15f, 0.25f, 0.35f}) CHECK(distance(color_at(map, 0.5f - far), color_at(map, 0.5f + far), vision) >= apart);
    }
  }
}

TEST_CASE("every text of every view stands out 4.5 to 1 from what is drawn behind it, in all three themes") {
  const Sample sample({.tokens = 40, .partitions = 8, .chosen = 2}), delta({.tokens = 40, .partitions = 0, .memory = "gated delta rule"}),
      experts({.tokens = 40, .experts = 16});
  const Cursor cursor{.token = 33, .slot = 1, .row = 3, .column = 4};
  for (const Snapshot& snapshot : {sample.at(33), delta.at(33), sample.attention_at(33), experts.attention_at(33), Snapshot()}) {
    for (const ViewRow& row : view_catalogue()) {
      for (std::size_t mode = 0; mode < std::max<std::size_t>(1, row.make()->modes().size()); ++mode) {
        const std::unique_ptr<View> view = row.make();
        view->set_mode(mode);
        view->build(snapshot, cursor, sample_findings(view->questions(snapshot, cursor), snapshot));
        for (const Theme& theme : {light_theme(), dark_theme(), high_contrast_theme()}) {
          ContrastCanvas canvas({1200, 700}, theme.panel);
          view->draw(canvas, {0, 0, 1200, 700}, {theme, 1});
          INFO(row.id << ", mode " << mode << ", " << snapshot.layer << ", '" << canvas.worst_text() << "', "
                      << (theme.ground == light_theme().ground ? "light" : "dark"));
          CHECK(canvas.least_contrast() >= 4.5f);
        }
      }
    }
  }
}

}  // namespace statescope::color_vision_test
