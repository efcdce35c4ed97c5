// What a command line needs of Qt to draw.
#pragma once

#include <QGuiApplication>
#include <QHashFunctions>
#include <cstdio>
#include <memory>
#include <optional>

#include "app/common/process.h"
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
  /// What Qt and its readers of pictures remark is not for whoever called the program: where it matters, an error says so.
  static void only_fatal(QtMsgType type, const QMessageLogContext&, const QString& words) {
    if (words.contains(QLatin1String("Thread creation error"))) end_for_lack_of_threads();  // Qt would wait for what it does
    if (type == QtFatalMsg) std::fprintf(stderr, "statescope: %s\n", words.toUtf8().constData());
  }

  std::unique_ptr<Application> make() {
    setenv("QT_QPA_PLATFORM", "offscreen", 1);
    qInstallMessageHandler(only_fatal);
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
