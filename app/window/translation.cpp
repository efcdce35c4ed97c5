#include "app/window/translation.h"

#include <QCoreApplication>
#include <QLibraryInfo>
#include <algorithm>

#include "app/assets.h"
#include "views/words.h"

namespace statescope {

std::string translated_words(const char* context, const char* english) {
  return QCoreApplication::translate(context, english).toStdString();
}

Translation::Translation(const QLocale& locale, const QStringList& folders) {
  install(locale, QStringLiteral("qtbase"), {QLibraryInfo::path(QLibraryInfo::TranslationsPath)});
  install(locale, QStringLiteral("statescope"), folders);
  if (!installed_.empty()) set_translator(translated_words);
}

Translation::~Translation() {
  set_translator(nullptr);
  for (const std::unique_ptr<QTranslator>& translator : installed_) QCoreApplication::removeTranslator(translator.get());
}

QStringList Translation::folders_of_translations() {
  return {QCoreApplication::applicationDirPath() + "/translations", QString::fromStdString((assets_folder() / "translations").string())};
}

void Translation::install(const QLocale& locale, const QString& name, const QStringList& folders) {
  auto translator = std::make_unique<QTranslator>();
  const auto loads = [&](const QString& folder) { return translator->load(locale, name, QStringLiteral("_"), folder); };
  if (!std::ranges::any_of(folders, loads)) return;
  QCoreApplication::installTranslator(translator.get());
  installed_.push_back(std::move(translator));
}

}  // namespace statescope
