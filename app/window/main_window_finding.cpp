// How things are found in the window: views in the menu, everything in the palette, words in the text, what our own words mean.
#include <QMenuBar>
#include <algorithm>

#include "app/pages/words_page.h"
#include "app/panels/find_bar.h"
#include "app/window/main_window.h"
#include "app/window/palette_entries.h"

namespace statescope {

/// First in the menu View: each goes to the place of the focused view.
void MainWindow::list_views() {
  QMenu* const view = actions_->menu(Menu::view);
  auto* menu = new QMenu(tr("Show here"), menuBar());
  menu->setToolTipsVisible(true);
  for (const ViewRow& row : view_catalogue()) {
    if (row.id == strip_view) continue;
    QAction* const choice = menu->addAction(view_words(row.title));
    choice->setToolTip(view_help(row));
    connect(choice, &QAction::triggered, this, [this, &row] { show_view(row); });
  }
  view->insertMenu(view->actions().first(), menu);
}

void MainWindow::show_palette() {
  palette_->ask(palette_entries(*this), [this](const QString& typed) { return tokens_found(*this, typed); });
}

void MainWindow::find_text() {
  show_work();
  find_->begin();
  fold();
}

/// On the time line, and in the text.
void MainWindow::show_found() {
  transport_->show_found(find_->found().first);
  frame_.shown.found = find_->found().all;
  strip_->set_frame(frame_);
}

void MainWindow::show_words_of(const ViewPanel& panel) {
  QString text = view_words(panel.row().help) + ' ' + QString::fromStdString(panel.view().describe());
  for (const std::string& column : panel.view().table().columns) text += ' ' + QString::fromStdString(column);
  if (side_->page() != SidePage::words || !side_->isVisible()) show_page(SidePage::words);
  words_->show_used_in(text);
}

void MainWindow::ask_for_token() {
  transport_->show();
  transport_->ask_for_token();
}

void MainWindow::choose_slot(const std::string& name) {
  const LayerInfo* layer = navigator_->layer_info();
  if (!layer) return;
  const auto found = std::ranges::find(layer->slot_names, name);
  if (found == layer->slot_names.end()) return;
  CursorMove change;
  change.slot = found - layer->slot_names.begin();
  navigator_->move(change);
}

}  // namespace statescope
