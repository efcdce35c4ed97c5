// Figures as files for a paper.
#pragma once

#include <QByteArray>
#include <QString>

#include "app/figure/colors.h"
#include "app/figure/provenance.h"
#include "app/figure/render.h"
#include "views/view.h"

namespace statescope {

enum class FigureFormat { pdf, svg, png, eps };
/// After the ending of the file's name. Throws Error.
FigureFormat figure_format(const std::string& path);

/// The file's bytes: PDF and SVG with vectors and a picture for each heatmap, PNG with the spec's dots, EPS as pdftops makes it of the PDF.
/// The same figure gives the same bytes. `provenance` (null: none) is in all but EPS. Throws Error where the family of type is not there, a
/// PNG would be too large, or there is no pdftops. Needs a QGuiApplication.
QByteArray figure_bytes(const Figure& figure, FigureFormat format, const Provenance* provenance);

/// With so many dots to an inch. Throws Error where it would be too large, or the family of type is not there.
QImage figure_image(const Figure& figure, double dpi);

/// As those eyes see it, as PNG of 150 dpi.
QByteArray figure_preview(const Figure& figure, FigureEyes eyes);

}  // namespace statescope
