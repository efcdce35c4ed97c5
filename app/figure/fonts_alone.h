// What a command line needs of Qt to draw.
#pragma once

#include <QGuiApplication>
#include <QHashFunctions>
#include <memory>
#include <optional>

#include "app/common/runtime_folder.h"

namespace statescope {

/// An application for fonts and pictures, or for widgets that nobody sees, which needs no display; the same bytes every time.
template <class Application>
class Offscreen {
 public:
  Offscreen() {
    if (!QCoreApplication::instance()) application_ = make();
  }

 private:
  std::unique_ptr<Application> make() {
    setenv("QT_QPA_PLATFORM", "offscreen", 1);
    runtime_folder_.emplace();
    QHashSeed::setDeterministicGlobalSeed();
    return std::make_unique<Application>(count_, arguments_);
  }

  std::optional<RuntimeFolder> runtime_folder_;  // goes after the application
  int count_ = 1;
  char name_[11] = "statescope";
  char* arguments_[2] = {name_, nullptr};
  std::unique_ptr<Application> application_;
};
using FontsAlone = Offscreen<QGuiApplication>;

}  // namespace statescope
