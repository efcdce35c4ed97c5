// Everything by name (Ctrl+K): a line to type into and what fits it, best first.
#pragma once

#include <QFrame>
#include <QLabel>
#include <QLineEdit>
#include <QListWidget>
#include <functional>
#include <vector>

#include "views/view.h"

namespace statescope {

struct PaletteEntry {
  QString text;  // "Next token"
  QString kind;  // "Go"; faint beside it
  QString keys;  // as shown; may be empty
  std::function<void()> run;
  QString also = {};  // other words that it is found by
};

class Palette : public QFrame {
  Q_OBJECT

 public:
  /// More for what has been typed: tokens by number and text.
  using Search = std::function<std::vector<PaletteEntry>(const QString& typed)>;

  explicit Palette(QWidget* parent);

  void set_frame(const Frame& frame);
  /// Comes up with nothing typed.
  void ask(std::vector<PaletteEntry> entries, Search search);
  /// Ends it without choosing.
  void leave();

 Q_SIGNALS:
  void left();  // chosen or not

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void place();
  void fill();
  void choose();

  QLineEdit* line_;
  QListWidget* list_;
  QLabel* nothing_;  // in its place where nothing fits
  class EntryDelegate;
  EntryDelegate* delegate_;
  std::vector<PaletteEntry> entries_, shown_;  // all; what fits, in the order of the list
  Search search_;
  float scale_ = 1;
};

}  // namespace statescope
