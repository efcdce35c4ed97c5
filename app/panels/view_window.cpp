#include "app/panels/view_window.h"

#include <QCloseEvent>
#include <QGuiApplication>
#include <QScreen>
#include <QVBoxLayout>
#include <algorithm>

namespace statescope {
namespace {

constexpr QSize first_size{720, 560}, least_size{320, 240};
constexpr QPoint beside{48, 48};

}  // namespace

ViewWindow::ViewWindow(const ViewPanel& of, Navigator& navigator, bool opengl, const QList<QAction*>& actions, const QList<QAction*>& own,
                       QWidget* owner)
    : QWidget(owner, Qt::Window), panel_(new ViewPanel(navigator, of.row(), opengl, true, this)) {
  setObjectName("window");
  setAttribute(Qt::WA_StyledBackground);
  setMinimumSize(least_size);
  resize(first_size);
  addActions(actions);
  auto* layout = new QVBoxLayout(this);
  layout->addWidget(panel_);
  panel_->add_actions(own);
  panel_->take_look(of);
  connect(panel_, &ViewPanel::look_changed, this, &ViewWindow::show_title);
  show_title();
}

void ViewWindow::show_title() {
  const QString title = view_words(panel_->row().title);
  setAccessibleName(title);
  setWindowTitle(tr("%1 – Statescope").arg(title));
}

void ViewWindow::take_place(const QWidget& owner) {
  const QList<QScreen*> screens = QGuiApplication::screens();
  const auto other = std::ranges::find_if(screens, [&](const QScreen* screen) { return screen != owner.screen(); });
  QRect place({}, first_size);
  if (other != screens.end())
    place.moveCenter((*other)->availableGeometry().center());
  else
    place.moveCenter(owner.geometry().center() + beside);
  setGeometry(place);
}

void ViewWindow::closeEvent(QCloseEvent* event) {
  QWidget::closeEvent(event);
  Q_EMIT closed();
}

}  // namespace statescope
