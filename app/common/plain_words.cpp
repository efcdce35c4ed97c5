#include "app/common/plain_words.h"

#include <QRegularExpression>

namespace statescope {

QString without_options(const std::string& message) {
  static const QRegularExpression option(QStringLiteral("(^|[^-\\w])--[a-z]"));
  QStringList kept;
  for (const QString& part : QString::fromStdString(message).split(QStringLiteral("; ")))
    if (!part.contains(option)) kept += part;
  return kept.isEmpty() ? QString::fromStdString(message) : kept.join(QStringLiteral("; "));
}

QStringList without_options(const std::vector<std::string>& messages) {
  QStringList all;
  for (const std::string& message : messages) all += without_options(message);
  return all;
}

QString checkpoint_name(const std::filesystem::path& checkpoint) {
  const std::filesystem::path path = checkpoint.has_filename() ? checkpoint : checkpoint.parent_path();
  return QString::fromStdString((path.extension() == ".h5" ? path.stem() : path.filename()).string());
}

}  // namespace statescope
