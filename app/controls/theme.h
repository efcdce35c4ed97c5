// Qt's own widgets in the colours and sizes of the views, so that window and drawings are one.
#pragma once

#include <QColor>
#include <QFont>
#include <QIcon>
#include <QPalette>
#include <QString>

#include "views/view.h"

namespace statescope {

QColor to_qcolor(Color color);

/// Grounds, and the text on an accent, that the style sheet derives from a theme.
struct Shades {
  Color error, error_line, on_accent, select, hover;
};
Shades shades_of(const Theme& theme);

QPalette palette_of(const Theme& theme);
QString style_sheet_of(const Frame& frame);
/// What an empty field asks for, in the theme's faint ink: a style sheet would make it fainter. Call after the sheet was set.
void show_placeholders(QWidget& parent, const Theme& theme);

/// Style, fonts and icons; call once after the application object exists.
void set_up_application();

/// What the desktop asks for, as far as its palette tells; ask before setting one's own palette.
bool system_is_dark();

/// An icon of assets/icons in the theme's ink.
QIcon icon_of(const QString& name, const Theme& theme);

}  // namespace statescope
