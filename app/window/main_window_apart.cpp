// Views that stand in windows of their own: they leave the stage, come back to it, and are remembered.
#include <QApplication>
#include <QTimer>
#include <algorithm>

#include "app/panels/view_window.h"
#include "app/window/context_menu.h"
#include "app/window/main_window.h"

namespace statescope {
namespace {

constexpr const char* key_of_apart = "views-apart";

}  // namespace

ViewWindow* MainWindow::window_of(const ViewPanel& panel) const {
  const auto found = std::ranges::find_if(apart_, [&](const ViewWindow* window) { return &window->panel() == &panel; });
  return found == apart_.end() ? nullptr : *found;
}

bool MainWindow::is_own(const ViewPanel& panel) const {
  return &panel == strip_ || window_of(panel) || std::ranges::count(stage_->panels(), &panel) > 0;
}

void MainWindow::tear_off(ViewPanel& panel, QPoint at) {
  panel.surface().setFocus();
  focus_panel(panel);
  const std::size_t before = apart_.size();
  toggle_apart();
  if (apart_.size() > before) apart_.back()->move(at);
}

void MainWindow::toggle_apart() {
  if (ViewWindow* const window = window_of(*focused_)) return give_back(*window);
  if (focused_ != &stage_->focused_panel()) return say(tr("Only a view of the stage can have a window of its own"));
  if (stage_->panels().size() == 1) return say(tr("The last view stays in this window"));
  ViewWindow& window = make_apart(*focused_);
  window.take_place(*this);
  stage_->close_view();
  show_apart(window);
  remember_apart();
}

ViewWindow& MainWindow::make_apart(const ViewPanel& of) {
  auto* const window = new ViewWindow(of, *navigator_, opengl_, QWidget::actions(), {action("view-apart")}, this);
  ViewPanel* const panel = &window->panel();
  panel->set_frame(frame_);
  connect(panel, &ViewPanel::focused, this, [this, panel] { focus_panel(*panel); });
  connect(panel, &ViewPanel::changed, this, [this, panel] {
    if (panel == focused_) show_table_soon();
  });
  connect(panel, &ViewPanel::spoke, this, &MainWindow::say);
  connect(panel, &ViewPanel::look_changed, this, &MainWindow::remember_apart);
  connect(panel, &ViewPanel::example_chosen, this, &MainWindow::open_example);
  connect(panel, &ViewPanel::menu_wanted, this,
          [this, panel](const std::optional<Hit>& hit, QPoint at) { show_place_menu(*this, *panel, hit, at); });
  connect(panel, &ViewPanel::torn_off, this, [this, window](QPoint at) {
    if (frameGeometry().contains(at)) give_back(*window);
  });
  connect(window, &ViewWindow::closed, this, [this, window] { give_back(*window); });
  apart_.push_back(window);
  return *window;
}

void MainWindow::show_apart(ViewWindow& window) {
  window.show();
  window.raise();
  window.activateWindow();
  window.panel().surface().setFocus();
  focus_panel(window.panel());  // which the desktop may give the keyboard later
}

/// To the end of the stage; where that is full, the view is gone.
void MainWindow::give_back(ViewWindow& window) {
  if (std::erase(apart_, &window) == 0) return;
  if (stage_->is_full()) {
    say(tr("The stage is full: the view is closed"));
  } else {
    stage_->add_view(window.panel().row());
    stage_->panels().back()->take_look(window.panel());
  }
  focus_panel(stage_->focused_panel());
  window.hide();
  window.deleteLater();
  activateWindow();
  focused_->surface().setFocus();
  remember_apart();
}

/// When the program ends; they come back with it.
void MainWindow::hide_apart() {
  remember_apart();
  for (ViewWindow* window : std::exchange(apart_, {})) {
    window->hide();
    window->deleteLater();
  }
  focus_panel(stage_->focused_panel());
}

void MainWindow::remember_apart() {
  QStringList views;
  for (const ViewWindow* window : apart_)
    views += QStringLiteral("%1 %2 %3")
                 .arg(QString::fromUtf8(window->panel().row().id.data(), static_cast<qsizetype>(window->panel().row().id.size())))
                 .arg(window->panel().view().mode())
                 .arg(QString::fromLatin1(window->saveGeometry().toBase64()));
  remember(key_of_apart, views);
}

/// Once this window is there.
void MainWindow::recall_apart() {
  if (!settings_) return;
  const QStringList views = settings_->value(key_of_apart).toStringList();
  for (const QString& view : views) {
    const QStringList parts = view.split(' ');
    const ViewRow* row = parts.size() == 3 ? find_view(parts[0].toStdString()) : nullptr;
    if (!row || row->id == strip_view || apart_.size() == most_views) continue;
    ViewWindow& window = make_apart(stage_->focused_panel());
    window.panel().set_view(*row);
    window.panel().set_mode(parts[1].toUInt());
    window.take_place(*this);
    window.restoreGeometry(QByteArray::fromBase64(parts[2].toLatin1()));
    window.show();
  }
}

}  // namespace statescope
