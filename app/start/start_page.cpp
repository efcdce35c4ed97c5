#include "app/start/start_page.h"

#include <QAction>
#include <QApplication>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QKeyEvent>
#include <QPointer>
#include <QSignalBlocker>
#include <QThreadPool>
#include <QVBoxLayout>
#include <algorithm>

#include "app/controls/fuzzy.h"

namespace statescope {
namespace {

constexpr int name_width = 260;  // at 1×

QString title_of(Shelf shelf) {
  switch (shelf) {
    case Shelf::recent:
      return StartPage::tr("Opened before");
    case Shelf::lessons:
      return StartPage::tr("Lessons");
    case Shelf::models:
      return StartPage::tr("Models that ship with the program");
    case Shelf::prompts:
      return StartPage::tr("Prompts");
  }
  return {};
}

}  // namespace

StartPage::StartPage(const QList<QAction*>& actions, QWidget* parent)
    : QWidget(parent), line_(new QLineEdit(this)), tree_(new QTreeWidget(this)), hints_(new QLabel(this)), nothing_(new QLabel(this)) {
  auto* heading = new QLabel(tr("What do you want to look at?"), this);
  heading->setObjectName("model");
  heading->setWordWrap(true);
  hints_->setText(tr(
      "Type here to find something, and open it with Enter.  Then Space plays and pauses, the arrows go from token to token, and F2 opens "
      "the lessons."));
  hints_->setObjectName("caption");
  hints_->setWordWrap(true);
  line_->setPlaceholderText(tr("Find a lesson, a model, a prompt or a file"));
  line_->setAccessibleName(tr("What to find"));
  tree_->setAccessibleName(tr("What can be opened"));
  tree_->setObjectName("shelf");
  tree_->setColumnCount(2);
  tree_->setHeaderHidden(true);
  tree_->setRootIsDecorated(false);
  tree_->setUniformRowHeights(true);
  tree_->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  tree_->setTextElideMode(Qt::ElideRight);
  tree_->header()->setStretchLastSection(true);
  tree_->header()->setSectionResizeMode(0, QHeaderView::Fixed);
  nothing_->setObjectName("faint");
  nothing_->hide();
  auto* top = new QHBoxLayout;
  top->addWidget(heading, 1);
  for (QAction* action : actions) {
    auto* button = new QPushButton(action->text(), this);
    button->setToolTip(action->toolTip());
    connect(button, &QPushButton::clicked, action, &QAction::trigger);
    button->installEventFilter(this);
    top->addWidget(button);
  }
  auto* hint =
      new QLabel(tr("Enter opens what is marked. Or drop a checkpoint (.h5), a model's folder, a prompt or a lesson on the window."), this);
  hint->setObjectName("faint");
  hint->setWordWrap(true);
  auto* layout = new QVBoxLayout(this);
  layout->addLayout(top);
  for (QWidget* widget : std::initializer_list<QWidget*>{hints_, line_}) layout->addWidget(widget);
  layout->addWidget(tree_, 1);
  layout->addWidget(nothing_);
  layout->addWidget(hint);
  setFocusProxy(line_);
  setTabOrder(line_, tree_);
  line_->installEventFilter(this);
  tree_->installEventFilter(this);
  connect(line_, &QLineEdit::textChanged, this, &StartPage::filter);
  connect(tree_, &QTreeWidget::itemClicked, this, &StartPage::choose);
}

StartPage::~StartPage() {
  if (asking_) *asking_ = false;
}

void StartPage::set_frame(const Frame& frame) {
  const auto px = [&frame](int length) { return static_cast<int>(static_cast<float>(length) * frame.scale); };
  layout()->setContentsMargins(px(16), px(8), px(16), px(8));
  layout()->setSpacing(px(8));
  tree_->header()->resizeSection(0, px(name_width));
}

void StartPage::show_hints(bool shown) { hints_->setVisible(shown); }

void StartPage::begin() { line_->setFocus(Qt::ShortcutFocusReason); }

void StartPage::fill(std::vector<ShelfItem> items) {
  const auto known = [this](const ShelfItem& item) -> QString {
    const auto same =
        std::ranges::find_if(items_, [&](const ShelfItem& before) { return before.shelf == item.shelf && before.path == item.path; });
    return item.about.isEmpty() && same != items_.end() ? same->about : item.about;
  };
  for (ShelfItem& item : items) item.about = known(item);
  items_ = std::move(items);
  const QSignalBlocker quiet(line_);
  line_->clear();
  tree_->clear();
  rows_.clear();
  QTreeWidgetItem* shelf = nullptr;
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (i == 0 || items_[i].shelf != items_[i - 1].shelf) {
      shelf = new QTreeWidgetItem(tree_, {title_of(items_[i].shelf)});
      shelf->setFlags(Qt::ItemIsEnabled);
      shelf->setFirstColumnSpanned(true);
      shelf->setExpanded(true);
      QFont bold = tree_->font();
      bold.setBold(true);
      shelf->setFont(0, bold);
    }
    rows_.push_back(new QTreeWidgetItem(shelf));
    set_words(*rows_.back(), items_[i]);
  }
  filter();
}

void StartPage::set_words(QTreeWidgetItem& row, const ShelfItem& item) {
  row.setText(0, item.name);
  row.setText(1, item.about);
  row.setToolTip(0, QString::fromStdString(item.path.string()));
  row.setToolTip(1, item.about.isEmpty() ? QString() : QStringLiteral("<p>%1</p>").arg(item.about.toHtmlEscaped()));
  row.setData(0, Qt::AccessibleTextRole, item.about.isEmpty() ? item.name : QStringLiteral("%1. %2").arg(item.name, item.about));
}

void StartPage::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  if (!asking_) ask_about_models();
}

/// Beside the interface, once.
void StartPage::ask_about_models() {
  std::vector<std::filesystem::path> models;
  for (const ShelfItem& item : items_)
    if (item.shelf == Shelf::models) models.push_back(item.path);
  if (models.empty()) return;
  asking_ = std::make_shared<std::atomic<bool>>(true);
  readers_.start([self = QPointer<StartPage>(this), wanted = asking_, models = std::move(models)] {
    tell_about_models(models, [&](const std::filesystem::path& model, const QString& about) {
      if (!*wanted) return false;
      QMetaObject::invokeMethod(
          qApp,
          [self, model, about] {
            if (self) self->show_about(model, about);
          },
          Qt::QueuedConnection);
      return true;
    });
  });
}

void StartPage::show_about(const std::filesystem::path& model, const QString& about) {
  for (std::size_t i = 0; i < items_.size(); ++i) {
    if (items_[i].shelf != Shelf::models || items_[i].path != model) continue;
    items_[i].about = about;
    set_words(*rows_[i], items_[i]);
  }
  if (!line_->text().trimmed().isEmpty()) filter();
}

std::vector<QTreeWidgetItem*> StartPage::shown_rows() const {
  std::vector<QTreeWidgetItem*> shown;
  for (QTreeWidgetItem* row : rows_)
    if (!row->isHidden()) shown.push_back(row);
  return shown;
}

/// What fits what is typed, the best of it marked, of equals the first; with nothing typed everything, and what was marked stays.
void StartPage::filter() {
  const std::string typed = line_->text().trimmed().toStdString();
  const QStringList words = line_->text().split(' ', Qt::SkipEmptyParts);
  std::optional<int> best;
  QTreeWidgetItem* best_row = nullptr;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::optional<int> by_name = fuzzy_fit(typed, items_[i].name.toStdString());
    const QString all = items_[i].name + ' ' + QString::fromStdString(items_[i].path.stem().string()) + ' ' + items_[i].about;
    const bool fits = by_name || std::ranges::all_of(words, [&](const QString& word) { return all.contains(word, Qt::CaseInsensitive); });
    rows_[i]->setHidden(!fits);
    const bool better = !typed.empty() && by_name > best;
    if (fits && (!best_row || better)) best = by_name, best_row = rows_[i];
  }
  for (int shelf = 0; shelf < tree_->topLevelItemCount(); ++shelf) {
    QTreeWidgetItem* const title = tree_->topLevelItem(shelf);
    bool any = false;
    for (int row = 0; row < title->childCount(); ++row) any = any || !title->child(row)->isHidden();
    title->setHidden(!any);
  }
  QTreeWidgetItem* const stays = typed.empty() && tree_->currentItem() && tree_->currentItem()->parent() ? tree_->currentItem() : best_row;
  tree_->setCurrentItem(stays);
  nothing_->setText(tr("Nothing here is called “%1”.").arg(line_->text().trimmed()));
  nothing_->setVisible(!best_row);
}

void StartPage::choose(QTreeWidgetItem* row) {
  const auto found = std::ranges::find(rows_, row);
  if (found == rows_.end()) return;
  const ShelfItem item = items_[static_cast<std::size_t>(found - rows_.begin())];  // a copy: the page is filled again
  Q_EMIT chosen(item.shelf, item.path);
}

void StartPage::go(int direction) {
  const std::vector<QTreeWidgetItem*> shown = shown_rows();
  if (shown.empty()) return;
  const auto here = std::ranges::find(shown, tree_->currentItem());
  const std::ptrdiff_t at = here == shown.end() ? -1 : here - shown.begin();
  tree_->setCurrentItem(shown[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(at + direction, 0, std::ssize(shown) - 1))]);
}

/// What is typed is sought, though the list or a button has the keyboard.
bool StartPage::take_letter(const QObject* watched, QKeyEvent& key) {
  const bool types = !(key.modifiers() & (Qt::ControlModifier | Qt::AltModifier)) && !key.text().isEmpty() && key.text().front().isPrint();
  if (watched == line_ || !types || key.key() == Qt::Key_Space) return false;
  if (key.type() == QEvent::KeyPress) {
    line_->setFocus(Qt::ShortcutFocusReason);
    line_->insert(key.text());
  }
  key.accept();
  return true;
}

/// Up, Down, Page Up, Page Down and Enter are the list's, be the keyboard there or in the line.
bool StartPage::eventFilter(QObject* watched, QEvent* event) {
  const bool key = event->type() == QEvent::KeyPress || event->type() == QEvent::ShortcutOverride;
  if (!key) return QWidget::eventFilter(watched, event);
  const bool pressed = event->type() == QEvent::KeyPress;
  if (take_letter(watched, *static_cast<QKeyEvent*>(event))) return true;
  if (watched != line_ && watched != tree_) return QWidget::eventFilter(watched, event);
  constexpr int page = 10;
  int steps = 0;
  switch (static_cast<QKeyEvent*>(event)->key()) {
    case Qt::Key_Up:
      steps = -1;
      break;
    case Qt::Key_Down:
      steps = 1;
      break;
    case Qt::Key_PageUp:
      steps = -page;
      break;
    case Qt::Key_PageDown:
      steps = page;
      break;
    case Qt::Key_Return:
    case Qt::Key_Enter:
      break;
    case Qt::Key_Escape:
      if (line_->text().isEmpty()) return QWidget::eventFilter(watched, event);
      if (pressed) line_->clear();
      event->accept();
      return true;
    default:
      return QWidget::eventFilter(watched, event);
  }
  if (pressed && steps != 0) go(steps);
  if (pressed && steps == 0) choose(tree_->currentItem());
  event->accept();  // they are the window's as well
  return true;
}

}  // namespace statescope
