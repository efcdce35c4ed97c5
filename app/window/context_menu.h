// The menu of a place in a view, and of a table: what can be done there, and what can be copied.
#pragma once

#include <QPoint>
#include <optional>

#include "views/view.h"

class QTableView;

namespace statescope {

class MainWindow;
class ViewPanel;

/// `hit`: the place of the drawing that it is about; without one it is about the cursor's. `at`: on the screen.
void show_place_menu(MainWindow& window, ViewPanel& panel, const std::optional<Hit>& hit, QPoint at);
void show_table_menu(MainWindow& window, QTableView& table, QPoint at);
/// By key: of whatever has the keyboard.
void show_menu_here(MainWindow& window);

}  // namespace statescope
