// The token that is compared with: the views of the stage show what is different from it.
#include <algorithm>

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

}  // namespace statescope
