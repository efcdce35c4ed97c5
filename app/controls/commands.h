// Every command of the window, once: the menu, the keys and the list of keys are made from this table.
#pragma once

#include <QKeySequence>
#include <QList>
#include <QString>
#include <span>
#include <string_view>

namespace statescope {

class MainWindow;

enum class Menu { file, view, go, run, learn, help };

struct Command {
  std::string_view id;  // stable
  Menu menu;
  const char* submenu;                                  // title, or null
  const char* text;                                     // of the menu and the list of keys
  const char* keys;                                     // portable names, "; " between them; may be empty
  void (*run)(MainWindow& window, int key);             // `key`: which of `keys` was pressed; 0 from the menu
  bool (*checked)(const MainWindow& window) = nullptr;  // null: nothing to tick
  bool one_per_key = false;                             // the menu has one entry for each key
};

/// In the order of the menus: the table is in app/window/commands.cpp.
std::span<const Command> commands();
/// Whether it would do anything now; a menu greys what would not.
bool is_available(const Command& command, const MainWindow& window);
/// Another kind of thing begins here in its menu.
bool begins_group(const Command& command);

QList<QKeySequence> keys_of(const Command& command);

/// In the reader's language: a text or submenu of the table.
QString command_words(const char* text);
/// Likewise "File", "View", …
QString title_of(Menu menu);

}  // namespace statescope
