#include "app/pages/intervention_page.h"

#include <QCompleter>
#include <QCoreApplication>
#include <QFileDialog>
#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <set>

#include "app/common/prompts.h"
#include "app/controls/typed_number.h"
#include "views/parts.h"

namespace statescope {
namespace {

enum Column { branch_column, answer_column };
constexpr int number_role = Qt::UserRole;

QString translated(const char* text) { return QCoreApplication::translate("Interventions", text); }

/// The tokens of the run, each once, to replace one by.
void fill_tokens(QComboBox& into, const RunInfo& run) {
  std::set<std::int32_t> known;
  for (std::int64_t t = 0; t < std::ssize(run.tokens); ++t) {
    const std::int32_t id = run.tokens[static_cast<std::size_t>(t)].id;
    if (known.insert(id).second) into.addItem(QString::fromStdString(visible_token(run, t)), id);
  }
  into.model()->sort(0);
}

bool counts_partitions(InterventionKind kind) {
  using enum InterventionKind;
  return kind == top_k || kind == writers || kind == readers || kind == route;
}

/// Numbers of partitions, tokens, runs.
bool wants_whole(InterventionKind kind) {
  return counts_partitions(kind) || kind == InterventionKind::replace_token || kind == InterventionKind::import_state;
}

bool is_of_another_prompt(const RunInfo& run) { return run.branch.number > 0 && run.branch.parent < 0; }

QString answer_words(const RunInfo& run) {
  const QString text = QString::fromStdString(answer_text(run));
  const std::optional<bool> right = answer_is_right(run);
  if (!right) return text;
  return *right ? InterventionPage::tr("%1, right").arg(text) : InterventionPage::tr("%1, wrong").arg(text);
}

QString branch_words(const RunInfo& run) {
  const BranchInfo& branch = run.branch;
  if (branch.number == 0) return InterventionPage::tr("0  The model's own run");
  if (is_of_another_prompt(run)) return InterventionPage::tr("%1  Another prompt of %2 tokens").arg(branch.number).arg(run.prompt_length);
  return QStringLiteral("%1  %2").arg(branch.number).arg(QString::fromStdString(joined(branch.interventions, ", ")));
}

/// Whose states can be imported; the newest that is not the one shown is chosen, for a state of one's own changes nothing.
void fill_runs(QComboBox& into, const BranchTree& branches) {
  for (const std::shared_ptr<const RunInfo>& run : branches.runs) {
    into.addItem(branch_words(*run), QVariant::fromValue<qlonglong>(run->branch.number));
    if (run->branch.number != branches.current) into.setCurrentIndex(into.count() - 1);
  }
}

/// Where the line says it holds: the line itself may be longer than the page is wide.
QString where_words(const Intervention& intervention) {
  return intervention.layer ? InterventionPage::tr("Changes layer %1 from token %2 on; what lies before it stays.")
                                  .arg(*intervention.layer)
                                  .arg(intervention.at)
                            : InterventionPage::tr("Changes every layer from token %1 on; what lies before it stays.").arg(intervention.at);
}

}  // namespace

InterventionPage::InterventionPage(Navigator& navigator, Comparison& comparison, QWidget* parent)
    : QWidget(parent), navigator_(navigator), comparison_(comparison) {
  where_ = new QLabel(this);
  where_->setObjectName("faint");
  where_->setWordWrap(true);
  QLayout* form = make_form();  // first: Tab goes through all in this order
  line_ = new QLineEdit(this);
  line_->setObjectName("intervention");
  line_->setAccessibleName(tr("Intervention"));
  line_->setToolTip(
      tr("One of:\n%1").arg(QString::fromUtf8(intervention_forms().data(), static_cast<qsizetype>(intervention_forms().size()))));
  message_ = new QLabel(this);
  message_->setObjectName("intervention-message");
  message_->setWordWrap(true);
  message_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  message_->setAccessibleName(tr("What can be written"));
  apply_ = new QPushButton(tr("Apply"), this);
  undo_ = new QPushButton(tr("Undo"), this);
  redo_ = new QPushButton(tr("Redo"), this);
  auto* buttons = new QHBoxLayout;
  for (QPushButton* button : {apply_, undo_, redo_}) {
    button->setFocusPolicy(Qt::StrongFocus);
    buttons->addWidget(button);
  }
  make_tree();
  make_beside();
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(where_);
  layout->addLayout(form);
  layout->addWidget(line_);
  layout->addWidget(message_);
  layout->addLayout(buttons);
  layout->addWidget(tree_, 1);
  layout->addWidget(beside_row_);
  setFocusProxy(kind_);
  make_connections();
  show_kind();
  show_tree();
}

QLayout* InterventionPage::make_form() {
  kind_ = new QComboBox(this);
  kind_->setObjectName("kind");
  kind_->setAccessibleName(tr("What to change"));
  for (const InterventionRow& row : intervention_rows()) kind_->addItem(translated(row.name));
  value_name_ = new QLabel(this);
  value_ = new QComboBox(this);
  value_->setObjectName("value");
  value_->setEditable(true);
  value_->setInsertPolicy(QComboBox::NoInsert);
  for (QComboBox* box : {kind_, value_}) {  // as narrow as the page
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(8);
  }
  all_layers_ = new QCheckBox(tr("In every layer"), this);
  another_ = new QPushButton(tr("Read another prompt…"), this);
  another_->setFocusPolicy(Qt::StrongFocus);
  another_->setToolTip(tr("Then its states can be imported"));
  auto* form = new QFormLayout;
  form->addRow(kind_);
  form->addRow(value_name_, value_);
  form->addRow(QString(), another_);
  form->addRow(QString(), all_layers_);
  return form;
}

void InterventionPage::make_tree() {
  tree_ = new QTreeWidget(this);
  tree_->setAccessibleName(tr("Branches"));
  tree_->setToolTip(tr("Return shows a branch"));
  tree_->setHeaderLabels({tr("Branch"), tr("Answer")});
  tree_->setSelectionMode(QAbstractItemView::SingleSelection);
  tree_->setIndentation(12);
  tree_->setItemsExpandable(false);
  tree_->setRootIsDecorated(false);
  tree_->header()->setStretchLastSection(false);
  tree_->header()->setSectionResizeMode(branch_column, QHeaderView::Stretch);
  tree_->header()->setSectionResizeMode(answer_column, QHeaderView::Fixed);
}

void InterventionPage::make_beside() {
  beside_row_ = new QWidget(this);
  beside_ = new QComboBox(beside_row_);
  beside_->setObjectName("beside");
  beside_->setAccessibleName(tr("Branch beside it"));
  beside_->setToolTip(tr("Under the same cursor, to compare with: states, predictions, answers"));
  beside_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  beside_->setMinimumContentsLength(8);
  auto* form = new QFormLayout(beside_row_);
  form->setContentsMargins(0, 0, 0, 0);
  form->addRow(tr("Beside it"), beside_);
}

void InterventionPage::make_connections() {
  for (QLineEdit* typed : {line_, value_->lineEdit()}) typed->installEventFilter(this);
  connect(kind_, &QComboBox::currentIndexChanged, this, &InterventionPage::show_kind);
  connect(value_, &QComboBox::currentTextChanged, this, &InterventionPage::write_line);
  connect(value_, &QComboBox::activated, this, [this] { value_->lineEdit()->setCursorPosition(0); });
  connect(all_layers_, &QCheckBox::toggled, this, &InterventionPage::write_line);
  connect(line_, &QLineEdit::textChanged, this, &InterventionPage::check_line);
  connect(line_, &QLineEdit::returnPressed, this, &InterventionPage::apply);
  connect(apply_, &QPushButton::clicked, this, &InterventionPage::apply);
  connect(undo_, &QPushButton::clicked, &navigator_, &Navigator::undo_intervention);
  connect(redo_, &QPushButton::clicked, &navigator_, &Navigator::redo_intervention);
  const auto go = [this](const QTreeWidgetItem* item) {
    const QVariant number = item->data(branch_column, number_role);
    if (number.isValid()) navigator_.go_to_branch(number.toLongLong());
  };
  connect(tree_, &QTreeWidget::itemActivated, this, go);
  connect(tree_, &QTreeWidget::itemClicked, this, go);
  connect(&navigator_, &Navigator::cursor_changed, this, [this] {
    if (!line_->isModified()) write_line();
  });
  connect(&navigator_, &Navigator::opened, this, &InterventionPage::show_kind);
  connect(&navigator_, &Navigator::run_changed, this, &InterventionPage::show_tree);
  connect(&navigator_, &Navigator::opening_ended, this, &InterventionPage::show_tree);
  connect(&navigator_, &Navigator::branches_changed, this, [this] {
    if (chosen_row().kind == InterventionKind::import_state && !line_->isModified()) show_kind();
  });
  connect(another_, &QPushButton::clicked, this, &InterventionPage::choose_prompt);
  connect(beside_, &QComboBox::activated, this, &InterventionPage::put_beside);
  connect(&comparison_, &Comparison::changed, this, &InterventionPage::show_beside);
  connect(&navigator_, &Navigator::progressed, this, [this] { apply_->setEnabled(false); });
  connect(&navigator_, &Navigator::intervention_failed, this, &InterventionPage::show_message);
}

/// Undo and redo are those of what is typed only as long as there is any.
bool InterventionPage::eventFilter(QObject* watched, QEvent* event) {
  const auto* typed = qobject_cast<QLineEdit*>(watched);
  if (!typed || event->type() != QEvent::ShortcutOverride) return QWidget::eventFilter(watched, event);
  const auto* key = static_cast<QKeyEvent*>(event);
  const bool nothing_left =
      (key->matches(QKeySequence::Undo) && !typed->isUndoAvailable()) || (key->matches(QKeySequence::Redo) && !typed->isRedoAvailable());
  if (nothing_left) event->ignore();
  return nothing_left;
}

/// The values of what is chosen.
void InterventionPage::show_kind() {
  const InterventionRow& row = chosen_row();
  {
    const QSignalBlocker quiet(value_);
    value_->clear();
    if (row.kind == InterventionKind::replace_token) {
      if (navigator_.run()) fill_tokens(*value_, *navigator_.run());
    } else if (row.kind == InterventionKind::import_state) {
      if (navigator_.branches()) fill_runs(*value_, *navigator_.branches());
    } else if (counts_partitions(row.kind)) {
      const LayerInfo* layer = navigator_.layer_info();
      for (std::int64_t n = 1; layer && n <= layer->partitions; ++n) value_->addItem(QString::number(n));
    } else {
      value_->addItems({"0.5", "2", "4", "0", "-1"});
    }
  }
  const bool wants_value = *row.value != '\0';
  // A number is what was typed, not what begins so.
  value_->setCompleter(row.kind == InterventionKind::replace_token ? new QCompleter(value_->model(), value_) : nullptr);
  value_->lineEdit()->setCursorPosition(0);  // its beginning tells runs apart
  value_name_->setText(wants_value ? translated(row.value) : QString());
  value_->setAccessibleName(wants_value ? translated(row.value) : tr("No value"));
  for (QWidget* widget : std::initializer_list<QWidget*>{value_name_, value_}) widget->setVisible(wants_value);
  another_->setVisible(row.kind == InterventionKind::import_state);
  all_layers_->setVisible(row.kind != InterventionKind::replace_token);
  write_line();
}

/// Of the one chosen, or as typed; nothing where that is no number of this kind. What wants no value has one all the same.
std::optional<double> InterventionPage::value() const {
  const QString typed = value_->currentText();
  if (*chosen_row().value == '\0') return 1;
  const int chosen = value_->findText(typed);
  const QVariant id = chosen < 0 ? QVariant() : value_->itemData(chosen);
  if (id.isValid()) return id.toDouble();
  if (!wants_whole(chosen_row().kind)) return typed_number(typed);
  const std::optional<std::int64_t> whole = typed_whole(typed);
  return whole ? std::optional(static_cast<double>(*whole)) : std::nullopt;
}

void InterventionPage::write_line() {
  const LayerInfo* layer = navigator_.layer_info();
  if (!layer) return check_line();
  const std::optional<double> number = value();
  QString line;
  if (number) {
    Intervention intervention = intervention_here(chosen_row().kind, *layer, navigator_.cursor(), *number);
    if (all_layers_->isChecked()) intervention.layer.reset();
    line = QString::fromStdString(to_text(intervention));
  }
  line_->setText(line);
  line_->setModified(false);
  line_->setCursorPosition(0);
  check_line();
}

/// Why there is no line.
QString InterventionPage::what_is_wrong() const {
  if (!navigator_.layer_info() || value()) return line_->toolTip();
  return wants_whole(chosen_row().kind) ? why_no_whole(value_->currentText()) : why_no_number(value_->currentText());
}

/// What is wrong is said as soon as something is.
void InterventionPage::check_line() {
  QString wrong;
  if (line_->text().trimmed().isEmpty()) {
    wrong = what_is_wrong();
  } else {
    try {
      where_->setText(where_words(parse_intervention(line_->text().toStdString())));
    } catch (const std::exception& error) {
      wrong = QString::fromUtf8(error.what());
    }
  }
  show_message(wrong);
  apply_->setEnabled(wrong.isEmpty() && navigator_.run() && !navigator_.is_opening());
}

void InterventionPage::apply() {
  if (!apply_->isEnabled()) return;
  line_->setModified(false);
  navigator_.intervene({parse_intervention(line_->text().toStdString())});
}

void InterventionPage::show_message(const QString& message) {
  message_->setText(message);
  message_->setVisible(!message.isEmpty());
}

void InterventionPage::show_tree() {
  const std::shared_ptr<const BranchTree>& branches = navigator_.branches();
  check_line();
  undo_->setEnabled(branches && navigator_.run()->branch.number > 0);
  redo_->setEnabled(branches && branches->redo >= 0);
  show_beside();
  tree_->clear();
  if (!branches) return;
  std::vector<QTreeWidgetItem*> items;
  for (const std::shared_ptr<const RunInfo>& told : branches->runs) {
    const bool shown = told->branch.number == branches->current;
    const RunInfo& run = shown ? *navigator_.run() : *told;  // which may have grown
    const BranchInfo& branch = run.branch;
    const bool other_prompt = is_of_another_prompt(run);
    const QStringList columns{branch_words(run), other_prompt ? QString() : answer_words(run)};
    auto* item = branch.parent < 0 ? new QTreeWidgetItem(tree_, columns)
                                   : new QTreeWidgetItem(items[static_cast<std::size_t>(branch.parent)], columns);
    if (!other_prompt) item->setData(branch_column, number_role, QVariant::fromValue<qlonglong>(branch.number));
    if (branch.parent >= 0) item->setToolTip(branch_column, tr("%1\nParts at token %2").arg(columns[0]).arg(branch.from));
    if (other_prompt) item->setToolTip(branch_column, tr("%1\nOnly for its states").arg(columns[0]));
    if (!other_prompt) item->setToolTip(answer_column, columns[1]);
    item->setFirstColumnSpanned(other_prompt);
    items.push_back(item);
    if (!shown) continue;
    QFont bold = item->font(branch_column);
    bold.setBold(true);
    item->setFont(branch_column, bold);
    tree_->setCurrentItem(item);
  }
  tree_->expandAll();
  fit_columns();
}

/// A long answer leaves the branches more than half of the width.
void InterventionPage::fit_columns() {
  const QAbstractItemView& cells = *tree_;
  const int answers = std::max(cells.sizeHintForColumn(answer_column), tree_->header()->sectionSizeHint(answer_column));
  tree_->setColumnWidth(answer_column, std::min(answers, tree_->viewport()->width() * 2 / 5));
}

void InterventionPage::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  fit_columns();
}

/// Which branches may stand beside the one shown, and which does: none, the one before it always, or one of all.
void InterventionPage::show_beside() {
  const std::shared_ptr<const BranchTree>& branches = navigator_.branches();
  const std::shared_ptr<const RunInfo> chosen = comparison_.branch();
  const QSignalBlocker quiet(beside_);
  beside_->clear();
  beside_->addItem(tr("Nothing"));
  if (navigator_.parent()) beside_->addItem(tr("The branch before"));
  const int fixed = beside_->count();
  if (chosen && comparison_.shows_parent()) beside_->setCurrentIndex(1);
  for (std::size_t i = 0; branches && i < branches->runs.size(); ++i) {
    const RunInfo& run = *branches->runs[i];
    if (static_cast<std::int64_t>(i) == branches->current || is_of_another_prompt(run)) continue;
    beside_->addItem(branch_words(run), QVariant::fromValue<qlonglong>(run.branch.number));
    if (chosen && !comparison_.shows_parent() && chosen->branch.number == run.branch.number) beside_->setCurrentIndex(beside_->count() - 1);
  }
  beside_row_->setVisible(beside_->count() > fixed);
}

void InterventionPage::put_beside(int index) {
  const QVariant number = beside_->itemData(index);
  if (index == 0)
    comparison_.remove_branch();
  else if (number.isValid() ? !comparison_.add_branch(navigator_.branches()->runs[static_cast<std::size_t>(number.toLongLong())])
                            : !comparison_.add_parent())
    show_message(tr("Four models are compared already. Close one of them first."));
  show_beside();
}

void InterventionPage::choose_prompt() {
  const QString path =
      QFileDialog::getOpenFileName(this, tr("Read another prompt"), {}, tr("Prompts (*.json *.jsonl *.txt);;All files (*)"));
  if (!path.isEmpty()) add_prompt(path.toStdString());
}

void InterventionPage::add_prompt(const std::filesystem::path& path) {
  try {
    navigator_.add_run(load_prompt({.text = {}, .ids = {}, .file = path.string()}));
  } catch (const std::exception& error) {
    show_message(QString::fromUtf8(error.what()));
  }
}

}  // namespace statescope
