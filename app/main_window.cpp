#include "app/main_window.h"

#include <QAbstractItemView>
#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QApplication>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QStatusBar>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "app/canvas/paper_canvas.h"
#include "app/cli_commands.h"
#include "app/theme.h"

namespace statescope {
namespace {

constexpr int most_recent = 8;
constexpr int table_delay_ms = 500;
constexpr QSize least_size{640, 400};

// Of the window, at 1×: below these, things fold away.
constexpr float least_width_with_side = 900;
constexpr float high = 680, low = 480, very_low = 400;

QString path_text(const std::filesystem::path& path) { return QString::fromStdString(path.string()); }

/// Keys that belong to a widget which has the focus, though they are the window's as well.
bool belongs_to(const QWidget& widget, int key) {
  const auto is = [key](std::initializer_list<int> keys) { return std::ranges::find(keys, key) != keys.end(); };
  const bool moves =
      is({Qt::Key_Up, Qt::Key_Down, Qt::Key_Left, Qt::Key_Right, Qt::Key_Home, Qt::Key_End, Qt::Key_PageUp, Qt::Key_PageDown});
  if (qobject_cast<const QAbstractItemView*>(&widget) || qobject_cast<const QAbstractSlider*>(&widget)) return moves;
  if (qobject_cast<const QComboBox*>(&widget) || qobject_cast<const QAbstractSpinBox*>(&widget)) return moves || key == Qt::Key_Space;
  return qobject_cast<const QAbstractButton*>(&widget) && key == Qt::Key_Space;
}

}  // namespace

MainWindow::MainWindow(RunSource& source, const WindowSetup& setup)
    : navigator_(std::make_unique<Navigator>(source)), settings_(setup.settings), theme_(setup.theme), system_is_dark_(system_is_dark()) {
  setObjectName("window");
  setWindowTitle("Statescope");
  setAcceptDrops(true);
  navigator_->set_autoplay(setup.autoplay);
  if (settings_) {
    reduce_motion_ = settings_->value("reduce-motion", false).toBool();
    if (theme_ == ThemeChoice::system) theme_ = static_cast<ThemeChoice>(std::clamp(settings_->value("theme", 0).toInt(), 0, 2));
  }
  navigator_->set_reduce_motion(reduce_motion_);
  const float remembered = settings_ ? settings_->value("scale", 1.0f).toFloat() : 1.0f;
  frame_.scale = std::clamp(setup.scale > 0 ? setup.scale : remembered, 1.0f, 3.0f);

  make_actions();
  make_menu();
  header_ = new Header(*navigator_, action("side"), action("cancel"), this);
  error_ = new ErrorBar(this);
  pages_ = new QStackedWidget(this);
  pages_->addWidget(make_welcome());
  pages_->addWidget(make_work(setup.opengl));
  auto* center = new QWidget(this);
  auto* layout = new QVBoxLayout(center);
  layout->addWidget(header_);
  layout->addWidget(error_);
  layout->addWidget(pages_, 1);
  gaps_.push_back(layout);
  setCentralWidget(center);
  QMainWindow::layout()->setSizeConstraint(QLayout::SetNoConstraint);  // what does not fit folds away; the window never grows by itself
  setMinimumSize(least_size);
  statusBar()->setSizeGripEnabled(false);
  statusBar()->addWidget(new QLabel(setup.start_words, this));

  connect(navigator_.get(), &Navigator::run_changed, this, &MainWindow::show_run);
  connect(navigator_.get(), &Navigator::opened, error_, &QWidget::hide);
  connect(navigator_.get(), &Navigator::progressed, this, [this] {
    pages_->setCurrentIndex(1);
    fold();
  });
  connect(navigator_.get(), &Navigator::opening_ended, this, [this] {
    pages_->setCurrentIndex(navigator_->run() ? 1 : 0);
    if (table_delay_.isActive()) show_table();
    fold();
  });
  connect(navigator_.get(), &Navigator::failed, this, &MainWindow::show_error);
  connect(navigator_.get(), &Navigator::device_failed, this, &MainWindow::show_error);
  connect(navigator_.get(), &Navigator::playing_changed, this,
          [this] { action("play")->setIcon(icon_of(navigator_->is_playing() ? "pause" : "play", frame_.theme)); });
  connect(transport_, &Transport::asked, this, [this] {
    focused_->surface().setFocus();
    fold();
  });
  qApp->installEventFilter(this);
  if (settings_) restoreGeometry(settings_->value("geometry").toByteArray());
  fill_recent();
  apply_look();
  focused_->surface().setFocus();
}

MainWindow::~MainWindow() {
  qApp->removeEventFilter(this);
  delete takeCentralWidget();  // before the navigator that its widgets look at
}

QAction* MainWindow::action(std::string_view id) const { return actions_.find(id)->second; }

void MainWindow::run_command(const Command& command, int key) {
  if (command.id != "play") navigator_->take_over();
  command.run(*this, key);
  update_ticks();
}

void MainWindow::make_actions() {
  for (const Command& command : commands()) {
    const QList<QKeySequence> keys = keys_of(command);
    const int copies = command.one_per_key ? static_cast<int>(keys.size()) : 1;
    for (int i = 0; i < copies; ++i) {
      const QString text = QString::fromUtf8(command.text);
      auto* made = new QAction(command.one_per_key ? QStringLiteral("%1 %2").arg(text, keys[i].toString()) : text, this);
      made->setShortcuts(command.one_per_key ? QList{keys[i]} : keys);
      made->setCheckable(command.checked != nullptr);
      if (!keys.isEmpty())
        made->setToolTip(QStringLiteral("%1 (%2)").arg(made->text(), made->shortcut().toString(QKeySequence::NativeText)));
      connect(made, &QAction::triggered, this, [this, &command, i] { run_command(command, i); });
      addAction(made);  // so that its keys work where the menu is hidden
      actions_[std::string(command.id) + (command.one_per_key ? std::to_string(i + 1) : std::string())] = made;
    }
  }
}

void MainWindow::make_menu() {
  std::map<std::pair<Menu, std::string>, QMenu*> menus;
  const auto menu_of = [&](const Command& command) {
    QMenu*& menu = menus[{command.menu, ""}];
    if (!menu) menu = menuBar()->addMenu(title_of(command.menu));
    if (!command.submenu) return menu;
    QMenu*& submenu = menus[{command.menu, command.submenu}];
    if (!submenu) submenu = menu->addMenu(QString::fromUtf8(command.submenu));
    return submenu;
  };
  for (const Command& command : commands()) {
    if (command.id == "quit") recent_ = menu_of(command)->addMenu("Recent");
    if (!command.one_per_key)
      menu_of(command)->addAction(action(command.id));
    else
      for (int i = 1; actions_.contains(std::string(command.id) + std::to_string(i)); ++i)
        menu_of(command)->addAction(action(std::string(command.id) + std::to_string(i)));
  }
}

QWidget* MainWindow::make_welcome() {
  auto* page = new QWidget(this);
  auto* layout = new QVBoxLayout(page);
  auto* heading = new QLabel("Drop a checkpoint here", page);
  heading->setObjectName("model");
  auto* hint = new QLabel("An .h5 file or a model's folder. Then drop a prompt, or write one.", page);
  hint->setObjectName("faint");
  hint->setWordWrap(true);
  layout->addStretch(1);
  for (QLabel* label : {heading, hint}) {
    label->setAlignment(Qt::AlignCenter);
    layout->addWidget(label);
  }
  auto* row = new QHBoxLayout;
  row->addStretch(1);
  for (const std::string_view id : {"open-file", "open-folder"}) {
    auto* button = new QPushButton(action(id)->text(), page);
    button->setToolTip(action(id)->toolTip());
    connect(button, &QPushButton::clicked, action(id), &QAction::trigger);
    row->addWidget(button);
  }
  row->addStretch(1);
  layout->addLayout(row);
  layout->addStretch(2);
  gaps_.push_back(row);
  return page;
}

QWidget* MainWindow::make_work(bool opengl) {
  auto* page = new QWidget(this);
  stage_ = new Stage(*navigator_, opengl, page);
  side_ = new Side(*navigator_, page);
  strip_ = new ViewPanel(*navigator_, *find_view(strip_view), opengl, false, page);
  transport_ = new Transport(*navigator_, [this](std::string_view id) { return action(id); }, page);
  strip_->layout()->addWidget(transport_);
  auto* middle = new QHBoxLayout;
  middle->addWidget(stage_, 1);
  middle->addWidget(side_);
  auto* layout = new QVBoxLayout(page);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addLayout(middle, 1);
  layout->addWidget(strip_);
  gaps_ += {middle, layout};

  focused_ = &stage_->focused_panel();
  connect(stage_, &Stage::focus_moved, this, [this] { focus_panel(stage_->focused_panel()); });
  connect(strip_, &ViewPanel::focused, this, [this] { focus_panel(*strip_); });
  table_delay_.setSingleShot(true);
  table_delay_.setInterval(table_delay_ms);
  connect(&table_delay_, &QTimer::timeout, this, &MainWindow::show_table);
  std::vector<ViewPanel*> panels = stage_->panels();
  panels.push_back(strip_);
  for (const ViewPanel* panel : panels)
    connect(panel, &ViewPanel::changed, this, [this, panel] {
      if (panel == focused_) show_table_soon();
    });
  return page;
}

void MainWindow::focus_panel(ViewPanel& panel) {
  focused_ = &panel;
  show_table();
}

void MainWindow::show_table() {
  table_delay_.stop();
  side_->inspector().show_table_of(*focused_);
}

/// At once, but for a run that grows many times a second.
void MainWindow::show_table_soon() {
  if (!navigator_->is_opening())
    show_table();
  else if (!table_delay_.isActive())
    table_delay_.start();
}

void MainWindow::show_run() {
  setWindowTitle(QStringLiteral("%1 – Statescope").arg(QString::fromStdString(navigator_->run()->model.name)));
}

void MainWindow::show_error(const QString& message) { error_->show_message(message); }

void MainWindow::open_checkpoint(const std::filesystem::path& path, PromptInput prompt) {
  error_->hide();
  remember_recent(path_text(std::filesystem::absolute(path)));
  navigator_->open(path, std::move(prompt));
}

void MainWindow::open_path(const std::filesystem::path& path) {
  const std::string kind = path.extension().string();
  if (kind != ".json" && kind != ".txt") return open_checkpoint(path, navigator_->prompt());
  try {
    navigator_->read(load_prompt({.text = {}, .ids = {}, .file = path.string()}));
  } catch (const std::exception& error) {
    show_error(QString::fromUtf8(error.what()));
  }
}

void MainWindow::choose_checkpoint_file() {
  const QString path = QFileDialog::getOpenFileName(this, "Open checkpoint", {}, "Checkpoints (*.h5);;All files (*)");
  if (!path.isEmpty()) open_path(path.toStdString());
}

void MainWindow::choose_checkpoint_folder() {
  const QString path = QFileDialog::getExistingDirectory(this, "Open model folder");
  if (!path.isEmpty()) open_path(path.toStdString());
}

void MainWindow::choose_prompt_file() {
  const QString path = QFileDialog::getOpenFileName(this, "Open prompt", {}, "Prompts (*.json *.txt)");
  if (!path.isEmpty()) open_path(path.toStdString());
}

void MainWindow::show_page(SidePage page) {
  pages_->setCurrentIndex(1);
  side_wanted_ = true;
  const bool again = side_->isVisible() && side_->page() == page;
  side_->show_page(again ? SidePage::inspector : page);
  fold();
}

void MainWindow::go_to_token(std::int64_t token) { navigator_->step(token - navigator_->cursor().token); }

void MainWindow::ask_for_token() {
  transport_->show();
  transport_->ask_for_token();
}

void MainWindow::choose_slot(const std::string& name) {
  const LayerInfo* layer = navigator_->layer_info();
  if (!layer) return;
  const auto found = std::ranges::find(layer->slot_names, name);
  if (found == layer->slot_names.end()) return;
  CursorMove change;
  change.slot = found - layer->slot_names.begin();
  navigator_->move(change);
}

void MainWindow::set_theme(ThemeChoice choice) {
  theme_ = choice;
  remember("theme", static_cast<int>(choice));
  apply_look();
}

void MainWindow::set_scale(float scale) {
  frame_.scale = std::clamp(scale, 1.0f, 3.0f);
  remember("scale", frame_.scale);
  apply_look();
}

void MainWindow::set_reduce_motion(bool reduce) {
  reduce_motion_ = reduce;
  remember("reduce-motion", reduce);
  navigator_->set_reduce_motion(reduce);
}

void MainWindow::apply_look() {
  const bool dark = theme_ == ThemeChoice::dark || (theme_ == ThemeChoice::system && system_is_dark_);
  frame_.theme = dark ? dark_theme() : light_theme();
  qApp->setPalette(palette_of(frame_.theme));
  qApp->setFont(paper_font({.size = 13 * frame_.scale, .color = frame_.theme.ink}));
  qApp->setStyleSheet(style_sheet_of(frame_));
  for (const char* id : {"first", "last", "play"}) action(id)->setIcon(icon_of(id, frame_.theme));
  action("previous")->setIcon(icon_of("back", frame_.theme));
  action("next")->setIcon(icon_of("forward", frame_.theme));
  action("side")->setIcon(icon_of("side", frame_.theme));
  action("cancel")->setIcon(icon_of("close", frame_.theme));
  header_->set_frame(frame_);
  error_->set_frame(frame_);
  stage_->set_frame(frame_);
  side_->set_frame(frame_);
  strip_->set_frame(frame_);
  transport_->set_frame(frame_);
  const int gap = static_cast<int>(std::lround(8 * frame_.scale));
  for (QLayout* layout : gaps_) layout->setSpacing(gap);
  centralWidget()->layout()->setContentsMargins(gap, 0, gap, 0);
  update_ticks();
  fold();
}

void MainWindow::fold() {
  const float columns = static_cast<float>(width()) / frame_.scale, lines = static_cast<float>(height()) / frame_.scale;
  const bool was_shown = side_->isVisibleTo(this);
  const bool room = columns >= least_width_with_side;
  const bool asked = side_->page() != SidePage::inspector;  // then the stage gives way
  side_->setVisible(side_wanted_ && !presenting_ && (room || asked));
  side_->set_wide(!room);
  stage_->setVisible(room || !side_->isVisibleTo(this));
  menuBar()->setVisible(!presenting_);
  statusBar()->setVisible(!presenting_ && lines >= low);
  header_->setVisible(lines >= low || navigator_->is_opening());
  transport_->setVisible(lines >= very_low);
  for (ViewPanel* panel : stage_->panels()) panel->set_title_shown(lines >= very_low);
  const float transport = 40, one_line = 96, two_lines = 172;
  const float strip = (lines < high ? one_line : two_lines) + (lines < very_low ? 0 : transport);
  strip_->setFixedHeight(static_cast<int>(strip * frame_.scale));
  if (!was_shown) show_table();
}

void MainWindow::toggle_side() {
  side_wanted_ = !side_wanted_;
  fold();
}

void MainWindow::toggle_presenter() {
  presenting_ = !presenting_;
  if (presenting_)
    showFullScreen();
  else
    showNormal();
  fold();
}

void MainWindow::escape() {
  if (navigator_->is_opening())
    navigator_->cancel();
  else if (error_->isVisible())
    error_->hide();
  else if (side_->page() != SidePage::inspector)
    show_page(SidePage::inspector);
  else if (presenting_)
    toggle_presenter();
  focused_->surface().setFocus();
}

void MainWindow::update_ticks() {
  for (const Command& command : commands())
    if (command.checked) action(command.id)->setChecked(command.checked(*this));
}

void MainWindow::remember(const QString& key, const QVariant& value) {
  if (settings_) settings_->setValue(key, value);
}

void MainWindow::remember_recent(const QString& path) {
  if (!settings_) return;
  QStringList paths = settings_->value("recent").toStringList();
  paths.removeAll(path);
  paths.prepend(path);
  settings_->setValue("recent", QStringList(paths.mid(0, most_recent)));
  fill_recent();
}

void MainWindow::fill_recent() {
  const QStringList paths = settings_ ? settings_->value("recent").toStringList() : QStringList();
  recent_->clear();
  recent_->setEnabled(!paths.isEmpty());
  for (const QString& path : paths)
    connect(recent_->addAction(path), &QAction::triggered, this, [this, path] { open_path(path.toStdString()); });
}

bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride) {
    const auto* widget = qobject_cast<QWidget*>(watched);
    const auto* key = static_cast<QKeyEvent*>(event);
    if (widget && !(key->modifiers() & Qt::AltModifier) && belongs_to(*widget, key->key())) {
      navigator_->take_over();
      event->accept();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  fold();
}

void MainWindow::dragEnterEvent(QDragEnterEvent* event) {
  if (event->mimeData()->hasUrls()) event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent* event) {
  const QList<QUrl> urls = event->mimeData()->urls();
  if (!urls.isEmpty()) open_path(urls.first().toLocalFile().toStdString());
}

void MainWindow::closeEvent(QCloseEvent* event) {
  remember("geometry", saveGeometry());
  QMainWindow::closeEvent(event);
}

}  // namespace statescope
