#include "app/controls/theme.h"

#include <QApplication>
#include <QFile>
#include <QLineEdit>
#include <QPainter>
#include <QPlainTextEdit>
#include <QRegularExpression>
#include <QStyleFactory>
#include <QSvgRenderer>
#include <cmath>
#include <utility>

#include "views/colormaps.h"

// Outside the namespace, as the macro wants it.
static void load_assets() { Q_INIT_RESOURCE(assets); }

namespace statescope {
namespace {

constexpr int icon_px = 20;

QString rgb(Color color) {
  return QStringLiteral("#%1%2%3")
      .arg(color.r, 2, 16, QLatin1Char('0'))
      .arg(color.g, 2, 16, QLatin1Char('0'))
      .arg(color.b, 2, 16, QLatin1Char('0'));
}

QPixmap draw_icon(const QByteArray& svg, Color color) {
  QByteArray inked = svg;
  inked.replace("currentColor", rgb(color).toLatin1());
  QSvgRenderer renderer(inked);
  QPixmap pixmap(icon_px * 4, icon_px * 4);  // sharp at any scale of type and screen
  pixmap.fill(Qt::transparent);
  QPainter painter(&pixmap);
  renderer.render(&painter);
  return pixmap;
}

// @name is replaced by the theme's colour, n@ by n logical pixels at the scale of type.
constexpr const char* sheet = R"(
QWidget { color: @ink; background: transparent; font-size: 13@; }
QMainWindow, QDialog, #window { background: @ground; }
QMenuBar { background: @ground; padding: 2@ 8@; }
QMenuBar::item { padding: 4@ 9@; border-radius: 4@; }
QMenuBar::item:selected { background: @hover; }
QMenu { background: @panel; border: 1px solid @line; padding: 5@ 0; }
QMenu::item { padding: 5@ 28@ 5@ 26@; }
QMenu::item:selected { background: @hover; }
QMenu::item:disabled { color: @faint; }
QMenu::separator { height: 1px; background: @line; margin: 5@ 0; }
QMenu::indicator { width: 9@; height: 9@; margin-left: 9@; border-radius: 5@; }
QMenu::indicator:checked { background: @accent; }
QToolTip { background: @panel; color: @ink; border: 1px solid @line; padding: 5@ 7@; }
QStatusBar { background: @ground; color: @faint; }
QStatusBar QLabel { color: @faint; font-size: 12@; padding: 0 8@; }
QStatusBar::item { border: none; }

#panel { background: @panel; border: 1px solid @line; border-radius: 6@; }
#palette { background: @panel; border: 1px solid @accent; border-radius: 6@; }
#palette QListWidget { border: none; }
QListWidget#lessons::item { padding: 7@ 6@; border-bottom: 1px solid @line; }
QListWidget#lessons::item:selected { background: @select; color: @ink; }
QTreeWidget#shelf::item { padding: 3@ 6@; }
QTreeWidget#shelf::item:selected { background: @select; color: @ink; padding: 3@ 6@; border: none; }
#keys { font-family: "DejaVu Sans"; }
#blank { background: #000000; }
#dropping { border: 3px solid @accent; border-radius: 4px; }
#panel[focused="true"] { border: 1px solid @accent; }
#question { font-size: 14@; font-weight: bold; }
#faint, QLabel#faint { color: @faint; }
#small { color: @faint; font-size: 12@; }
#intervention-message { font-size: 12@; }
#heading { color: @faint; font-size: 11@; font-weight: bold; }
#model { font-size: 15@; font-weight: bold; }
#branch { color: @accent; border: 1px solid @accent; border-radius: 5@; padding: 1@ 6@; }
#prose { font-size: 14@; }
#caption { font-weight: bold; color: @accent; }
#choice { text-align: left; }
#choice:disabled { color: @faint; }
#choice:default { background: @accent; border-color: @accent; color: @onaccent; }
#pending { color: @faint; font-size: 12@; }
#rule { background: @line; max-height: 1px; min-height: 1px; }
#value { font-family: "DejaVu Sans Mono"; font-size: 14@; }
#error { background: @error; border: 1px solid @errorline; border-radius: 6@; }
#error QLabel { padding: 0 4@; }

QToolButton, QPushButton { background: transparent; border: 1px solid transparent; border-radius: 5@; padding: 4@ 7@; }
QPushButton { border-color: @line; padding: 5@ 13@; }
QToolButton:hover, QPushButton:hover { background: @hover; }
QToolButton:pressed, QPushButton:pressed { background: @line; }
QToolButton:focus, QPushButton:focus { border-color: @accent; }
QToolButton:disabled { color: @line; }
QPushButton:disabled { color: @faint; border-color: transparent; }
QToolButton::menu-indicator { image: none; width: 0; }
QPushButton:default { background: @accent; color: @onaccent; border-color: @accent; }
QPushButton:default:disabled { background: transparent; color: @faint; border-color: @line; }

QComboBox, QAbstractSpinBox, QPlainTextEdit, QLineEdit { background: @ground; border: 1px solid @line; border-radius: 5@; padding: 3@ 7@; min-height: 19@;
  selection-background-color: @accent; selection-color: @onaccent; }
QComboBox:hover, QAbstractSpinBox:hover { border-color: @faint; }
QComboBox:focus, QAbstractSpinBox:focus, QPlainTextEdit:focus, QLineEdit:focus { border-color: @accent; }
QComboBox:disabled, QAbstractSpinBox:disabled { color: @faint; }
QComboBox::drop-down { border: none; width: 20@; }
QComboBox::down-arrow { image: url(:/icons/@themedown.svg); width: 9@; height: 9@; }
QComboBox QAbstractItemView { background: @panel; border: 1px solid @line; selection-background-color: @hover; selection-color: @ink; outline: 0; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { width: 0; border: none; }

QCheckBox { spacing: 8@; padding: 2@; border: 1px solid transparent; border-radius: 4@; }
QCheckBox:focus { border-color: @accent; }
QCheckBox::indicator, QListView::indicator { width: 12@; height: 12@; border: 1px solid @faint; border-radius: 3@; background: @panel; }
QCheckBox::indicator:checked, QListView::indicator:checked { background: @accent; border-color: @accent; image: url(:/icons/@themecheck.svg); }

QSlider::groove:horizontal { height: 4@; border-radius: 2@; background: @line; }
QSlider::sub-page:horizontal { height: 4@; border-radius: 2@; background: @accent; }
QSlider::handle:horizontal { width: 14@; height: 14@; margin: -5@ 0; border-radius: 6@; background: @accent; border: none; }
QSlider::handle:horizontal:focus { background: @ink; }
QSlider:disabled { }
QSlider::sub-page:horizontal:disabled, QSlider::handle:horizontal:disabled { background: @line; }

QProgressBar { background: @line; border: none; border-radius: 2@; max-height: 4@; min-height: 4@; }
QProgressBar::chunk { background: @accent; border-radius: 2@; }

QTableView, QListWidget, QTreeWidget { background: @panel; border: 1px solid @line; border-radius: 5@; gridline-color: transparent; outline: 0; font-family: "DejaVu Sans Mono"; font-size: 12@;
  selection-background-color: @select; selection-color: @ink; }
QTableView:focus, QListWidget:focus, QTreeWidget:focus { border-color: @accent; }
QListWidget, QTreeWidget { font-family: "DejaVu Sans"; font-size: 13@; }
QTableView::item { padding: 1@ 6@; border: none; }
QTableView#keys::item { padding: 0; }
QHeaderView { background: @panel; }
QHeaderView::section { background: @panel; color: @faint; border: none; border-bottom: 1px solid @line; padding: 4@ 6@; font-size: 12@; font-weight: normal; }
QAbstractScrollArea::corner { background: transparent; border: none; }
QTableCornerButton::section { background: @panel; border: none; }

QSplitter::handle { background: transparent; }
QSplitter::handle:hover { background: @line; }
QScrollArea { border: none; }
QScrollBar:vertical { width: 10@; margin: 1@; } QScrollBar:horizontal { height: 10@; margin: 1@; }
QScrollBar::handle { background: @line; border-radius: 4@; min-height: 24@; min-width: 24@; }
QScrollBar::handle:hover { background: @faint; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
)";

QString scaled_lengths(const QString& text, float scale) {
  static const QRegularExpression length(QStringLiteral(R"((-?\d+)@(?![a-z]))"));
  QString result;
  qsizetype at = 0;
  for (auto matches = length.globalMatch(text); matches.hasNext();) {
    const QRegularExpressionMatch match = matches.next();
    result +=
        text.mid(at, match.capturedStart() - at) + QString::number(std::lround(match.captured(1).toFloat() * scale)) + QStringLiteral("px");
    at = match.capturedEnd();
  }
  return result + text.mid(at);
}

}  // namespace

QColor to_qcolor(Color color) { return {color.r, color.g, color.b, color.a}; }

Shades shades_of(const Theme& theme) {
  constexpr Color vermilion{213, 94, 0};
  return {.error = over(faded(vermilion, 0.14f), theme.panel),
          .error_line = vermilion,
          .on_accent = theme.dark ? theme.ground : theme.panel,
          .select = over(faded(theme.accent, theme.dark ? 0.3f : 0.18f), theme.panel),
          .hover = over(faded(theme.ink, 0.08f), theme.panel)};
}

QPalette palette_of(const Theme& theme) {
  QPalette palette;
  const QColor ink = to_qcolor(theme.ink), faint = to_qcolor(theme.faint), panel = to_qcolor(theme.panel), ground = to_qcolor(theme.ground);
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::ToolTipText}) palette.setColor(role, ink);
  for (const auto role : {QPalette::Base, QPalette::AlternateBase, QPalette::ToolTipBase}) palette.setColor(role, panel);
  for (const auto role : {QPalette::Window, QPalette::Button}) palette.setColor(role, ground);
  palette.setColor(QPalette::PlaceholderText, faint);
  palette.setColor(QPalette::Highlight, to_qcolor(theme.accent));
  palette.setColor(QPalette::HighlightedText, to_qcolor(shades_of(theme).on_accent));
  palette.setColor(QPalette::Link, to_qcolor(theme.accent));
  for (const auto role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) palette.setColor(QPalette::Disabled, role, faint);
  return palette;
}

void show_placeholders(QWidget& parent, const Theme& theme) {
  const auto ink = [&theme](QWidget* edit) {
    QPalette palette = edit->palette();
    palette.setColor(QPalette::PlaceholderText, to_qcolor(theme.faint));
    edit->setPalette(palette);
  };
  for (QLineEdit* edit : parent.findChildren<QLineEdit*>()) ink(edit);
  for (QPlainTextEdit* edit : parent.findChildren<QPlainTextEdit*>()) ink(edit);
}

QString style_sheet_of(const Frame& frame) {
  const Theme& theme = frame.theme;
  const Shades shades = shades_of(theme);
  const std::pair<const char*, QString> words[] = {
      {"@errorline", rgb(shades.error_line)},
      {"@error", rgb(shades.error)},
      {"@onaccent", rgb(shades.on_accent)},
      {"@accent", rgb(theme.accent)},
      {"@select", rgb(shades.select)},
      {"@hover", rgb(shades.hover)},
      {"@themecheck", theme.dark ? QStringLiteral("check-dark") : QStringLiteral("check-light")},
      {"@themedown", theme.dark ? QStringLiteral("down-dark") : QStringLiteral("down-light")},
      {"@ground", rgb(theme.ground)},
      {"@panel", rgb(theme.panel)},
      {"@faint", rgb(theme.faint)},
      {"@line", rgb(theme.line)},
      {"@ink", rgb(theme.ink)},
  };
  QString text = scaled_lengths(QString::fromLatin1(sheet), frame.scale);
  for (const auto& [name, value] : words) text.replace(QLatin1String(name), value);
  return text;
}

void set_up_application() {
  load_assets();
  QLocale::setDefault(QLocale::c());  // fields write numbers as everything else does, whatever the desktop's language
  QApplication::setStyle(QStyleFactory::create("Fusion"));
  QApplication::setApplicationName("Statescope");
  QApplication::setDesktopFileName("org.statescope.Statescope");
  QApplication::setWindowIcon(QIcon(":/icons/statescope.svg"));
}

bool system_is_dark() { return QApplication::palette().color(QPalette::Window).lightness() < 128; }

QIcon icon_of(const QString& name, const Theme& theme) {
  QFile file(QStringLiteral(":/icons/%1.svg").arg(name));
  if (!file.open(QIODevice::ReadOnly)) return {};
  const QByteArray svg = file.readAll();
  QIcon icon(draw_icon(svg, theme.ink));
  icon.addPixmap(draw_icon(svg, theme.line), QIcon::Disabled);
  return icon;
}

}  // namespace statescope
