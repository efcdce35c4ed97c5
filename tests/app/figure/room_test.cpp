// A figure shows all that its views show, or is not made: every view in every preset, at the size that it names, and below.
#include "app/figure/room.h"

#include <QRegularExpression>
#include <algorithm>
#include <set>

#include "app/figure/print.h"
#include "app/figure/render.h"
#include "engine/error.h"
#include "tests/app/window/qt_application.h"
#include "tests/catch.h"
#include "tests/views/catalogue_cases.h"

namespace statescope::room_test {
namespace {

FigureSpec spec_of(const std::string& id, std::string_view size) {
  FigureSpec spec;
  set_size(spec, size);
  FigurePanel panel;
  panel.view = id.substr(0, id.find(','));
  spec.panels = {panel};
  return spec;
}

/// Why there is none; empty: it is made.
std::string refusal(const FigureSpec& spec, const View& view) {
  try {
    std::vector<std::unique_ptr<PanelPicture>> panels;
    panels.push_back(picture_of(view));
    const Figure figure(spec, std::move(panels));
    RoomCanvas canvas(figure.size(), "");
    figure.draw(canvas);
    CHECK(canvas.collision() == "");
    CHECK_FALSE(canvas.has_left_out());
    for (const TextCanvas::Placed& placed : canvas.texts()) {
      INFO(placed.text);
      for (const char* word : {"Point at", "Choose", "Click", "Press", "Ctrl", " shown", "more lanes", "more room", "no room"})
        CHECK(placed.text.find(word) == std::string::npos);
      CHECK(placed.rect.h >= 0.7f * 11);
    }
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

/// The size that a refusal names; empty: none.
QString named_size(const std::string& refused) {
  return QRegularExpression(R"(\(size (\d+x\d+mm)\))").match(QString::fromStdString(refused)).captured(1);
}

bool is_message(const View& view) { return view.arrays().empty(); }

}  // namespace

TEST_CASE("every view in every preset is whole, or names the size that it needs and is whole in it", "[figure]") {
  qt_application();
  std::set<std::string> refused_somewhere;
  for (const CatalogueCase& c : catalogue_cases()) {
    if (c.cursor.progress < 1) continue;  // on the way from a token to the next: of films
    for (const auto& [name, view] : built_views(c)) {
      if (is_message(*view)) continue;
      for (const char* preset : {"single", "double", "neurips", "slide", "60x40mm", "30x25mm"}) {
        INFO(c.name << ", " << name << ", " << preset);
        const std::string refused = refusal(spec_of(name, preset), *view);
        if (refused.empty()) continue;
        INFO(refused);
        refused_somewhere.insert(preset);
        const QString size = named_size(refused);
        REQUIRE_FALSE(size.isEmpty());
        CHECK(refusal(spec_of(name, size.toStdString()), *view) == "");
      }
    }
  }
  CHECK(refused_somewhere.contains("30x25mm"));
}

TEST_CASE("numbers of a figure: true minus, powers of ten, no negative nothing", "[figure]") {
  CHECK(printed_numbers("-0.35", false) == "−0.35");
  CHECK(printed_numbers("-0.00", false) == "0.00");
  CHECK(printed_numbers("4.599e-06", false) == "4.599×10⁻⁶");
  CHECK(printed_numbers("-1e+12", false) == "−1×10¹²");
  CHECK(printed_numbers("±200", false) == "±200");
  CHECK(printed_numbers("1e-05 … -2", false) == "1×10⁻⁵ … −2");
  CHECK(printed_numbers("mean |cos| -0.2, least -0.0", true) == "mean |cos| −0.2, least 0.0");
  CHECK(printed_numbers("-5", true) == "-5");  // a token
  CHECK(printed_numbers("niah-gla-4", true) == "niah-gla-4");
  CHECK(printed_numbers("0,16-63", false) == "0,16-63");
}

TEST_CASE("symbols of equations stand below and above the line, names of models do not", "[figure]") {
  using Parts = std::vector<SetPart>;
  CHECK(set_parts("S_t") == Parts{{"S", 0}, {"t", -1}});
  CHECK(set_parts("S_t − S_{t−1}") == Parts{{"S", 0}, {"t", -1}, {" − S", 0}, {"t−1", -1}});
  CHECK(set_parts("reads, G^Q") == Parts{{"reads, G", 0}, {"Q", 1}});
  CHECK(set_parts("σ_i, singular values") == Parts{{"σ", 0}, {"i", -1}, {", singular values", 0}});
  CHECK(set_parts("o_t = Σ_s A_{t,s} v_s") ==
        Parts{{"o", 0}, {"t", -1}, {" = Σ", 0}, {"s", -1}, {" A", 0}, {"t,s", -1}, {" v", 0}, {"s", -1}});
  CHECK(set_parts("softmax_h(λ)") == Parts{{"softmax", 0}, {"h", -1}, {"(λ)", 0}});
  for (const char* name : {"A_1", "linear_dpfp", "niah_S_gla", "k_proj", "x_embeddings.weight", "a_b", "plain"})
    CHECK(set_parts(name) == Parts{{name, 0}});
}

}  // namespace statescope::room_test
