#include "app/pages/training_page.h"

#include <fmt/format.h>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QVBoxLayout>
#include <algorithm>

#include "app/common/page.h"
#include "app/common/plain_words.h"

namespace statescope {
namespace {

constexpr int most_whys = 4;

QLabel* make_label(const QString& name, QBoxLayout& layout) {
  auto* label = new QLabel;
  label->setWordWrap(true);
  label->setTextFormat(Qt::PlainText);
  label->setAccessibleName(name);
  layout.addWidget(label);
  return label;
}

}  // namespace

TrainingPage::TrainingPage(TrainingWatch::Inspect inspect, std::optional<KeptResults> kept, QWidget* parent)
    : QWidget(parent), watch_(std::move(inspect), std::move(kept)) {
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  auto* top = new QHBoxLayout;
  layout->addLayout(top);
  folder_ = make_label(tr("Folder that is watched"), *top);
  doing_ = make_label(tr("What the watch does"), *layout);
  doing_->setObjectName("faint");
  progress_ = new QProgressBar(this);
  progress_->setRange(0, 1000);
  progress_->setTextVisible(false);
  progress_->setAccessibleName(tr("How much of the checkpoint has been read"));
  layout->addWidget(progress_);
  stop_ = new QPushButton(this);
  other_ = new QPushButton(this);
  top->setStretch(0, 1);
  top->addWidget(stop_);
  top->addWidget(other_);
  plots_ = new TrainingPlots(this);
  layout->addWidget(plots_);
  model_ = new TableModel(this);
  table_ = new QTableView(this);
  table_->setModel(model_);
  table_->setAccessibleName(tr("Checkpoints, with their verdicts"));
  table_->setToolTip(tr("Enter or a click opens one in the window"));
  table_->verticalHeader()->hide();
  table_->horizontalHeader()->setHighlightSections(false);
  table_->setShowGrid(false);
  table_->setEditTriggers(QAbstractItemView::NoEditTriggers);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setTabKeyNavigation(false);
  table_->setWordWrap(false);
  layout->addWidget(table_, 1);
  told_ = make_label(tr("What was found in the chosen checkpoint"), *layout);
  skipped_ = make_label(tr("Checkpoints that could not be read"), *layout);
  setFocusProxy(table_);

  connect(stop_, &QPushButton::clicked, this, [this] { watch_.is_watching() ? watch_.stop() : watch_.start(watch_.folder()); });
  connect(other_, &QPushButton::clicked, this, &TrainingPage::folder_wanted);
  connect(plots_, &TrainingPlots::chosen, this, &TrainingPage::choose);
  connect(table_, &QTableView::clicked, this, [this](const QModelIndex& index) { choose(index.row()); });
  table_->installEventFilter(this);
  connect(table_->selectionModel(), &QItemSelectionModel::currentChanged, this, &TrainingPage::show_told);
  connect(&watch_, &TrainingWatch::state_changed, this, [this] {
    rests_ = false;
    show_state();
  });
  connect(&watch_, &TrainingWatch::steps_changed, this, &TrainingPage::show_steps);
  connect(&watch_, &TrainingWatch::rested, this, [this] {
    rests_ = true;
    show_state();
  });
  connect(&watch_, &TrainingWatch::progressed, this, [this](const QString& checkpoint, double fraction) {
    if (!watch_.is_watching()) return;
    rests_ = false;
    progress_->setValue(static_cast<int>(1000 * fraction));
    progress_->show();
    doing_->setText(tr("Reading %1: %2 %").arg(checkpoint).arg(static_cast<int>(100 * fraction)));
  });
  connect(&watch_, &TrainingWatch::skipped, this, [this](const QString& why) {
    whys_.append(without_options(why.toStdString()));
    show_skipped();
    Q_EMIT spoke(whys_.last());
  });
  show_state();
  show_steps();
}

/// Enter opens the chosen checkpoint.
bool TrainingPage::eventFilter(QObject* watched, QEvent* event) {
  if (watched == table_ && event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    if ((key == Qt::Key_Return || key == Qt::Key_Enter) && current() >= 0) {
      choose(current());
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

void TrainingPage::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  layout()->setSpacing(px(7));
  plots_->set_frame(frame);
  table_->verticalHeader()->setDefaultSectionSize(px(21));
  table_->setMinimumHeight(px(110));
  table_->resizeColumnsToContents();
}

int TrainingPage::current() const { return table_->currentIndex().row(); }

void TrainingPage::show_state() {
  const bool any = !watch_.folder().empty();
  const std::filesystem::path& folder = watch_.folder();
  const std::filesystem::path named = folder.has_filename() ? folder : folder.parent_path();
  folder_->setToolTip(QString::fromStdString(folder.string()));
  folder_->setText(any ? QString::fromStdString(named.filename().string())
                       : tr("Choose the folder that a training writes its checkpoints to: each is inspected as it comes."));
  stop_->setText(watch_.is_watching() ? tr("Stop") : tr("Go on"));
  stop_->setVisible(any);
  other_->setText(any ? tr("Another folder…") : tr("Choose a folder…"));
  if (!watch_.is_watching() || rests_) progress_->hide();
  if (!watch_.is_watching())
    doing_->setText(any ? tr("Stopped; what was read is kept.") : QString());
  else if (rests_)
    doing_->setText(watch_.steps().empty() ? tr("Waiting for the first checkpoint.")
                                           : tr("%1: %2. Everything has been read; waiting for the next checkpoint.")
                                                 .arg(QString::fromStdString(watch_.steps().back().name),
                                                      QString::fromStdString(watch_.steps().back().verdict)));
  else if (progress_->isHidden())
    doing_->setText(tr("Looking for checkpoints."));
}

void TrainingPage::show_steps() {
  const std::vector<TrainingStep>& steps = watch_.steps();
  Table table{.columns = {tr("checkpoint").toStdString(), tr("step").toStdString(), tr("verdict").toStdString()}, .rows = {}};
  for (const TrendRow& row : trend_rows()) table.columns.push_back(tr(row.name).toLower().toStdString());
  for (const TrainingStep& step : steps) {
    std::vector<std::string> row{step.name, step.steps > 0 ? std::to_string(step.steps) : "–", (step.ill ? "▲ " : "") + step.verdict};
    for (std::size_t t = 0; t < trends; ++t) row.push_back(number_cell(step.values[t], trend_rows()[t].format));
    table.rows.push_back(std::move(row));
  }
  const std::string chosen = current() >= 0 ? model_->index(current(), 0).data().toString().toStdString() : "";
  model_->set(std::move(table));
  table_->resizeColumnsToContents();
  const auto again = std::ranges::find(steps, chosen, &TrainingStep::name);
  if (!chosen.empty() && again != steps.end()) table_->setCurrentIndex(model_->index(static_cast<int>(again - steps.begin()), 0));
  plots_->show_steps(steps);
  std::vector<std::string> known;
  for (const TrainingStep& step : steps) {
    known.push_back(step.path + " " + step.verdict);
    const bool fresh = std::ranges::count(known_, known.back()) == 0;
    if (fresh) Q_EMIT spoke(QString::fromStdString(fmt::format("{}: {}", step.name, step.verdict)));
  }
  known_ = std::move(known);
  if (told_of_ != watch_.folder()) whys_.clear();
  told_of_ = watch_.folder();
  show_skipped();
  show_told();
}

void TrainingPage::show_told() {
  const int row = current();
  const bool any = row >= 0 && row < static_cast<int>(watch_.steps().size());
  plots_->mark(any ? row : -1);
  told_->setText(any ? QString::fromStdString(watch_.steps()[static_cast<std::size_t>(row)].told) : QString());
  told_->setVisible(any);
}

void TrainingPage::show_skipped() {
  QStringList lines = whys_.mid(std::max<qsizetype>(0, whys_.size() - most_whys));
  if (!lines.isEmpty()) lines.prepend(tr("Skipped until they change:"));
  skipped_->setText(lines.join('\n'));
  skipped_->setVisible(!lines.isEmpty());
}

void TrainingPage::choose(int row) {
  if (row < 0 || row >= static_cast<int>(watch_.steps().size())) return;
  table_->setCurrentIndex(model_->index(row, 0));
  const TrainingStep step = watch_.steps()[static_cast<std::size_t>(row)];
  Q_EMIT step_chosen(step);
}

}  // namespace statescope
