// A view in a window of its own, such as on a second screen.
#pragma once

#include "app/panels/view_panel.h"

namespace statescope {

class ViewWindow : public QWidget {
  Q_OBJECT

 public:
  /// Looks at what `of` looks at. The keys of `actions` do here what they do in `owner`; `own` are in the menu of the view's name.
  ViewWindow(const ViewPanel& of, Navigator& navigator, bool opengl, const QList<QAction*>& actions, const QList<QAction*>& own,
             QWidget* owner);

  ViewPanel& panel() { return *panel_; }
  const ViewPanel& panel() const { return *panel_; }
  /// On another screen than `owner` where there is one, else beside its middle.
  void take_place(const QWidget& owner);

 Q_SIGNALS:
  void closed();  // by the reader

 protected:
  void closeEvent(QCloseEvent* event) override;

 private:
  void show_title();

  ViewPanel* panel_;
};

}  // namespace statescope
