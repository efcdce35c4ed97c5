// How the window looks: its place on the screen, theme, size of the type, what folds away where there is no room, presenting.
#include <QApplication>
#include <QMenuBar>
#include <QPainter>
#include <QStatusBar>
#include <algorithm>
#include <cmath>

#include "app/canvas/paper_canvas.h"
#include "app/controls/theme.h"
#include "app/lesson/lesson_page.h"
#include "app/lesson/teacher_window.h"
#include "app/pages/key_page.h"
#include "app/pages/training_page.h"
#include "app/panels/find_bar.h"
#include "app/panels/view_window.h"
#include "app/start/start_page.h"
#include "app/window/main_window.h"
#include "app/window/preferences_page.h"
#include "app/window/window_place.h"

namespace statescope {
namespace {

constexpr QSize least_size{640, 400}, preferred_size{1440, 900};

// Of the window, at 1×: below these, things fold away.
constexpr float least_width_with_side = 900, least_width_with_wide_side = 1200;
constexpr float least_width_with_lesson = 720, lesson_width = 480;  // the last with its share of the stage
constexpr float presenting_enlarges = 1.5f, scale_step = 0.05f;     // the type
constexpr float enough = 0.75f;                                     // of the room that is good for a lesson's views
constexpr float high = 680, low = 480, very_low = 400, least_with_transport = 320;
constexpr float one_line_high = 96, two_lines_high = 172, transport_height = 40, find_height = 36, lane = 22;  // of the text
constexpr float lesson_text_width = 360, least_lesson_text_width = 240, presented_lesson_share = 0.225f;       // of the window
constexpr float title_line = 24;                                                                               // of a view
constexpr float header_height = 36, gap = 8, presenter_pointer = 40;

}  // namespace

/// In pixels. Presenting, larger type has shorter lines, so that the pictures do not become smaller.
float MainWindow::lesson_text(float scale) const {
  const float usual = lesson_text_width * scale;
  if (!presenting_) return usual;
  return std::max(least_lesson_text_width * scale, std::min(usual, presented_lesson_share * static_cast<float>(width())));
}

/// At this scale, where there is only one line of the text: for the models beside each other, while presenting.
QSizeF MainWindow::room_for_views(float scale) const {
  const float lesson = lessons_wanted_ ? lesson_text(scale) + gap * scale : 0, header = comparison_->is_on() ? header_height + gap : 0;
  const float strip = one_line_high + transport_height + lane * static_cast<float>(comparison_->peers().size());
  return QSizeF(size()) - QSizeF(2 * gap * scale + lesson, (gap + header + strip) * scale);
}

/// That the views had before presenting, with its menu, status line and more lines of the text.
QSizeF MainWindow::room_before_presenting() const {
  const float lesson = lessons_wanted_ ? lesson_text_width + gap : 0;
  const auto further_lanes = lane * static_cast<float>(comparison_->peers().size());
  const float strip = (lesson_->lesson() ? one_line_high + further_lanes : two_lines_high) + transport_height;
  const int bars = menuBar()->sizeHint().height() + statusBar()->sizeHint().height();
  return QSizeF(size()) - QSizeF((2 * gap + lesson) * scale_, (2 * gap + header_height + strip) * scale_ + static_cast<float>(bars));
}

/// Whether models beside each other have larger drawings at this scale than before presenting, though what is said above them is larger,
/// too, and may need a second line.
bool MainWindow::pictures_grow(float scale) const {
  const auto area = [](const QSizeF& room, float title) { return room.width() * (room.height() - static_cast<double>(title)); };
  return area(room_for_views(scale), 2 * title_line * scale) >= area(room_before_presenting(), title_line * scale_);
}

/// Whether a lesson's pictures, else the views of the stage, have room at this scale: `part` of what is good for them.
bool MainWindow::views_fit(float scale, float part) const {
  const QSizeF room = room_for_views(scale);
  const auto fits = [&](std::size_t models, std::size_t views) { return ModelRows::fit_of(room, models, views, scale) >= part; };
  if (lesson_->lesson())
    return std::ranges::all_of(lesson_->crowds(), [&](const LessonPlayer::Crowd& crowd) { return fits(crowd.models, crowd.views); });
  return fits(1 + comparison_->peers().size() + (rows_->difference() ? 1 : 0), stage_->panels().size());
}

/// Of type and spacing. Presenting, it is as large as the views leave room for; those that a lesson names have room in any case.
float MainWindow::fitting_scale() const {
  if (!presenting_) return scale_;
  const float least = lesson_->lesson() ? 1.0f : scale_, most = std::min(scale_ * presenting_enlarges, 3.0f);
  for (int step = 0;; ++step) {
    const float scale = most - static_cast<float>(step) * scale_step;
    if (scale <= least) return least;
    if (views_fit(scale, 1) && (!comparison_->is_on() || pictures_grow(scale))) return scale;
  }
}

void MainWindow::set_theme(ThemeChoice choice) {
  theme_ = choice;
  remember("theme", static_cast<int>(choice));
  apply_look();
}

void MainWindow::set_scale(float scale) {
  scale_ = std::clamp(scale, 1.0f, 3.0f);
  remember("scale", scale_);
  apply_look();
}

void MainWindow::set_reduce_motion(bool reduce) {
  reduce_motion_ = reduce;
  remember("reduce-motion", reduce);
  navigator_->set_reduce_motion(reduce);
}

void MainWindow::set_autoplay(bool autoplay) {
  autoplay_ = autoplay;
  remember("autoplay", autoplay);
  navigator_->set_autoplay(autoplay);
}

void MainWindow::apply_look() {
  const bool dark = theme_ == ThemeChoice::dark || (theme_ == ThemeChoice::system && system_is_dark_);
  frame_.theme = theme_ == ThemeChoice::high_contrast ? high_contrast_theme() : dark ? dark_theme() : light_theme();
  frame_.scale = fitting_scale();
  frame_.shown.hints = !presenting_;
  frame_.shown.fills = presenting_;
  qApp->setPalette(palette_of(frame_.theme));
  qApp->setFont(paper_font({.size = 13 * frame_.scale, .color = frame_.theme.ink}));
  qApp->setStyleSheet(style_sheet_of(frame_));
  show_placeholders(*this, frame_.theme);
  for (const char* id : {"first", "last", "play"}) action(id)->setIcon(icon_of(id, frame_.theme));
  action("previous")->setIcon(icon_of("back", frame_.theme));
  action("next")->setIcon(icon_of("forward", frame_.theme));
  action("side")->setIcon(icon_of("side", frame_.theme));
  action("cancel")->setIcon(icon_of("close", frame_.theme));
  header_->set_frame(frame_);
  error_->set_frame(frame_);
  rows_->set_frame(frame_);
  side_->set_frame(frame_);
  lesson_page_->set_frame(frame_);
  teacher_->set_frame(frame_);
  start_->set_frame(frame_);
  strip_->set_frame(frame_);
  for (ViewWindow* window : apart_) window->panel().set_frame(frame_);
  find_->set_frame(frame_);
  transport_->set_frame(frame_);
  keys_->set_frame(frame_);
  training_->set_frame(frame_);
  palette_->set_frame(frame_);
  const int space = static_cast<int>(std::lround(gap * frame_.scale));
  for (QLayout* layout : gaps_) layout->setSpacing(space);
  centralWidget()->layout()->setContentsMargins(space, 0, space, 0);
  presenting_ ? setCursor(pointer_of_presenter()) : unsetCursor();
  actions_->update_ticks();
  preferences_->refresh();
  fold();
}

void MainWindow::fold() {
  if (fitting_scale() != frame_.scale) return apply_look();
  const float columns = static_cast<float>(width()) / frame_.scale, lines = static_cast<float>(height()) / frame_.scale;
  const bool was_shown = side_->isVisibleTo(this);
  const bool lesson_beside = lessons_wanted_ && columns >= least_width_with_lesson;
  const bool room = columns >= least_width_with_side + (lesson_beside ? lesson_width : 0);
  const bool asked = side_->page() != SidePage::inspector;  // then the stage gives way
  side_->setVisible(side_wanted_ && !presenting_ && (room || asked));
  const bool wide = side_->page() == SidePage::figure || side_->page() == SidePage::training;
  const bool two_columns = wide && columns >= least_width_with_wide_side + (lesson_beside ? lesson_width : 0);
  side_->set_width(!room ? SideWidth::all : two_columns ? SideWidth::two_columns : SideWidth::usual);
  const bool side_alone = side_->isVisibleTo(this) && !room;
  lesson_page_->setVisible(lessons_wanted_ && (lesson_beside || !side_alone));
  lesson_page_->set_room(lesson_beside ? std::optional(static_cast<int>(lesson_text(frame_.scale))) : std::nullopt, lines < very_low);
  work_->setDirection(lesson_beside ? QBoxLayout::LeftToRight : QBoxLayout::TopToBottom);
  work_->setStretch(0, lesson_beside ? 0 : 1);
  work_->setStretch(1, lesson_beside ? 1 : 0);
  lesson_page_->set_slides(presenting_ && teacher_is_shown());
  rows_->setVisible(!side_alone && (lesson_beside || !lessons_wanted_));
  menuBar()->setVisible(!presenting_ && !lesson_->hides(Hideable::menu));
  statusBar()->setVisible((!presenting_ || !said_->text().isEmpty()) && lines >= low && !lesson_->hides(Hideable::status));
  const bool starts = pages_->currentIndex() == 0;
  const bool header = !starts && lines >= low && !lesson_->hides(Hideable::header) && (!presenting_ || comparison_->is_on());
  header_->setVisible(header || navigator_->is_opening());
  const bool moves = lines >= least_with_transport;
  transport_->setVisible(moves && !lesson_->hides(Hideable::transport));
  rows_->set_titles_shown(lines >= very_low);
  rows_->set_all_shown(presenting_ || (lesson_->lesson() && views_fit(frame_.scale, enough)));
  const float further_lanes = lines < very_low ? 0 : lane * static_cast<float>(comparison_->peers().size());
  const bool short_of_lines = lines < high || presenting_ || (lesson_->lesson() && comparison_->is_on());
  const float strip = (short_of_lines ? one_line_high + further_lanes : two_lines_high) + (moves ? transport_height : 0) +
                      (find_->isHidden() ? 0 : find_height);
  strip_->setFixedHeight(static_cast<int>(strip * frame_.scale));
  if (!was_shown) show_table();
}

void MainWindow::toggle_side() {
  side_wanted_ = !side_wanted_;
  fold();
}

void MainWindow::take_place(const QRect& available) {
  setMinimumSize(least_size.boundedTo(available.size()));
  if (settings_ && restoreGeometry(settings_->value("geometry").toByteArray())) return;
  const WindowPlace place = first_place(available, preferred_size);
  setGeometry(place.rect);
  if (place.maximised) setWindowState(windowState() | Qt::WindowMaximized);
}

/// Whether the window is maximised stays as it is.
void MainWindow::toggle_presenter() {
  if (!presenting_) {
    place_before_presenting_ = saveGeometry();
    go_to_second_screen();
  }
  presenting_ = !presenting_;
  setWindowState(windowState().setFlag(Qt::WindowFullScreen, presenting_));
  if (!presenting_ && teacher_is_shown()) restoreGeometry(place_before_presenting_);
  blank_->hide();
  apply_look();
}

/// What the pointer looks like to a class in the last row: a ring, through which what it points at is seen.
QCursor MainWindow::pointer_of_presenter() const {
  const float ring = presenter_pointer * frame_.scale, ink = ring / 10;
  const qreal ratio = devicePixelRatioF();
  QPixmap picture(QSizeF(ring * ratio, ring * ratio).toSize());
  picture.setDevicePixelRatio(ratio);
  picture.fill(Qt::transparent);
  QPainter painter(&picture);
  painter.setRenderHint(QPainter::Antialiasing);
  const QRectF round = QRectF(0, 0, ring, ring).adjusted(ink, ink, -ink, -ink);
  for (const auto& [color, width] : {std::pair(frame_.theme.panel, 2 * ink), std::pair(frame_.theme.accent, ink)}) {
    painter.setPen(QPen(to_qcolor(color), width));
    painter.drawEllipse(round);
  }
  painter.end();
  return QCursor(picture);
}

void MainWindow::begin_presenting() {
  if (!presenting_) toggle_presenter();
}

void MainWindow::press_b() { presenting_ ? toggle_blank() : playback_->toggle_here(); }
void MainWindow::press_period() { presenting_ ? toggle_blank() : step_speed(1); }

void MainWindow::toggle_blank() {
  blank_->setGeometry(centralWidget()->rect());
  blank_->setVisible(!blank_->isVisible());
  blank_->raise();
}

}  // namespace statescope
