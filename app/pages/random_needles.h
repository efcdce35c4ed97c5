// Needles that were never read before: how long their text is, how many there are, and how deep the one that is asked for stands.
#pragma once

#include <QPushButton>

#include "app/controls/typed_number.h"
#include "app/runs/navigator.h"

namespace statescope {

class RandomNeedles : public QWidget {
  Q_OBJECT

 public:
  explicit RandomNeedles(Navigator& navigator, QWidget* parent = nullptr);

  /// A text for the open model, drawn at random.
  void draw();

 Q_SIGNALS:
  void drawn(const PromptInput& prompt);
  void refused(const QString& why);

 private:
  Navigator& navigator_;
  NumberBox *length_, *needles_, *depth_;
  std::int64_t trained_ = 0;  // length of the texts that the model was trained on, when it was last asked
};

}  // namespace statescope
