// The window's words in other languages: Qt's compiled translations (.qm), beside the program or among its assets.
#pragma once

#include <QLocale>
#include <QStringList>
#include <QTranslator>
#include <memory>
#include <string>
#include <vector>

namespace statescope {

/// What views say (views/words.h), as Qt translates it. On any thread.
std::string translated_words(const char* context, const char* english);

/// Installed in the application for as long as it lives; what views draw and say is translated, too.
class Translation {
 public:
  /// Of the first of the locale's languages that a folder has a statescope_<language>.qm for, with Qt's own words; else English.
  explicit Translation(const QLocale& locale, const QStringList& folders = folders_of_translations());
  ~Translation();
  Translation(const Translation&) = delete;
  Translation& operator=(const Translation&) = delete;

  /// Where the program looks: beside itself, then among its assets.
  static QStringList folders_of_translations();

 private:
  void install(const QLocale& locale, const QString& name, const QStringList& folders);

  std::vector<std::unique_ptr<QTranslator>> installed_;
};

}  // namespace statescope
