#include "app/window/context_menu.h"

#include <QApplication>
#include <QClipboard>
#include <QMenu>
#include <QTableView>
#include <algorithm>

#include "app/window/main_window.h"
#include "views/chosen.h"

namespace statescope {
namespace {

/// It goes when it is left.
QMenu* make_menu(MainWindow& window) {
  auto* menu = new QMenu(&window);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  return menu;
}

template <class Act>
QAction* add(QMenu& menu, const QString& text, bool available, const Act& act) {
  QAction* const action = menu.addAction(text);
  action->setEnabled(available);
  QObject::connect(action, &QAction::triggered, &menu, act);
  return action;
}

/// As a spreadsheet takes it.
QString tsv_of(const Table& table) {
  const auto line = [](const std::vector<std::string>& cells) {
    QStringList words;
    for (const std::string& cell : cells) words += QString::fromStdString(cell).replace('\t', ' ').replace('\n', ' ');
    return words.join('\t') + '\n';
  };
  QString text = line(table.columns);
  for (const std::vector<std::string>& row : table.rows) text += line(row);
  return text;
}

void copy(MainWindow& window, const QString& text) {
  QApplication::clipboard()->setText(text);
  window.say(MainWindow::tr("Copied: %1").arg(text));
}

void copy_table(MainWindow& window, const ViewPanel& panel, std::size_t number) {
  const std::vector<Table> tables = panel.view().tables();
  if (number >= tables.size()) return;
  QApplication::clipboard()->setText(tsv_of(tables[number]));
  window.say(MainWindow::tr("Copied a table of %1 lines, with tabs between its columns").arg(tables[number].rows.size()));
}

/// A view may have several, each of other rows.
void add_table_copies(QMenu& menu, MainWindow& window, const ViewPanel& panel) {
  const QString name = MainWindow::tr("Copy the table");
  const std::vector<Table> tables = panel.view().tables();
  if (tables.size() < 2) {
    add(menu, name, !tables.empty(), [&window, &panel] { copy_table(window, panel, 0); });
    return;
  }
  QMenu* const below = menu.addMenu(name);
  for (std::size_t i = 0; i < tables.size(); ++i)
    add(*below, MainWindow::tr("A line for each %1").arg(QString::fromStdString(tables[i].columns.front())), true,
        [&window, &panel, i] { copy_table(window, panel, i); });
}

/// Of the text the token as it is, of other views the number.
void add_copies(QMenu& menu, MainWindow& window, ViewPanel& panel, const std::optional<Hit>& hit) {
  const std::shared_ptr<const RunInfo>& run = window.navigator().run();
  if (&panel == &window.strip() && run) {
    const auto token = static_cast<std::size_t>(window.navigator().cursor().token);
    const QString text = token < run->tokens.size() ? QString::fromStdString(run->tokens[token].text) : QString();
    add(menu, MainWindow::tr("Copy the token"), !text.isEmpty(), [&window, text] { copy(window, text); });
  } else {
    const QString value = panel.value_at(hit);
    add(menu, MainWindow::tr("Copy the value"), !value.isEmpty(), [&window, value] { copy(window, value); });
  }
  add_table_copies(menu, window, panel);
  add(menu, MainWindow::tr("Copy the picture"), !panel.view().sheets().empty(), [&window, &panel] {
    QApplication::clipboard()->setPixmap(panel.surface().grab());
    window.say(MainWindow::tr("Copied the picture"));
  });
}

/// The cell, its row or its partition comes into the state's view, which says who wrote it.
void show_history(MainWindow& window, const CursorMove& what) {
  window.navigator().move(what);
  const std::vector<ViewPanel*>& panels = window.stage().panels();
  const bool shown = std::ranges::any_of(panels, [](const ViewPanel* panel) { return panel->row().id == "state" && panel->isVisible(); });
  if (!shown) window.show_view(*find_view("state"));
}

void add_histories(QMenu& menu, MainWindow& window) {
  const LayerInfo* layer = window.navigator().layer_info();
  const Cursor& at = window.navigator().cursor();
  const bool has_state = layer && layer->has_state(), cell = has_state && at.row >= 0 && at.column >= 0;
  QMenu* const who = menu.addMenu(MainWindow::tr("Who wrote it"));
  add(*who, MainWindow::tr("This cell"), cell, [&window] { show_history(window, {}); });
  add(*who, MainWindow::tr("Its row"), has_state && at.row >= 0, [&window] { show_history(window, {.column = -1}); });
  add(*who, MainWindow::tr("The whole partition"), has_state, [&window] { show_history(window, {.row = kAllRows, .column = -1}); });
}

/// What changes the run or its playing acts on the window's own model.
void add_acts(QMenu& menu, MainWindow& window) {
  const bool run = window.navigator().run() != nullptr;
  add(menu, MainWindow::tr("Breakpoint at this token"), run, [&window] { window.playback().toggle_here(); });
  add(menu, MainWindow::tr("Compare with this token"), run, [&window] { window.toggle_reference(); });
  add_histories(menu, window);
  QMenu* const change = menu.addMenu(MainWindow::tr("Intervene"));
  for (const char* id : {"zero-row", "zero-head", "zero-partition", "freeze-decay", "interventions"})
    add(*change, window.action(id)->text(), run, [action = window.action(id)] { action->trigger(); });
  menu.addSeparator();
}

}  // namespace

void show_place_menu(MainWindow& window, ViewPanel& panel, const std::optional<Hit>& hit, QPoint at) {
  QMenu* const menu = make_menu(window);
  const bool own = window.is_own(panel);
  if (own) add_acts(*menu, window);
  add_copies(*menu, window, panel, hit);
  if (own) add(*menu, window.action("copy-command")->text(), true, [action = window.action("copy-command")] { action->trigger(); });
  menu->addSeparator();
  add(*menu, window.action("export")->text(), !panel.view().sheets().empty() && &panel != &window.strip(), [&window, &panel] {
    panel.surface().setFocus();
    window.show_page(SidePage::figure);
  });
  if (own && &panel != &window.strip())
    add(*menu, window.action("view-apart")->text(), true, [&window, &panel] {
      panel.surface().setFocus();
      window.toggle_apart();
    });
  add(*menu, MainWindow::tr("Words used here"), true, [&window, &panel] { window.show_words_of(panel); });
  menu->popup(at);
}

void show_table_menu(MainWindow& window, QTableView& table, QPoint at) {
  QMenu* const menu = make_menu(window);
  window.side().inspector().fill_menu(*menu, table);
  if (window.side().inspector().shows_view(table)) add_table_copies(*menu, window, window.focused_panel());
  menu->popup(at);
}

void show_menu_here(MainWindow& window) {
  if (QTableView* table = window.side().inspector().focused_table())
    return show_table_menu(window, *table, table->viewport()->mapToGlobal(table->visualRect(table->currentIndex()).bottomLeft()));
  window.focused_panel().ask_for_menu();
}

}  // namespace statescope
