// The views side by side; as many as there is room for.
#pragma once

#include <QSplitter>
#include <string>
#include <vector>

#include "app/view_panel.h"

namespace statescope {

class Stage : public QSplitter {
  Q_OBJECT

 public:
  Stage(Navigator& navigator, bool opengl, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  const std::vector<ViewPanel*>& panels() const { return panels_; }
  /// The one that has, or last had, the focus.
  ViewPanel& focused_panel() const { return *focused_; }

 Q_SIGNALS:
  void focus_moved();

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  void fold();

  std::vector<ViewPanel*> panels_;
  ViewPanel* focused_ = nullptr;
  float scale_ = 1;
};

}  // namespace statescope
