#include "app/panels/inspector.h"

#include <QApplication>
#include <QClipboard>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPainter>
#include <QRegularExpression>
#include <QSignalBlocker>
#include <QStyledItemDelegate>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>

#include "app/controls/theme.h"
#include "app/panels/view_panel.h"
#include "views/chosen.h"
#include "views/parts.h"

namespace statescope {
namespace {

constexpr int shown_predictions = 5;
constexpr int significant_digits = 9;  // tell every float32 from its neighbours
constexpr auto dash = "–";

/// A probability as a bar behind its number.
class BarDelegate : public QStyledItemDelegate {
 public:
  using QStyledItemDelegate::QStyledItemDelegate;
  void paint(QPainter* painter, const QStyleOptionViewItem& option, const QModelIndex& index) const override {
    const double fraction = index.data(Qt::UserRole).toDouble();
    QColor color = QApplication::palette().color(QPalette::Highlight);
    color.setAlphaF(0.35f);
    const QRectF room = QRectF(option.rect).adjusted(2, 3, -2, -3);
    painter->fillRect(QRectF(room.topLeft(), QSizeF(room.width() * fraction, room.height())), color);
    QStyledItemDelegate::paint(painter, option, index);
  }
};

QComboBox* make_picker(const QString& name, QWidget* parent) {
  auto* picker = new QComboBox(parent);
  picker->setAccessibleName(name);
  picker->setFocusPolicy(Qt::TabFocus);
  picker->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  picker->setMinimumContentsLength(8);
  return picker;
}

/// The cell, or the norm of the row or the rows.
float chosen_value(const HeadState& state, const Cursor& at) {
  const float* cells = state.matrix(at.slot);
  if (at.row >= 0 && at.column >= 0) return cells[at.row * state.columns + at.column];
  const std::int64_t first = std::max<std::int64_t>(at.row, 0), last = at.row == kAllRows ? state.rows : at.row + 1;
  double squares = 0;
  for (std::int64_t i = first * state.columns; i < last * state.columns; ++i) squares += double{cells[i]} * double{cells[i]};
  return static_cast<float>(std::sqrt(squares));
}

/// With the columns' titles where it is the whole table; tabs between the cells, a line for each row.
QString rows_of(const QTableView& table, bool chosen_alone) {
  const QAbstractItemModel& model = *table.model();
  const auto line = [&model](const auto& cell) {
    QStringList cells;
    for (int column = 0; column < model.columnCount(); ++column)
      cells += cell(column).toString().replace(QRegularExpression("[\\t\\n]"), " ");
    return cells.join('\t');
  };
  QStringList lines;
  if (!chosen_alone && table.horizontalHeader()->isVisibleTo(&table))
    lines += line([&](int column) { return model.headerData(column, Qt::Horizontal); });
  for (int row = 0; row < model.rowCount(); ++row) {
    if (chosen_alone && !table.selectionModel()->isRowSelected(row)) continue;
    lines += line([&](int column) { return model.index(row, column).data(); });
  }
  return lines.join('\n') + '\n';
}

QString text_of(float value) { return QString::fromStdString(number(value, significant_digits)); }

}  // namespace

Inspector::Inspector(Navigator& navigator, Actions& actions, QWidget* parent) : QWidget(parent), navigator_(navigator) {
  auto* layout = new QVBoxLayout(this);
  layer_ = make_picker(tr("Layer"), this);
  head_ = make_picker(tr("Head"), this);
  slot_ = make_picker(tr("Partition"), this);
  actions.tell_keys(*layer_, tr("Layer"), {"layer-up", "layer-down"});
  actions.tell_keys(*head_, tr("Head"), {"head-previous", "head-next"});
  actions.tell_keys(*slot_, tr("Partition"), {"slot1", "slot2", "slot3", "slot-shared"});
  auto* where = new QFormLayout;
  where->setFieldGrowthPolicy(QFormLayout::AllNonFixedFieldsGrow);
  for (QComboBox* picker : {layer_, head_, slot_}) where->addRow(picker->accessibleName(), picker);
  layout->addLayout(where);

  cell_ = add_heading({});
  auto* values = new QFormLayout;
  before_ = add_value(*values, tr("Before"));
  now_ = add_value(*values, tr("Now"));
  difference_ = add_value(*values, tr("Difference"));
  layout->addLayout(values);
  accuracy_ = new QLabel(this);
  accuracy_->setObjectName("small");
  accuracy_->setWordWrap(true);
  layout->addWidget(accuracy_);

  add_heading(tr("Next token"));
  predictions_ = new QTableWidget(0, 2, this);
  predictions_->setAccessibleName(tr("Predictions of the next token"));
  predictions_->setItemDelegateForColumn(1, new BarDelegate(predictions_));
  predictions_->horizontalHeader()->hide();
  predictions_->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  layout->addWidget(predictions_);

  table_heading_ = add_heading(tr("Values"));
  model_ = new TableModel(this);
  table_ = new QTableView(this);
  table_->setModel(model_);
  table_->setAccessibleName(tr("Values of the view in focus"));
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setResizeContentsPrecision(40);  // rows that are measured; all of them would take long
  layout->addWidget(table_, 1);
  for (QTableView* table : {static_cast<QTableView*>(predictions_), table_}) {
    table->verticalHeader()->hide();
    table->setShowGrid(false);
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setTabKeyNavigation(false);
    table->setWordWrap(false);
    table->installEventFilter(this);
    table->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(table, &QWidget::customContextMenuRequested, this,
            [this, table](QPoint at) { Q_EMIT menu_wanted(table, table->viewport()->mapToGlobal(at)); });
  }
  predictions_->horizontalHeader()->setSectionResizeMode(QHeaderView::Stretch);

  const auto pick = [this](std::optional<std::int64_t> CursorMove::*field) {
    return [this, field](int index) {
      CursorMove change;
      change.*field = index;
      navigator_.move(change);
    };
  };
  connect(layer_, &QComboBox::activated, this, pick(&CursorMove::layer));
  connect(head_, &QComboBox::activated, this, pick(&CursorMove::head));
  connect(slot_, &QComboBox::activated, this, pick(&CursorMove::slot));
  connect(&navigator_, &Navigator::cursor_changed, this, &Inspector::show_place);
  connect(&navigator_, &Navigator::cursor_changed, this, &Inspector::show_cell);
  connect(&navigator_, &Navigator::snapshot_changed, this, &Inspector::show_rest);
  connect(&navigator_, &Navigator::motion_changed, this, &Inspector::show_rest);
  show_place();
  show_cell();
}

QLabel* Inspector::add_heading(const QString& text) {
  auto* heading = new QLabel(text, this);
  heading->setObjectName("heading");
  heading->setWordWrap(true);
  static_cast<QVBoxLayout*>(layout())->addSpacing(6);
  layout()->addWidget(heading);
  return heading;
}

QLabel* Inspector::add_value(QFormLayout& form, const QString& name) {
  auto* value = new QLabel(this);
  value->setObjectName("value");
  value->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
  value->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  value->setFocusPolicy(Qt::StrongFocus);
  value->setAccessibleName(name);
  form.addRow(name, value);
  return value;
}

void Inspector::set_frame(const Frame& frame) {
  scale_ = frame.scale;
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  layout()->setContentsMargins(px(14), px(12), px(14), px(12));
  layout()->setSpacing(px(7));
  for (QFormLayout* form : layout()->findChildren<QFormLayout*>()) {
    form->setHorizontalSpacing(px(12));
    form->setVerticalSpacing(px(5));
  }
  for (QTableView* table : {static_cast<QTableView*>(predictions_), table_}) table->verticalHeader()->setDefaultSectionSize(px(21));
  table_->horizontalHeader()->setDefaultSectionSize(px(122));
  table_->setMinimumHeight(px(110));
  predictions_->setFixedHeight(px(21) * shown_predictions + 4);
}

void Inspector::fill(QComboBox& picker, const QStringList& names, std::int64_t chosen) {
  const QSignalBlocker quiet(&picker);
  QStringList have;
  for (int i = 0; i < picker.count(); ++i) have.push_back(picker.itemText(i));
  if (have != names) {
    picker.clear();
    picker.addItems(names);
  }
  picker.setEnabled(!names.isEmpty());
  picker.setCurrentIndex(names.isEmpty() ? -1 : static_cast<int>(chosen));
}

void Inspector::show_place() {
  QStringList layers, heads, slots;
  if (const std::shared_ptr<const RunInfo>& run = navigator_.run()) {
    for (const LayerInfo& layer : run->model.layers)
      layers.push_back(QStringLiteral("%1  %2").arg(layers.size()).arg(QString::fromStdString(layer.mixer)));
  }
  if (const LayerInfo* layer = navigator_.layer_info()) {
    for (std::int64_t head = 0; head < layer->most_heads(); ++head) heads.push_back(QString::number(head));
    for (const std::string& slot : layer->slot_names) slots.push_back(QString::fromStdString(slot));
  }
  const Cursor& cursor = navigator_.cursor();
  fill(*layer_, layers, cursor.layer);
  fill(*head_, heads, cursor.head);
  fill(*slot_, slots, cursor.slot);
}

/// While a played step moves, the numbers stay those of the token before.
void Inspector::show_rest() {
  if (navigator_.cursor().progress < 1) return;
  show_cell();
  show_predictions();
}

void Inspector::show_cell() {
  const bool between = navigator_.is_playing() && (navigator_.cursor().progress < 1 || !navigator_.is_current());
  if (between) return;
  const Cursor& at = navigator_.cursor();
  const LayerInfo* layer = navigator_.layer_info();
  const bool has_state = layer && layer->has_state();
  const Snapshot* snapshot = navigator_.is_current() ? navigator_.snapshot().get() : nullptr;
  const bool shown = snapshot && has_state && (at.row >= 0 || at.row == kAllRows) && at.slot < snapshot->state.slots &&
                     at.row < snapshot->state.rows && at.column < snapshot->state.columns;
  for (QLabel* label : {before_, now_, difference_}) label->setText(QString::fromUtf8(dash));
  if (!shown) {
    cell_->setText(layer && !has_state
                       ? tr("This layer keeps no matrix state")
                       : tr("Point at a cell, or choose one with Alt and the arrows, its row with W, all rows with Shift+W"));
    accuracy_->clear();
    return;
  }
  const float before = chosen_value(snapshot->before, at), now = chosen_value(snapshot->state, at);
  const QString what = at.row == kAllRows ? tr("Norm of all rows")
                       : at.column < 0    ? tr("Norm of row %1").arg(at.row)
                                          : tr("Row %1, column %2").arg(at.row).arg(at.column);
  cell_->setText(tr("%1 · partition %2, head %3")
                     .arg(what, QString::fromStdString(layer->slot_names[static_cast<std::size_t>(at.slot)]))
                     .arg(at.head));
  before_->setText(text_of(before));
  now_->setText(text_of(now));
  difference_->setText((now > before ? "+" : "") + text_of(now - before));
  QString how = QString::fromStdString(accuracy_words(snapshot->accuracy));
  accuracy_->setText(how.replace(0, 1, how.first(1).toUpper()));
}

void Inspector::show_predictions() {
  if (!navigator_.is_current()) return;
  std::vector<Prediction> predictions = navigator_.snapshot()->predictions;
  std::erase_if(predictions, [](const Prediction& prediction) { return !std::isfinite(prediction.probability); });
  const int rows = std::min(shown_predictions, static_cast<int>(predictions.size()));
  predictions_->setRowCount(rows);
  for (int row = 0; row < rows; ++row) {
    const Prediction& prediction = predictions[static_cast<std::size_t>(row)];
    predictions_->setItem(row, 0, new QTableWidgetItem(QString::fromStdString(visible_text(prediction.text))));
    auto* bar = new QTableWidgetItem(QString::number(static_cast<double>(prediction.probability), 'f', 4));
    bar->setData(Qt::UserRole, static_cast<double>(prediction.probability));
    bar->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
    predictions_->setItem(row, 1, bar);
  }
}

QTableView* Inspector::focused_table() const {
  for (QTableView* table : {static_cast<QTableView*>(predictions_), table_})
    if (table->hasFocus()) return table;
  return nullptr;
}

void Inspector::fill_menu(QMenu& menu, QTableView& table) {
  const QModelIndex cell = table.currentIndex();
  const QModelIndexList rows = table.selectionModel()->selectedRows();
  const auto add = [&menu](const QString& text, bool any, const auto& words) {
    QAction* const action = menu.addAction(text);
    action->setEnabled(any);
    connect(action, &QAction::triggered, &menu, [words] { QApplication::clipboard()->setText(words()); });
  };
  add(tr("Copy the value"), cell.isValid(), [cell = QPersistentModelIndex(cell)] { return cell.data().toString(); });
  add(tr("Copy the chosen lines"), !rows.isEmpty(), [&table] { return rows_of(table, true); });
  if (!shows_view(table)) add(tr("Copy the table"), table.model()->rowCount() > 0, [&table] { return rows_of(table, false); });
}

/// Copying takes the chosen rows, not one cell of them.
bool Inspector::eventFilter(QObject* watched, QEvent* event) {
  auto* const table = qobject_cast<QTableView*>(watched);
  const bool key = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
  if (!table || !key || !static_cast<QKeyEvent*>(event)->matches(QKeySequence::Copy)) return QWidget::eventFilter(watched, event);
  if (event->type() == QEvent::KeyPress) QApplication::clipboard()->setText(rows_of(*table, true));
  event->accept();
  return true;
}

void Inspector::show_table_of(const ViewPanel& panel) {
  if (!isVisible()) return;
  table_heading_->setText(tr("Values · %1").arg(view_words(panel.row().title)));
  const bool reshaped = model_->set(panel.view().table());
  if (reshaped && model_->columnCount() > 0) table_->resizeColumnToContents(0);
}

}  // namespace statescope
