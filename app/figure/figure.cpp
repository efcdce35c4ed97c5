#include "app/figure/figure.h"

#include <fmt/format.h>

#include <QBuffer>
#include <QCryptographicHash>
#include <QFontDatabase>
#include <QImageWriter>
#include <QPageSize>
#include <QPagedPaintDevice>
#include <QPainter>
#include <QPdfWriter>
#include <QProcess>
#include <QSvgGenerator>
#include <QTemporaryDir>
#include <algorithm>
#include <array>
#include <cmath>

#include "app/canvas/paper_canvas.h"
#include "engine/checkpoint/file.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr double kMmPerInch = 25.4;
constexpr int kPdfDpi = 1200, kSvgDpi = 96, kPreviewDpi = 150;
constexpr double kMostPixels = 2e8;  // of a PNG
constexpr int kPdftopsMs = 120'000;

int dots(double mm, double dpi) { return static_cast<int>(std::lround(mm / kMmPerInch * dpi)); }

PaperStyle style_of(const FigureSpec& spec, double dpi, double scale) {
  const QString family = QString::fromStdString(spec.family);
  if (!family.isEmpty() && !QFontDatabase::hasFamily(family))
    throw Error(fmt::format("there is no typeface {} here; `fc-list : family` lists those that are", in_quotes(spec.family)));
  return {.family = family,
          .line_width = static_cast<float>(spec.line_width),
          .magnitudes = &figure_table(spec.colors),
          .signs = figure_signs(spec.colors),
          .outlines = spec.outlines,
          .fineness = static_cast<float>(std::max(1.0, scale * std::max(1.0, 600 / dpi)))};
}

/// On a device of so many dots to an inch.
void draw(QPagedPaintDevice* pages, QPaintDevice& device, double dpi, const Figure& figure) {
  const double scale = dpi / kMmPerInch / figure.units_per_mm();
  QPainter painter(&device);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.scale(scale, scale);
  for (std::size_t page = 0; page < figure.pages(); ++page) {
    if (page > 0 && (!pages || !pages->newPage()))
      throw Error(
          fmt::format("the figure has {} pages of {:g} mm at most: a PDF alone has pages", figure.pages(), *figure.spec().max_height_mm));
    PaperCanvas canvas(painter, figure.size(), nullptr, style_of(figure.spec(), dpi, scale));
    figure.draw(canvas, page);
  }
}

void draw(QPaintDevice& device, double dpi, const Figure& figure) { draw(nullptr, device, dpi, figure); }

QByteArray png_of(const QImage& image, const QString& provenance) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  QImageWriter writer(&buffer, "png");
  if (!provenance.isEmpty()) writer.setText(kProvenanceText, provenance);
  if (!writer.write(image)) throw Error("the picture cannot be written: " + writer.errorString().toStdString());
  return bytes;
}

/// Takes bytes out, and says in the table of the objects' places that those behind them have moved.
void take_out(QByteArray& pdf, qsizetype at, qsizetype count) {
  pdf.remove(at, count);
  const qsizetype start = pdf.lastIndexOf("startxref\n") + 10;
  qsizetype start_end = start;
  while (start_end < pdf.size() && pdf[start_end] >= '0' && pdf[start_end] <= '9') ++start_end;
  const qsizetype table = pdf.mid(start, start_end - start).toLongLong() - count;
  pdf.replace(start, start_end - start, QByteArray::number(table));
  constexpr qsizetype digits = 10, entry = 20;  // "0000000015 00000 n \n"
  const qsizetype first = pdf.indexOf('\n', table + 5) + 1, end = pdf.indexOf("trailer", table);
  for (qsizetype place = first; place + entry <= end; place += entry) {
    const qsizetype offset = pdf.mid(place, digits).toLongLong();
    if (offset > at) pdf.replace(place, digits, QByteArray::number(offset - count).rightJustified(digits, '0'));
  }
}

/// What the writer makes of the hour, of where in the world it is and of chance, made from the content instead.
void settle(QByteArray& pdf) {
  static constexpr char date[] = "20000101000000Z";
  if (const qsizetype at = pdf.indexOf("/CreationDate (D:"); at >= 0) {
    const qsizetype begin = at + 17, length = pdf.indexOf(')', begin) - begin, wanted = sizeof date - 1;
    pdf.replace(begin, wanted, date, wanted);
    if (length > wanted) take_out(pdf, begin + wanted, length - wanted);
  }
  const qsizetype id = pdf.lastIndexOf("/ID [ <");
  if (id < 0) return;
  const qsizetype first = id + 7, length = pdf.indexOf('>', first) - first, second = pdf.indexOf('<', first) + 1;
  const auto put = [&](const QByteArray& hex) {
    pdf.replace(first, length, hex);
    pdf.replace(second, length, hex);
  };
  put(QByteArray(length, '0'));
  put(QCryptographicHash::hash(pdf, QCryptographicHash::Sha256).toHex().left(length));
}

QByteArray xmp_of(const std::string& provenance) {
  const std::string element = provenance.empty() ? "" : provenance_element(provenance);
  return QByteArray::fromStdString(
      fmt::format("<?xpacket begin=\"\xEF\xBB\xBF\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n"
                  "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">"
                  "<rdf:Description rdf:about=\"\" xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\" xmlns:pdf=\"http://ns.adobe.com/pdf/1.3/\">"
                  "<xmp:CreatorTool>Statescope</xmp:CreatorTool>{}</rdf:Description></rdf:RDF></x:xmpmeta>\n<?xpacket end=\"w\"?>\n",
                  element));
}

QByteArray pdf_of(const Figure& figure, const std::string& provenance) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QPdfWriter writer(&buffer);
    writer.setResolution(kPdfDpi);
    writer.setPageSize(QPageSize(QSizeF(figure.spec().width_mm, figure.height_mm()), QPageSize::Millimeter, QStringLiteral("figure"),
                                 QPageSize::ExactMatch));
    writer.setPageMargins({});
    writer.setCreator("Statescope");
    writer.setTitle(QString::fromStdString(figure.subject()));
    writer.setDocumentXmpMetadata(xmp_of(provenance));
    if (!provenance.empty()) writer.addFileAttachment("figure.json", QByteArray::fromStdString(provenance), "application/json");
    draw(&writer, writer, kPdfDpi, figure);
  }
  settle(bytes);
  return bytes;
}

/// A viewer without the typeface takes one of its kind.
void name_generic_families(QByteArray& svg, const std::string& family) {
  svg.replace("font-family=\"DejaVu Sans Mono\"", "font-family=\"DejaVu Sans Mono, monospace\"");
  const QByteArray own = family.empty() ? "DejaVu Sans" : QByteArray::fromStdString(family);
  svg.replace("font-family=\"" + own + "\"", "font-family=\"" + own + ", sans-serif\"");
}

/// The generator knows whole dots only; the figure is exactly as large as asked.
void set_exact_size(QByteArray& svg, const Figure& figure) {
  const double width = figure.spec().width_mm, height = figure.height_mm(), units = kSvgDpi / kMmPerInch;
  const qsizetype begin = svg.indexOf("<svg "), end = svg.indexOf(" xmlns", begin);
  if (begin < 0 || end < 0) return;
  svg.replace(begin, end - begin,
              QByteArray::fromStdString(fmt::format("<svg width=\"{:.6g}mm\" height=\"{:.6g}mm\" viewBox=\"0 0 {:.6g} {:.6g}\"", width,
                                                    height, width * units, height * units)));
}

QByteArray svg_of(const Figure& figure, const std::string& provenance) {
  QByteArray bytes;
  QBuffer buffer(&bytes);
  buffer.open(QIODevice::WriteOnly);
  {
    QSvgGenerator generator;
    generator.setOutputDevice(&buffer);
    generator.setResolution(kSvgDpi);
    generator.setSize({dots(figure.spec().width_mm, kSvgDpi), dots(figure.height_mm(), kSvgDpi)});
    generator.setViewBox(QRect(QPoint(), generator.size()));
    generator.setTitle(QString::fromStdString(figure.subject()));
    draw(generator, kSvgDpi, figure);
  }
  set_exact_size(bytes, figure);
  name_generic_families(bytes, figure.spec().family);
  if (const qsizetype end = bytes.indexOf("</title>"); end >= 0 && !provenance.empty())
    bytes.insert(end + 8, "\n<metadata>" + QByteArray::fromStdString(provenance_element(provenance)) + "</metadata>");
  return bytes;
}

QByteArray eps_of(const QByteArray& pdf) {
  const QTemporaryDir folder;
  const QString from = folder.filePath("figure.pdf"), to = folder.filePath("figure.eps");
  QFile file(from);
  if (!file.open(QIODevice::WriteOnly) || file.write(pdf) != pdf.size())
    throw Error("no room for temporary files: " + file.errorString().toStdString());
  file.close();
  QProcess pdftops;
  pdftops.start("pdftops", {"-eps", from, to});
  if (!pdftops.waitForStarted()) throw Error("EPS needs pdftops, which is not installed; it comes with poppler-utils");
  QFile made(to);
  if (!pdftops.waitForFinished(kPdftopsMs) || pdftops.exitCode() != 0 || !made.open(QIODevice::ReadOnly))
    throw Error("pdftops made no EPS: " + pdftops.readAllStandardError().simplified().left(200).toStdString());
  return made.readAll();
}

}  // namespace

FigureFormat figure_format(const std::string& path) {
  constexpr std::array<std::pair<const char*, FigureFormat>, 4> endings{
      {{".pdf", FigureFormat::pdf}, {".svg", FigureFormat::svg}, {".png", FigureFormat::png}, {".eps", FigureFormat::eps}}};
  const QString name = QString::fromStdString(path).toLower();
  for (const auto& [ending, format] : endings) {
    if (name.endsWith(QLatin1String(ending))) return format;
  }
  throw Error(path + ": the name of a figure must end in .pdf, .svg, .png or .eps");
}

QByteArray figure_bytes(const Figure& figure, FigureFormat format, const Provenance* provenance) {
  const std::string json = provenance ? to_json(*provenance) : "";
  switch (format) {
    case FigureFormat::pdf:
      return pdf_of(figure, json);
    case FigureFormat::svg:
      return svg_of(figure, json);
    case FigureFormat::png:
      if (figure.spec().outlines) throw Error("letters as outlines are of PDF, SVG and EPS: a PNG has no letters");
      return png_of(figure_image(figure, figure.spec().dpi), provenance ? QString::fromStdString(without_spaces(json)) : QString());
    case FigureFormat::eps:
      if (figure.pages() > 1) throw Error("the figure has several pages: a PDF alone has pages");
      return eps_of(pdf_of(figure, json));
  }
  return {};
}

QImage figure_image(const Figure& figure, double dpi) {
  const int width = dots(figure.spec().width_mm, dpi), height = dots(figure.height_mm(), dpi);
  if (static_cast<double>(width) * height > kMostPixels)
    throw Error(fmt::format("a PNG of {} × {} dots is too large; take a lower dpi or a smaller size", width, height));
  const bool transparent = figure.spec().transparent;
  QImage image(width, height, transparent ? QImage::Format_ARGB32 : QImage::Format_RGB32);
  if (image.isNull()) throw Error("out of memory");
  image.fill(transparent ? Qt::transparent : Qt::white);  // the last row may lie in part beyond the figure
  image.setDotsPerMeterX(dots(1000, dpi));
  image.setDotsPerMeterY(dots(1000, dpi));
  draw(image, dpi, figure);
  return image;
}

QByteArray figure_preview(const Figure& figure, FigureEyes eyes) { return png_of(seen_by(figure_image(figure, kPreviewDpi), eyes), {}); }

}  // namespace statescope
