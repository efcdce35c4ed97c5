// The right side: the inspector, and in its place what is asked for now and then.
#pragma once

#include <QStackedWidget>

#include "app/pages/prompt_page.h"
#include "app/panels/inspector.h"

namespace statescope {

enum class SidePage { inspector, prompt, about, keys, preferences, breakpoints, figure, interventions, model, training, words };

/// `two_columns`: twice as wide as usual. `all`: all the room there is.
enum class SideWidth { usual, two_columns, all };

class Side : public QStackedWidget {
  Q_OBJECT

 public:
  explicit Side(Navigator& navigator, Actions& actions, QWidget* parent = nullptr);

  /// The next one of SidePage; Side itself makes those before the keys. Where `body` has a focus proxy, that gets the keyboard.
  /// `foot`: stays in sight below it.
  void add_page(const QString& title, QWidget* body, QWidget* foot = nullptr);

  void set_frame(const Frame& frame);
  void show_page(SidePage page);
  void set_width(SideWidth width);
  SidePage page() const { return static_cast<SidePage>(currentIndex()); }
  Inspector& inspector() { return *inspector_; }
  PromptPage& prompt() { return *prompt_; }

 Q_SIGNALS:
  void left();  // the inspector is wanted in the page's place

 private:
  Inspector* inspector_;
  PromptPage* prompt_;
  int usual_width_ = 0;
};

}  // namespace statescope
