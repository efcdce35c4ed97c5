#include "app/figure.h"

#include <fmt/format.h>

#include <QFileInfo>
#include <QPageSize>
#include <QPainter>
#include <QPdfWriter>
#include <QSaveFile>
#include <QSvgGenerator>
#include <cmath>

#include "app/canvas/paper_canvas.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr double mm_per_inch = 25.4, units_per_inch = 96;  // of a canvas
constexpr double usual_type_pt = 13 * 72 / units_per_inch;
constexpr int pdf_dpi = 1200, png_dpi = 600;

int dots(double mm, double dpi) { return static_cast<int>(std::lround(mm / mm_per_inch * dpi)); }

void draw(QPaintDevice& device, double dpi, const View& view, const FigureSize& size) {
  const double shrink = size.type_pt / usual_type_pt;
  const auto units = [shrink](double mm) { return static_cast<float>(mm / mm_per_inch * units_per_inch / shrink); };
  const Size room{units(size.width_mm), units(size.height_mm)};
  const Frame frame{light_theme(), 1};
  QPainter painter(&device);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.scale(dpi / units_per_inch * shrink, dpi / units_per_inch * shrink);
  PaperCanvas canvas(painter, room);
  canvas.fill_rect({0, 0, room.w, room.h}, frame.theme.panel, 0);
  view.draw(canvas, {0, 0, room.w, room.h}, frame);
}

void write_pdf(QIODevice& file, const View& view, const FigureSize& size) {
  QPdfWriter writer(&file);
  writer.setResolution(pdf_dpi);
  writer.setPageSize(QPageSize(QSizeF(size.width_mm, size.height_mm), QPageSize::Millimeter, {}, QPageSize::ExactMatch));
  writer.setPageMargins({});
  writer.setCreator("Statescope");
  draw(writer, pdf_dpi, view, size);
}

void write_svg(QIODevice& file, const View& view, const FigureSize& size) {
  QSvgGenerator generator;
  generator.setOutputDevice(&file);
  generator.setResolution(static_cast<int>(units_per_inch));
  generator.setSize({dots(size.width_mm, units_per_inch), dots(size.height_mm, units_per_inch)});
  generator.setViewBox(QRect(QPoint(), generator.size()));
  draw(generator, units_per_inch, view, size);
}

void write_png(QIODevice& file, const View& view, const FigureSize& size) {
  QImage image(dots(size.width_mm, png_dpi), dots(size.height_mm, png_dpi), QImage::Format_RGB32);
  image.setDotsPerMeterX(dots(1000, png_dpi));
  image.setDotsPerMeterY(dots(1000, png_dpi));
  draw(image, png_dpi, view, size);
  image.save(&file, "PNG");
}

}  // namespace

void write_figure(const View& view, const FigureSize& size, const QString& path) {
  const QString ending = QFileInfo(path).suffix().toLower();
  const auto write = ending == "pdf" ? write_pdf : ending == "svg" ? write_svg : ending == "png" ? write_png : nullptr;
  if (!write) throw Error(fmt::format("{}: a figure's name ends with .pdf, .svg or .png", path.toStdString()));
  QSaveFile file(path);
  if (!file.open(QIODevice::WriteOnly))
    throw Error(fmt::format("{}: cannot be written: {}", path.toStdString(), file.errorString().toStdString()));
  write(file, view, size);
  if (!file.commit()) throw Error(fmt::format("{}: cannot be written: {}", path.toStdString(), file.errorString().toStdString()));
}

}  // namespace statescope
