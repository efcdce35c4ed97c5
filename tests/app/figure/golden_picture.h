// Pictures compared with those stored in tests/golden/.
#pragma once

#include <QDir>
#include <QFileInfo>
#include <QImage>
#include <cstdlib>
#include <string>

#include "tests/catch.h"
#include "tests/source.h"

namespace statescope {

/// The share of pixels that differ by more than 2 % in a channel; 1 if the sizes differ.
inline double difference(const QImage& a, const QImage& b) {
  if (a.size() != b.size()) return 1;
  constexpr int fuzz = 5;
  std::int64_t different = 0;
  for (int y = 0; y < a.height(); ++y) {
    for (int x = 0; x < a.width(); ++x) {
      const QRgb p = a.pixel(x, y), q = b.pixel(x, y);
      different += std::abs(qRed(p) - qRed(q)) > fuzz || std::abs(qGreen(p) - qGreen(q)) > fuzz || std::abs(qBlue(p) - qBlue(q)) > fuzz;
    }
  }
  return static_cast<double>(different) / (static_cast<double>(a.width()) * a.height());
}

/// STATESCOPE_BLESS=1 stores it anew.
inline void check_golden_picture(const std::string& folder, const std::string& name, const QImage& image, double most) {
  const QString stored = QString::fromStdString(from_source("tests/golden/") + folder + "/" + name + ".png");
  if (qEnvironmentVariableIsSet("STATESCOPE_BLESS")) {
    QDir().mkpath(QFileInfo(stored).path());
    REQUIRE(image.save(stored));
  }
  const QString actual = QDir::temp().filePath(QString::fromStdString("statescope-" + name + ".png"));
  const double share = difference(image, QImage(stored).convertToFormat(QImage::Format_RGB32));
  INFO(name << ": " << 100 * share << " % of the pixels differ from " << stored.toStdString() << "; see " << actual.toStdString());
  if (share > most) image.save(actual);
  CHECK(share <= most);
}

}  // namespace statescope
