// The model that is open: what it is, whether it reads text, and what was passed over when it was opened.
#pragma once

#include <QLabel>

#include "app/runs/navigator.h"

namespace statescope {

class ModelPage : public QWidget {
  Q_OBJECT

 public:
  explicit ModelPage(const Navigator& navigator, QWidget* parent = nullptr);

 private:
  void show_model();

  const Navigator& navigator_;
  QLabel *about_, *text_, *notes_;
};

}  // namespace statescope
