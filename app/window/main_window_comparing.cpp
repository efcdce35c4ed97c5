// What is compared: a token, from which views show what is different, and models beside each other.
#include <algorithm>
#include <utility>

#include "app/lesson/lesson_page.h"
#include "app/window/main_window.h"

namespace statescope {

void MainWindow::toggle_reference() {
  navigator_->toggle_reference();
  show_reference();
}

void MainWindow::end_reference() {
  navigator_->move({.reference = -1});
  show_reference();
}

/// States that are shown as they are become the difference, and afterwards states again.
void MainWindow::show_reference() {
  const std::int64_t token = navigator_->cursor().reference;
  bool shown = false;
  for (ViewPanel* panel : stage_->panels()) {
    if (panel->row().id != "state") continue;
    const std::span<const std::string_view> modes = panel->view().modes();
    const auto difference = static_cast<std::size_t>(std::ranges::find(modes, "Difference") - modes.begin());
    if (token >= 0 && panel->view().mode() == 0) panel->set_mode(difference);
    if (token < 0 && panel->view().mode() == difference) panel->set_mode(0);
    shown = shown || panel->view().mode() == difference;
  }
  say(token < 0 ? tr("Compared with no token")
      : shown   ? tr("Compared with token %1: State shows the difference. D at that token, or Esc, ends it").arg(token)
                : tr("Compared with token %1: in State as Difference, in Similarity as Tokens").arg(token));
}

/// What runs open with shows what memories of their kind do, and what all the models beside each other have, until somebody arranges the
/// views. A lesson's are its own.
void MainWindow::reopen_views() {
  if (lesson_->lesson() || !navigator_->run()) return;
  std::vector<const ModelInfo*> models{&navigator_->run()->model};
  for (const auto& peer : comparison_->peers())
    if (const auto& run = peer->navigator().run()) models.push_back(&run->model);
  const OpeningViews before = std::exchange(opening_views_, opening_views(models));
  if (before == opening_views_) return;
  remember("opening-views", QStringList{QString::fromStdString(opening_views_[0]), QString::fromStdString(opening_views_[1])});
  const Arrangement arrangement = reopened(stage_->arrangement(), before, opening_views_);
  if (arrangement == stage_->arrangement()) return;
  arrange(arrangement);
  if (models.size() > 1) say(tr("The views are those that all of these models have something to show in"));
}

}  // namespace statescope
