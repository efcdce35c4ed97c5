// The one application object of the test program; no window system is needed (QT_QPA_PLATFORM=offscreen, set by ctest).
#pragma once

#include <QApplication>

#include "app/controls/surface.h"

namespace statescope {

inline QApplication& qt_application() {
  static int argc = 1;
  static char name[] = "app_tests";
  static char* argv[] = {name, nullptr};
  static auto* const application = [] {
    prepare_opengl();
    return new QApplication(argc, argv);
  }();  // never destroyed: Qt's own globals go before ours
  return *application;
}

}  // namespace statescope
