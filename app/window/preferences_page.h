// How the window looks and what it does by itself.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>

namespace statescope {

class MainWindow;

class PreferencesPage : public QWidget {
  Q_OBJECT

 public:
  /// `drawn` says how the window is drawn, and what else is not as it was asked for.
  PreferencesPage(MainWindow& window, const QString& drawn, QWidget* parent = nullptr);

  /// As the window is now.
  void refresh();

 private:
  MainWindow& window_;
  const QString drawn_;
  QLabel* device_;
  QComboBox *theme_, *scale_;
  QCheckBox *reduce_motion_, *autoplay_;
};

}  // namespace statescope
