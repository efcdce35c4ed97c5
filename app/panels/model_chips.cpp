#include "app/panels/model_chips.h"

#include <QMenu>
#include <QPainter>
#include <algorithm>

#include "app/canvas/paper_canvas.h"
#include "app/controls/theme.h"
#include "views/colormaps.h"

namespace statescope {
namespace {

/// A square and the gap behind it.
QSize icon_size(const Frame& frame) { return {static_cast<int>(24 * frame.scale), static_cast<int>(18 * frame.scale)}; }

QIcon letter_icon(QChar letter, const Frame& frame) {
  const Color fill = identity_color(letter.unicode() - u'A' + 1, frame.theme);
  QPixmap pixmap(icon_size(frame));
  pixmap.fill(Qt::transparent);
  const QRect square(0, 0, pixmap.height(), pixmap.height());
  QPainter painter(&pixmap);
  painter.fillRect(square, to_qcolor(fill));
  painter.setFont(paper_font({.size = 13 * frame.scale, .bold = true}));
  painter.setPen(to_qcolor(readable_on(fill)));
  painter.drawText(square, Qt::AlignCenter, letter);
  return pixmap;
}

}  // namespace

QString answer_words(const RunInfo& run) {
  const AnswerState answer = answer_state(run);
  return answer == AnswerState::right ? ModelChips::tr("✓ right") : answer == AnswerState::wrong ? ModelChips::tr("✗ wrong") : QString();
}

ModelChips::ModelChips(Navigator& leader, Comparison& comparison, QWidget* parent)
    : QWidget(parent), leader_(leader), comparison_(comparison), layout_(new QHBoxLayout(this)) {
  layout_->setContentsMargins(0, 0, 0, 0);
  layout_->addStretch(1);
  connect(&comparison_, &Comparison::changed, this, &ModelChips::update_words);
  for (const auto signal : {&Navigator::run_changed, &Navigator::opening_ended}) connect(&leader_, signal, this, &ModelChips::update_words);
  update_words();
}

QToolButton* ModelChips::make_chip(const PeerRun* peer) {
  auto* chip = new QToolButton(this);
  chip->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  chip->setFocusPolicy(Qt::TabFocus);
  chip->setSizePolicy(QSizePolicy::Maximum, QSizePolicy::Preferred);
  chip->setPopupMode(QToolButton::InstantPopup);
  chip->setMenu(new QMenu(chip));
  connect(chip->menu()->addAction(tr("Go to %1").arg(peer ? peer->letter() : "A")), &QAction::triggered, this,
          [this, peer] { Q_EMIT chosen(peer); });
  if (!peer) {
    connect(chip->menu()->addAction(tr("Stop comparing")), &QAction::triggered, &comparison_, &Comparison::stop);
    return chip;
  }
  connect(chip->menu()->addAction(tr("Compare A with %1").arg(peer->letter())), &QAction::triggered, this, [this, peer] {
    const auto found = std::ranges::find(comparison_.peers(), peer, &std::unique_ptr<PeerRun>::get);
    comparison_.choose(**found);
  });
  connect(chip->menu()->addAction(tr("Close %1").arg(peer->letter())), &QAction::triggered, this,
          [this, peer] { comparison_.remove(*peer); });
  return chip;
}

/// Anew where other models are compared.
void ModelChips::make() {
  std::vector<const PeerRun*> peers;
  for (const auto& peer : comparison_.peers()) peers.push_back(peer.get());
  if (peers == made_of_) return;
  for (QToolButton* chip : chips_) {
    chip->hide();
    chip->deleteLater();  // its menu may be open
  }
  chips_.clear();
  if (!peers.empty()) chips_.push_back(make_chip(nullptr));
  for (const PeerRun* peer : peers) chips_.push_back(make_chip(peer));
  for (std::size_t i = 0; i < chips_.size(); ++i) layout_->insertWidget(static_cast<int>(i), chips_[i]);
  made_of_ = std::move(peers);
  set_frame(frame_);
}

void ModelChips::set_answers_told(bool told) {
  answers_told_ = told;
  update_words();
}

ModelChips::Words ModelChips::words_of(const QString& name, const Navigator& navigator, const QString& doing,
                                       const QString& problem) const {
  const RunInfo* run = navigator.run().get();
  QStringList words{name}, all{name};
  if (run) {
    const QString device = QString::fromStdString(run->model.device);
    words.push_back(device.section(',', 0, 0));
    all << QString::fromStdString(run->model.family) << device;
  }
  const QString answer = run && answers_told_ ? answer_words(*run) : QString();
  const QString state = !problem.isEmpty() ? tr("failed") : !doing.isEmpty() ? doing : answer;
  for (QStringList* list : {&words, &all})
    if (!state.isEmpty()) list->push_back(state);
  if (!problem.isEmpty()) all.push_back(problem);
  return {words.join(QStringLiteral(" · ")), all.join(QStringLiteral("\n"))};
}

void ModelChips::update_words() {
  make();
  for (std::size_t i = 0; i < chips_.size(); ++i) {
    const PeerRun* peer = i > 0 ? made_of_[i - 1] : nullptr;
    const QString own_name = leader_.run() ? QString::fromStdString(leader_.run()->model.name) : QString();
    Words words = peer ? words_of(peer->name(), peer->navigator(), peer->doing(), peer->problem()) : words_of(own_name, leader_, {}, {});
    if (peer && !peer->note().isEmpty()) words.all += '\n' + peer->note();
    if (peer && peer == comparison_.chosen()) words.all += '\n' + tr("A is compared with it");
    const QString letter = peer ? peer->letter() : QStringLiteral("A");
    chips_[i]->setText(words.text);
    chips_[i]->setToolTip(words.all);
    chips_[i]->setAccessibleName(tr("Model %1: %2").arg(letter, words.text));
    chips_[i]->setAccessibleDescription(words.all);
  }
}

void ModelChips::set_frame(const Frame& frame) {
  frame_ = frame;
  layout_->setSpacing(static_cast<int>(6 * frame.scale));
  for (std::size_t i = 0; i < chips_.size(); ++i) {
    chips_[i]->setIcon(letter_icon(i > 0 ? made_of_[i - 1]->letter().at(0) : QChar('A'), frame));
    chips_[i]->setIconSize(icon_size(frame));
    chips_[i]->setMinimumWidth(2 * icon_size(frame).height());
  }
}

}  // namespace statescope
