// What a command line needs of Qt to draw.
#pragma once

#include <QGuiApplication>
#include <QHashFunctions>
#include <memory>

namespace statescope {

/// An application for fonts and pictures, which needs no display; the same bytes every time.
class FontsAlone {
 public:
  FontsAlone() {
    if (!QCoreApplication::instance()) application_ = make();
  }

 private:
  std::unique_ptr<QGuiApplication> make() {
    setenv("QT_QPA_PLATFORM", "offscreen", 1);
    QHashSeed::setDeterministicGlobalSeed();
    return std::make_unique<QGuiApplication>(count_, arguments_);
  }

  int count_ = 1;
  char name_[11] = "statescope";
  char* arguments_[2] = {name_, nullptr};
  std::unique_ptr<QGuiApplication> application_;
};

}  // namespace statescope
