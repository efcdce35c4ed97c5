// The right side: the inspector, and in its place what is asked for now and then.
#pragma once

#include <QPlainTextEdit>
#include <QSpinBox>
#include <QStackedWidget>

#include "app/inspector.h"

namespace statescope {

enum class SidePage { inspector, prompt, about, keys, preferences, breakpoints, figure, interventions };

/// `two_columns`: twice as wide as usual. `all`: all the room there is.
enum class SideWidth { usual, two_columns, all };

class Side : public QStackedWidget {
  Q_OBJECT

 public:
  explicit Side(Navigator& navigator, Actions& actions, QWidget* parent = nullptr);

  /// The next one of SidePage; Side itself makes those before the keys. Where `body` has a focus proxy, that gets the keyboard.
  void add_page(const QString& title, QWidget* body);

  void set_frame(const Frame& frame);
  void show_page(SidePage page);
  void set_width(SideWidth width);
  SidePage page() const { return static_cast<SidePage>(currentIndex()); }
  Inspector& inspector() { return *inspector_; }

 private:
  void fill_prompt_page();
  /// As the page was filled, or, where the text is another one, only the text.
  PromptInput prompt() const;
  QWidget* make_prompt_page(Navigator& navigator);

  Inspector* inspector_;
  QPlainTextEdit* prompt_ = nullptr;
  QSpinBox* generate_ = nullptr;
  PromptInput written_;  // what the page was filled with
  Navigator& navigator_;
  int usual_width_ = 0;
};

}  // namespace statescope
