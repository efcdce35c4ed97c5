#include "app/panels/side.h"

#include <QPushButton>
#include <QScrollArea>
#include <QToolButton>
#include <QVBoxLayout>

namespace statescope {
namespace {

constexpr auto about_text = QT_TRANSLATE_NOOP(
    "statescope::Side",
    "<p><b>Statescope %1</b></p>"
    "<p>A microscope for the memory of linear-attention language models: step through tokens and see which partition each one is routed "
    "to, which rows of the state it writes, what decays, and what a later query can still read back.</p>"
    "<p>Every number shown was computed from the checkpoint; nothing is drawn in between.</p>"
    "<p>Built on Qt %2 (LGPL), Dear ImGui (MIT), HDF5 and Eigen. The DejaVu fonts are free; their licence lies beside them.</p>");

/// What has no room is scrolled to, not squeezed.
QScrollArea* scrolled(QWidget* body, QWidget* parent) {
  auto* scroll = new QScrollArea(parent);
  scroll->setWidget(body);
  scroll->setWidgetResizable(true);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  scroll->setFocusPolicy(Qt::NoFocus);
  return scroll;
}

}  // namespace

Side::Side(Navigator& navigator, Actions& actions, QWidget* parent)
    : QStackedWidget(parent), inspector_(new Inspector(navigator, actions)), prompt_(new PromptPage(navigator)) {
  setObjectName("panel");
  addWidget(scrolled(inspector_, this));  // in the order of SidePage
  add_page(tr("Prompt"), prompt_, prompt_->read_button());
  auto* about = new QLabel(tr(about_text).arg(STATESCOPE_VERSION, QT_VERSION_STR));
  about->setWordWrap(true);
  about->setAlignment(Qt::AlignTop | Qt::AlignLeft);
  add_page(tr("About"), about);
}

void Side::add_page(const QString& title, QWidget* body, QWidget* foot) {
  auto* page = new QWidget(this);
  auto* layout = new QVBoxLayout(page);
  auto* heading = new QLabel(title, page);
  heading->setObjectName("question");
  auto* back = new QPushButton(tr("Back to the inspector"), page);
  back->setFocusPolicy(Qt::TabFocus);
  connect(back, &QPushButton::clicked, this, &Side::left);
  layout->addWidget(heading);
  layout->addWidget(scrolled(body, page), 1);
  auto* row = new QHBoxLayout;
  if (foot) row->addWidget(foot, 1);
  row->addWidget(back, foot ? 0 : 1);
  layout->addLayout(row);
  if (foot) setTabOrder(foot, back);
  page->setFocusProxy(body->focusProxy());
  addWidget(page);
}

void Side::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  usual_width_ = px(320);
  inspector_->set_frame(frame);
  prompt_->set_frame(frame);
  for (int i = 1; i < count(); ++i) {
    widget(i)->layout()->setContentsMargins(px(14), px(12), px(14), px(12));
    widget(i)->layout()->setSpacing(px(10));
  }
}

void Side::set_width(SideWidth width) {
  const int fixed = width == SideWidth::two_columns ? 2 * usual_width_ : usual_width_;
  setMinimumWidth(width == SideWidth::all ? 0 : fixed);
  setMaximumWidth(width == SideWidth::all ? QWIDGETSIZE_MAX : fixed);
}

void Side::show_page(SidePage page) {
  setCurrentIndex(static_cast<int>(page));
  if (page == SidePage::prompt) prompt_->fill();
  if (QWidget* first = currentWidget()->focusProxy()) first->setFocus(Qt::ShortcutFocusReason);
}

}  // namespace statescope
