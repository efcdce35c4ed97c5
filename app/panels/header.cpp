#include "app/panels/header.h"

#include <QAccessible>
#include <QAction>
#include <QHBoxLayout>
#include <QLocale>

#include "app/common/plain_words.h"
#include "app/controls/theme.h"
#include "app/runs/interventions.h"

namespace statescope {
namespace {

QString parameters_text(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  if (count >= 1e9) return Header::tr("%1 B parameters").arg(count / 1e9, 0, 'f', 1);
  if (count >= 1e6) return Header::tr("%1 M parameters").arg(count / 1e6, 0, 'f', 1);
  return Header::tr("%1 k parameters").arg(count / 1e3, 0, 'f', 0);
}

QString size_text(std::int64_t bytes) { return QLocale().formattedDataSize(bytes, 1, QLocale::DataSizeSIFormat); }

QToolButton* make_button(QAction* action, QWidget* parent) {
  auto* button = new QToolButton(parent);
  button->setDefaultAction(action);
  button->setToolButtonStyle(Qt::ToolButtonIconOnly);
  button->setFocusPolicy(Qt::TabFocus);
  button->setAccessibleName(action->text());
  return button;
}

/// Words that lead to the page of the model.
QToolButton* make_chip(QAction* about, QWidget* parent) {
  auto* chip = new QToolButton(parent);
  chip->setObjectName("small");
  chip->setFocusPolicy(Qt::TabFocus);
  QObject::connect(chip, &QToolButton::clicked, about, &QAction::trigger);
  chip->hide();
  return chip;
}

void show_chip(QToolButton& chip, const QString& words, const QString& more) {
  chip.setText(words);
  chip.setToolTip(more);
  chip.setAccessibleName(words);
  chip.setAccessibleDescription(more);
  chip.setVisible(!more.isEmpty());
}

}  // namespace

QString recording_words(const RecordingInfo& recording) {
  const bool on_device = recording.host_budget > 0;
  const QString here = on_device ? Header::tr("the recording takes %1 of at most %2 of the device's memory")
                                 : Header::tr("the recording takes %1 of at most %2 of memory");
  QStringList words{Header::tr("Keyframe every %1 tokens").arg(recording.keyframe_interval),
                    here.arg(size_text(recording.memory), size_text(recording.memory_budget))};
  if (on_device)
    words.push_back(Header::tr("%1 of at most %2 of the host's memory").arg(size_text(recording.host), size_text(recording.host_budget)));
  if (recording.file > 0) words.push_back(Header::tr("%1 in a file").arg(size_text(recording.file)));
  return words.join(QStringLiteral("; "));
}

Header::Header(Navigator& navigator, Comparison& comparison, QAction* side, QAction* cancel, QAction* about, QWidget* parent)
    : QWidget(parent), navigator_(navigator), comparison_(comparison), chips_(new ModelChips(navigator, comparison, this)) {
  auto* layout = new QHBoxLayout(this);
  model_ = new QLabel(this);
  model_->setObjectName("model");
  branch_ = new QLabel(this);
  branch_->setObjectName("branch");
  branch_->setAccessibleName(tr("Branch"));
  branch_->hide();
  answer_ = new QLabel(this);
  answer_->setObjectName("answer");
  answer_->setAccessibleName(tr("Answer"));
  details_ = new QLabel(this);
  details_->setObjectName("faint");
  details_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
  what_ = new QLabel(this);
  what_->setObjectName("faint");
  progress_ = new QProgressBar(this);
  progress_->setAccessibleName(tr("Progress"));
  progress_->setTextVisible(false);
  progress_->setRange(0, 1000);
  cancel_ = make_button(cancel, this);
  side_ = make_button(side, this);
  no_text_ = make_chip(about, this);
  notes_ = make_chip(about, this);
  layout->addWidget(model_);
  layout->addWidget(branch_);
  layout->addWidget(answer_);
  layout->addWidget(no_text_);
  layout->addWidget(notes_);
  layout->addWidget(details_, 1);
  layout->addWidget(chips_, 1);
  for (QWidget* widget : std::initializer_list<QWidget*>{what_, progress_, cancel_, side_}) layout->addWidget(widget);
  connect(&navigator_, &Navigator::run_changed, this, &Header::show_model);
  connect(&navigator_, &Navigator::progressed, this, &Header::show_progress);
  connect(&navigator_, &Navigator::opening_ended, this, &Header::show_rest);
  connect(&comparison_, &Comparison::changed, this, &Header::show_chips);
  show_chips();
  show_rest();
}

void Header::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  layout()->setContentsMargins(px(4), 0, px(2), 0);
  layout()->setSpacing(px(10));
  progress_->setFixedWidth(px(140));
  chips_->set_frame(frame);
  for (QToolButton* button : {cancel_, side_}) button->setIconSize({px(16), px(16)});
}

void Header::show_facts() {
  show_chip(*no_text_, tr("token ids, no text"), navigator_.facts().no_text);
  const QStringList notes = without_options(navigator_.run()->model.notes);
  show_chip(*notes_, notes.size() == 1 ? tr("1 note") : tr("%1 notes").arg(notes.size()), notes.join('\n'));
}

void Header::show_model() {
  show_facts();
  const ModelInfo& model = navigator_.run()->model;
  const auto layers = static_cast<int>(model.layers.size());
  model_->setText(QString::fromStdString(model.name));
  QStringList details = {QString::fromStdString(model.family), layers == 1 ? tr("1 layer") : tr("%1 layers").arg(layers),
                         parameters_text(model.parameters), QString::fromStdString(model.device)};
  details.removeAll(QString());
  details_->setText(details.join(QStringLiteral("  ·  ")));
  details_->setToolTip(details_->text() + '\n' + recording_words(navigator_.run()->recording));
  details_->setAccessibleDescription(details_->toolTip());
  const QString branch = words_of_branch(navigator_.run()->branch);
  branch_->setText(fontMetrics().elidedText(branch, Qt::ElideRight, width() / 3));
  branch_->setToolTip(branch);
  branch_->setVisible(!branch.isEmpty());
  show_answer();
}

void Header::set_answers_told(bool told) {
  answers_told_ = told;
  chips_->set_answers_told(told);
  show_answer();
}

/// Each of several models has its own in its chip.
void Header::show_answer() {
  answer_->setText(navigator_.run() ? answer_words(*navigator_.run()) : QString());
  answer_->setVisible(!answer_->text().isEmpty() && !comparison_.is_on() && answers_told_);
}

/// The cancel button also stops what the others are opening.
void Header::show_chips() {
  chips_->setVisible(comparison_.is_on());
  for (QLabel* label : {model_, details_}) label->setVisible(!comparison_.is_on());
  show_answer();
  if (!navigator_.is_opening()) cancel_->setVisible(comparison_.is_opening());
}

void Header::show_progress(double fraction, const QString& what) {
  const QString coming = navigator_.coming();
  what_->setText(coming.isEmpty() || !navigator_.run() ? what : QStringLiteral("%1: %2").arg(coming, what));
  if (!navigator_.run()) model_->setText(coming.isEmpty() ? tr("No model is open") : coming);
  progress_->setUpdatesEnabled(false);  // setValue would paint the whole window at once; this way it waits for the next frame
  progress_->setValue(static_cast<int>(fraction * 1000));
  progress_->setUpdatesEnabled(true);
  for (QWidget* widget : std::initializer_list<QWidget*>{what_, progress_, cancel_}) widget->show();
}

void Header::show_rest() {
  if (!navigator_.run()) model_->setText(tr("No model is open"));
  for (QWidget* widget : std::initializer_list<QWidget*>{what_, progress_, cancel_}) widget->hide();
}

ErrorBar::ErrorBar(QWidget* parent) : QFrame(parent) {
  setObjectName("error");
  setAccessibleName(tr("Error"));
  auto* layout = new QHBoxLayout(this);
  message_ = new QLabel(this);
  message_->setWordWrap(true);
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  message_->setFocusPolicy(Qt::StrongFocus);
  message_->setAccessibleName(tr("Error message"));
  dismiss_ = new QToolButton(this);
  dismiss_->setAccessibleName(tr("Dismiss the message"));
  dismiss_->setToolTip(tr("Dismiss"));
  connect(dismiss_, &QToolButton::clicked, this, &ErrorBar::dismiss);
  offer_ = new QPushButton(this);
  offer_->hide();
  connect(offer_, &QPushButton::clicked, this, [this] { act_(); });
  layout->addWidget(message_, 1);
  layout->addWidget(offer_);
  layout->addWidget(dismiss_);
  hide();
}

void ErrorBar::set_frame(const Frame& frame) {
  const auto margin = static_cast<int>(6 * frame.scale);
  layout()->setContentsMargins(margin, margin / 2, margin / 2, margin / 2);
  dismiss_->setIcon(icon_of("close", frame.theme));
}

void ErrorBar::dismiss() {
  hide();
  Q_EMIT dismissed();
}

void ErrorBar::offer(const QString& words, std::function<void()> act) {
  act_ = std::move(act);
  offer_->setText(words);
  offer_->show();
}

void ErrorBar::show_message(const QString& message) {
  message_->setText(message);
  offer_->hide();
  show();
  QAccessibleEvent alert(this, QAccessible::Alert);
  QAccessible::updateAccessibility(&alert);
}

}  // namespace statescope
