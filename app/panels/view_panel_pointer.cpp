// What the pointer does in a view's panel, choose, hover and drag; and the keys that stand in for it.
#include <QApplication>
#include <QMouseEvent>
#include <QStyle>
#include <QToolTip>
#include <algorithm>
#include <utility>

#include "app/panels/view_panel.h"

namespace statescope {
namespace {

Point to_point(QPointF at) { return {static_cast<float>(at.x()), static_cast<float>(at.y())}; }

}  // namespace

void ViewPanel::choose(QPointF at, bool dragging) {
  const auto hit = surface_->hits().at(to_point(at));
  if (hit && !(dragging && view_->example(*hit))) choose_hit(*hit);
}

void ViewPanel::choose_hit(const Hit& hit) {
  const std::optional<NeedleExample> example = view_->example(hit);
  view_->set_mark(hit);
  surface_->widget()->update();
  describe();
  navigator_.move(view_->on_hit(hit));
  if (example) Q_EMIT example_chosen(*example);
}

bool ViewPanel::step_mark(std::int64_t rows, std::int64_t columns) {
  if (!view_->step_mark(rows, columns)) return false;
  surface_->widget()->update();
  describe();
  return true;
}

void ViewPanel::choose_marked() {
  if (const auto marked = view_->marked()) choose_hit(*marked);
}

QString ViewPanel::words_at(const std::optional<Hit>& hit) const {
  return QString::fromStdString(hit ? view_->tooltip(*hit) : reading_of(view_->sheets()));
}

QString ViewPanel::value_at(const std::optional<Hit>& hit) const { return QString::fromStdString(view_->value(hit)); }

/// The place is chosen, so that the menu's commands are about it.
void ViewPanel::open_menu(QPointF at, QPoint global) {
  const auto hit = surface_->hits().at(to_point(at));
  QToolTip::hideText();
  if (hit) {
    view_->set_mark(*hit);
    surface_->widget()->update();
    describe();
    navigator_.move(view_->on_hit(*hit));
  }
  Q_EMIT menu_wanted(hit, global);
}

void ViewPanel::ask_for_menu() {
  QWidget& widget = *surface_->widget();
  Q_EMIT menu_wanted(view_->marked(), widget.mapToGlobal(QPoint(widget.width() / 3, widget.height() / 3)));
}

void ViewPanel::hover(QPointF at, QPoint global) {
  const auto hit = surface_->hits().at(to_point(at));
  const QString words = hit ? QString::fromStdString(view_->tooltip(*hit)) : QString();
  if (words.isEmpty())
    QToolTip::hideText();
  else
    QToolTip::showText(global, words, surface_->widget());
  tip_ = words.isEmpty() ? std::nullopt : std::optional(navigator_.cursor());
  if (!hit) return;
  const CursorMove cell = view_->on_hit(*hit);
  const bool is_cell = cell.row.value_or(-1) >= 0 && cell.column.value_or(-1) >= 0;
  if (is_cell && cell.slot.value_or(navigator_.cursor().slot) == navigator_.cursor().slot) navigator_.point_at(*cell.row, *cell.column);
}

/// A tooltip's numbers are those of one token, layer and head.
void ViewPanel::hide_stale_tip() {
  const Cursor& at = navigator_.cursor();
  if (!tip_ || (tip_->token == at.token && tip_->layer == at.layer && tip_->head == at.head)) return;
  tip_.reset();
  QToolTip::hideText();
}

/// By its words or what is free beside them.
void ViewPanel::drag_title(const QMouseEvent& mouse) {
  const bool inside = window()->rect().contains(window()->mapFromGlobal(mouse.globalPosition().toPoint()));
  if (mouse.type() == QEvent::MouseButtonPress) {
    drag_ = mouse.position();
  } else if (mouse.type() == QEvent::MouseMove && !drags_title_) {
    drags_title_ = (mouse.position() - drag_).manhattanLength() >= QApplication::startDragDistance();
    if (!drags_title_) return;
    head_->setCursor(Qt::ClosedHandCursor);
    Q_EMIT spoke(tr("Let go outside this window, the view gets a window of its own"));
  } else if (mouse.type() == QEvent::MouseButtonRelease) {
    head_->unsetCursor();
    if (std::exchange(drags_title_, false) && !inside) Q_EMIT torn_off(mouse.globalPosition().toPoint());
  }
}

/// What lies between the fingers stays there.
void ViewPanel::pinch(const QPinchGesture& fingers) {
  pinches_ = fingers.state() == Qt::GestureStarted || fingers.state() == Qt::GestureUpdated;
  const QPointF at = surface_->widget()->mapFromGlobal(fingers.centerPoint());
  if (fingers.changeFlags() & QPinchGesture::ScaleFactorChanged) zoom_at(static_cast<float>(fingers.scaleFactor()), at);
  if (fingers.changeFlags() & QPinchGesture::CenterPointChanged && zoom() > 1)
    move_drawing(fingers.centerPoint() - fingers.lastCenterPoint());
}

bool ViewPanel::eventFilter(QObject* watched, QEvent* event) {
  if (watched == head_ &&
      (event->type() == QEvent::MouseButtonPress || event->type() == QEvent::MouseMove || event->type() == QEvent::MouseButtonRelease)) {
    const auto& mouse = *static_cast<QMouseEvent*>(event);
    if ((mouse.button() | mouse.buttons()) & Qt::LeftButton) drag_title(mouse);
    return event->type() != QEvent::MouseButtonPress;  // which brings the keyboard here, too
  }
  if (!surface_ || watched != surface_->widget()) return QFrame::eventFilter(watched, event);
  const auto mark_focus = [this](bool focus) {
    setProperty("focused", focus);
    style()->polish(this);
  };
  switch (event->type()) {
    case QEvent::FocusIn:
      mark_focus(true);
      Q_EMIT focused();
      break;
    case QEvent::FocusOut:
      mark_focus(false);
      break;
    case QEvent::MouseButtonPress: {
      auto* mouse = static_cast<QMouseEvent*>(event);
      drag_ = mouse->position();
      menu_is_due_ = mouse->button() == Qt::RightButton;
      if (mouse->button() == Qt::LeftButton) choose(drag_, false);
      break;
    }
    case QEvent::MouseButtonRelease: {
      auto* mouse = static_cast<QMouseEvent*>(event);
      if (mouse->button() == Qt::RightButton && std::exchange(menu_is_due_, false))
        open_menu(mouse->position(), mouse->globalPosition().toPoint());
      break;
    }
    case QEvent::ContextMenu:  // the button opens it when it is let go, the keys by their command
      return true;
    case QEvent::MouseMove: {
      auto* mouse = static_cast<QMouseEvent*>(event);
      if (pinches_) {  // the first of the fingers
        drag_ = mouse->position();
        break;
      }
      if (menu_is_due_ && (mouse->position() - drag_).manhattanLength() < QApplication::startDragDistance()) break;
      menu_is_due_ = false;
      if (mouse->buttons() & (Qt::MiddleButton | Qt::RightButton | Qt::LeftButton))
        drag(mouse->position(), mouse->buttons());
      else
        hover(mouse->position(), mouse->globalPosition().toPoint());
      break;
    }
    case QEvent::KeyPress: {
      const int key = static_cast<QKeyEvent*>(event)->key();
      if ((key != Qt::Key_Return && key != Qt::Key_Enter) || !view_->marked()) break;
      choose_marked();
      return true;
    }
    case QEvent::MouseButtonDblClick:
      if (static_cast<QMouseEvent*>(event)->button() != Qt::LeftButton || zoom() <= 1) break;
      fit();
      return true;
    case QEvent::Gesture: {
      const auto* fingers = static_cast<QPinchGesture*>(static_cast<QGestureEvent*>(event)->gesture(Qt::PinchGesture));
      if (!fingers) break;
      pinch(*fingers);
      return true;
    }
    case QEvent::NativeGesture: {
      const auto* gesture = static_cast<QNativeGestureEvent*>(event);
      if (gesture->gestureType() != Qt::ZoomNativeGesture) break;
      zoom_at(static_cast<float>(1 + gesture->value()), gesture->position());
      return true;
    }
    case QEvent::Wheel:
      turn_wheel(*static_cast<QWheelEvent*>(event));
      return true;
    default:
      break;
  }
  return QFrame::eventFilter(watched, event);
}

}  // namespace statescope
