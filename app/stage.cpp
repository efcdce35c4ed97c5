#include "app/stage.h"

#include <algorithm>

namespace statescope {
namespace {

constexpr float least_width = 340;  // of a view, at 1×

/// What a run opens with, as far as the catalogue has it.
constexpr std::string_view first_views[] = {"routing", "state"};

}  // namespace

Stage::Stage(Navigator& navigator, bool opengl, QWidget* parent) : QSplitter(Qt::Horizontal, parent) {
  setChildrenCollapsible(false);
  for (const std::string_view id : first_views) {
    const ViewRow* row = find_view(id);
    if (row == nullptr) continue;
    auto* panel = new ViewPanel(navigator, *row, opengl, true, this);
    connect(panel, &ViewPanel::focused, this, [this, panel] {
      focused_ = panel;
      Q_EMIT focus_moved();
    });
    addWidget(panel);
    panels_.push_back(panel);
  }
  focused_ = panels_.back();
  setSizes({500, 600});
  setStretchFactor(0, 5);
  setStretchFactor(1, 6);
}

void Stage::set_frame(const Frame& frame) {
  scale_ = frame.scale;
  setHandleWidth(static_cast<int>(8 * frame.scale));
  for (ViewPanel* panel : panels_) panel->set_frame(frame);
  fold();
}

void Stage::fold() {
  const auto room = std::max<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(static_cast<float>(width()) / (least_width * scale_)));
  std::ptrdiff_t others = room - 1;
  for (ViewPanel* panel : panels_) panel->setVisible(panel == focused_ || others-- > 0);
}

void Stage::resizeEvent(QResizeEvent* event) {
  QSplitter::resizeEvent(event);
  fold();
}

}  // namespace statescope
