#include "app/window/main_window.h"

#include <QAbstractItemView>
#include <QAbstractSlider>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QApplication>
#include <QMenuBar>
#include <QStatusBar>
#include <QVBoxLayout>
#include <algorithm>
#include <initializer_list>
#include <utility>

#include "app/controls/theme.h"
#include "app/lesson/lesson_page.h"
#include "app/lesson/teacher_window.h"
#include "app/pages/breakpoint_page.h"
#include "app/pages/intervention_page.h"
#include "app/pages/key_page.h"
#include "app/pages/model_page.h"
#include "app/pages/training_page.h"
#include "app/pages/words_page.h"
#include "app/panels/find_bar.h"
#include "app/window/branch_commands.h"
#include "app/window/context_menu.h"
#include "app/window/figure_page.h"
#include "app/window/preferences_page.h"

namespace statescope {
namespace {

constexpr int table_delay_ms = 500;

/// Keys that belong to a widget which has the focus, though they are the window's as well.
bool belongs_to(const QWidget& widget, const QKeyEvent& event) {
  const int key = event.key();
  const auto is = [key](std::initializer_list<int> keys) { return std::ranges::find(keys, key) != keys.end(); };
  const bool moves =
      is({Qt::Key_Up, Qt::Key_Down, Qt::Key_Left, Qt::Key_Right, Qt::Key_Home, Qt::Key_End, Qt::Key_PageUp, Qt::Key_PageDown});
  if (qobject_cast<const QListWidget*>(&widget) && key == Qt::Key_Space) return true;  // ticks what can be ticked
  if (qobject_cast<const QAbstractItemView*>(&widget) || qobject_cast<const QAbstractSlider*>(&widget)) return moves;
  const bool types = !(event.modifiers() & Qt::ControlModifier) && !event.text().isEmpty() && event.text().front().isLetterOrNumber();
  if (qobject_cast<const QComboBox*>(&widget) && types) return true;  // looks for what begins so
  if (qobject_cast<const QComboBox*>(&widget) || qobject_cast<const QAbstractSpinBox*>(&widget)) return moves || key == Qt::Key_Space;
  return qobject_cast<const QAbstractButton*>(&widget) && key == Qt::Key_Space;
}

}  // namespace

MainWindow::MainWindow(RunSource& source, const WindowSetup& setup)
    : navigator_(std::make_unique<Navigator>(source)),
      comparison_(std::make_unique<Comparison>(*navigator_, setup.make_source)),
      settings_(setup.settings),
      lesson_progress_(setup.settings),
      theme_(setup.theme),
      system_is_dark_(system_is_dark()) {
  setObjectName("window");
  setWindowTitle("Statescope");
  setAcceptDrops(true);
  since_start_.start();
  is_elsewhere_ = setup.is_elsewhere;
  recall(setup);

  playback_ = new Playback(*navigator_, this);
  actions_ = new Actions(*this, *this, settings_);
  actions_->fill(*menuBar());
  recent_ = new QMenu(tr("Recent"), menuBar());
  actions_->menu(Menu::file)->insertMenu(action("quit"), recent_);
  list_views();
  header_ = new Header(*navigator_, *comparison_, action("side"), action("cancel"), action("model"), this);
  error_ = new ErrorBar(this);
  pages_ = new QStackedWidget(this);
  pages_->addWidget(make_start());
  pages_->addWidget(make_work(setup.opengl));
  make_pages(setup);
  fill_lessons();
  auto* center = new QWidget(this);
  auto* layout = new QVBoxLayout(center);
  layout->addWidget(header_);
  layout->addWidget(error_);
  layout->addWidget(pages_, 1);
  gaps_.push_back(layout);
  setCentralWidget(center);
  QMainWindow::layout()->setSizeConstraint(QLayout::SetNoConstraint);  // what does not fit folds away; the window never grows by itself
  make_status_bar(setup.start_words);
  make_overlays(*center);

  make_connections();
  qApp->installEventFilter(this);
  recall_arrangement();
  fill_recent();
  apply_look();
  show_start();
  QTimer::singleShot(0, this, &MainWindow::recall_apart);
}

/// What was chosen last time, where nothing else is asked for.
void MainWindow::recall(const WindowSetup& setup) {
  if (settings_) {
    reduce_motion_ = settings_->value("reduce-motion", false).toBool();
    autoplay_ = settings_->value("autoplay", true).toBool();
    if (theme_ == ThemeChoice::system)
      theme_ = static_cast<ThemeChoice>(std::clamp(settings_->value("theme", 0).toInt(), 0, static_cast<int>(ThemeChoice::high_contrast)));
  }
  navigator_->set_autoplay(setup.autoplay && autoplay_);
  navigator_->set_reduce_motion(reduce_motion_);
  const float remembered = settings_ ? settings_->value("scale", 1.0f).toFloat() : 1.0f;
  scale_ = std::clamp(setup.scale > 0 ? setup.scale : remembered, 1.0f, 3.0f);
}

void MainWindow::recall_arrangement() {
  if (!settings_) return;
  kept_ = arrangement_from(settings_->value("own-arrangement").toString());
  const QStringList opened = settings_->value("opening-views").toStringList();
  if (opened.size() == 2) opening_views_ = {opened[0].toStdString(), opened[1].toStdString()};
  if (const auto arrangement = arrangement_from(settings_->value("arrangement").toString())) arrange(*arrangement);
}

void MainWindow::make_status_bar(const QString& start_words) {
  statusBar()->setSizeGripEnabled(false);
  statusBar()->addWidget(new QLabel(start_words, this));
  said_ = new QLabel(this);
  said_->setAccessibleName(tr("Last message"));
  statusBar()->addPermanentWidget(said_);
}

/// What comes over everything else: the palette, the black screen, the frame of what is dragged.
void MainWindow::make_overlays(QWidget& center) {
  palette_ = new Palette(&center);
  blank_ = new QWidget(&center);
  blank_->setObjectName("blank");
  blank_->setAccessibleName(tr("Blank screen"));
  blank_->hide();
  dropping_ = new QFrame(&center);
  dropping_->setObjectName("dropping");
  dropping_->setAttribute(Qt::WA_TransparentForMouseEvents);
  dropping_->hide();
}

void MainWindow::make_connections() {
  follow_navigator();
  connect(error_, &ErrorBar::dismissed, this, [this] { navigator_->stay(); });
  connect(comparison_.get(), &Comparison::added, this, &MainWindow::fold);
  connect(comparison_.get(), &Comparison::removed, this, &MainWindow::fold);
  connect(comparison_.get(), &Comparison::changed, this, &MainWindow::reopen_views);
  connect(stage_, &Stage::example_chosen, this, &MainWindow::open_example);
  connect(actions_, &Actions::triggered, this, &MainWindow::run_command);
  connect(&header_->chips(), &ModelChips::chosen, rows_, qOverload<const PeerRun*>(&ModelRows::bring_up));
  connect(playback_, &Playback::said, this, &MainWindow::say);
  connect(playback_, &Playback::changed, this, [this] {
    actions_->update_ticks();
    transport_->show_marks(*playback_);
  });
  connect(palette_, &Palette::left, this, &MainWindow::take_keyboard);
  connect(transport_, &Transport::spoke, this, &MainWindow::say);
  connect(side_, &Side::left, this, [this] { show_page(SidePage::inspector); });
  connect(&side_->prompt(), &PromptPage::spoke, this, &MainWindow::say);
  connect(transport_, &Transport::asked, this, [this] {
    focused_->surface().setFocus();
    fold();
  });
}

void MainWindow::follow_navigator() {
  connect(navigator_.get(), &Navigator::run_changed, this, &MainWindow::show_run);
  connect(navigator_.get(), &Navigator::opened, error_, &QWidget::hide);
  connect(navigator_.get(), &Navigator::opened, this, [this] { places_.clear(); });
  connect(navigator_.get(), &Navigator::opened, this, &MainWindow::reopen_views);
  connect(navigator_.get(), &Navigator::opened, this, [this] {  // from the text that was just read the keys go back to the views
    if (side_->isAncestorOf(QApplication::focusWidget()) && side_->page() == SidePage::prompt) focused_->surface().setFocus();
  });
  connect(navigator_.get(), &Navigator::placed, this, [this](const QString& views) {
    if (const auto arrangement = arrangement_from(views)) arrange(*arrangement);
  });
  connect(navigator_.get(), &Navigator::cursor_changed, this, &MainWindow::stand);
  connect(navigator_.get(), &Navigator::cursor_changed, this,
          [this] { places_.arrive(navigator_->cursor(), since_start_.elapsed(), navigator_->is_playing()); });
  connect(navigator_.get(), &Navigator::progressed, this, [this] {
    show_work();
    fold();
  });
  connect(navigator_.get(), &Navigator::opening_ended, this, [this] {
    if (!navigator_->run() && pages_->currentIndex() == 1 && !lesson_->lesson()) show_start();
    if (table_delay_.isActive()) show_table();
    fold();
  });
  connect(navigator_.get(), &Navigator::failed, this, [this](const QString& message) {
    error_->show_message(message);
    if (!session_on_its_way_.empty()) offer_to_locate(*this, session_on_its_way_);
  });
  connect(navigator_.get(), &Navigator::opened, this, [this] { session_on_its_way_.clear(); });
  connect(navigator_.get(), &Navigator::remarked, this, &MainWindow::say);
  connect(navigator_.get(), &Navigator::device_failed, this, &MainWindow::show_error);
  connect(navigator_.get(), &Navigator::intervention_failed, this, [this](const QString& message) {
    const bool stands_there = side_->isVisible() && side_->page() == SidePage::interventions;
    if (!stands_there) show_error(message);
  });
  connect(navigator_.get(), &Navigator::branches_changed, this, &MainWindow::show_title);
  connect(navigator_.get(), &Navigator::session_saved, this, [this](const QString& path) {
    say(tr("Saved, and kept up to date from now on: %1").arg(path));
    if (!is_elsewhere_) remember_recent(path);
  });
  connect(navigator_.get(), &Navigator::playing_changed, this,
          [this] { action("play")->setIcon(icon_of(navigator_->is_playing() ? "pause" : "play", frame_.theme)); });
}

MainWindow::~MainWindow() {
  qApp->removeEventFilter(this);
  delete teacher_;             // it says when it goes
  delete takeCentralWidget();  // before the navigator that its widgets look at
}

void MainWindow::run_command(const Command& command, int key) {
  if (command.id != "play") navigator_->take_over();
  say({});
  command.run(*this, key);
  actions_->update_ticks();
}

/// After the pages that Side makes itself, in the order of SidePage.
void MainWindow::make_pages(const WindowSetup& setup) {
  keys_ = new KeyPage(*actions_);
  preferences_ = new PreferencesPage(*this, setup.start_words);
  figure_ = new FigurePage(*this);
  training_ = new TrainingPage(setup.inspect, setup.kept_inspections);
  side_->add_page(tr("Keys"), keys_);
  side_->add_page(tr("Preferences"), preferences_);
  side_->add_page(tr("Breakpoints"), new BreakpointPage(*playback_));
  side_->add_page(tr("Export this view"), figure_);
  side_->add_page(tr("Interventions"), new InterventionPage(*navigator_, *comparison_));
  side_->add_page(tr("About this model"), new ModelPage(*navigator_));
  side_->add_page(tr("Training"), training_);
  words_ = new WordsPage;
  side_->add_page(tr("What the words mean"), words_);
  follow_training();
}

QWidget* MainWindow::make_work(bool opengl) {
  auto* page = new QWidget(this);
  stage_ = new Stage(*navigator_, {action("view-add"), action("view-close"), action("view-large"), action("view-apart")}, opengl, page);
  opengl_ = opengl;
  rows_ = new ModelRows(*stage_, *navigator_, *comparison_, opengl, page);
  side_ = new Side(*navigator_, *actions_, page);
  strip_ = new ViewPanel(*navigator_, *find_view(strip_view), opengl, false, page);
  transport_ = new Transport(*navigator_, *actions_, page);
  find_ = new FindBar(*navigator_, page);
  strip_->layout()->addWidget(find_);
  strip_->layout()->addWidget(transport_);
  auto* middle = new QHBoxLayout;
  make_lessons(*page);
  middle->addWidget(rows_, 1);
  middle->addWidget(side_);
  auto* run = new QVBoxLayout;
  run->addLayout(middle, 1);
  run->addWidget(strip_);
  work_ = new QBoxLayout(QBoxLayout::LeftToRight, page);
  work_->setContentsMargins(0, 0, 0, 0);
  work_->addWidget(lesson_page_);
  work_->addLayout(run);
  gaps_ += {middle, run, work_};

  focused_ = &stage_->focused_panel();
  connect(rows_, &ModelRows::focus_moved, this, [this](ViewPanel* panel) { focus_panel(*panel); });
  connect(rows_, &ModelRows::spoke, this, &MainWindow::say);
  const auto show_menu = [this](ViewPanel* panel, const std::optional<Hit>& hit, QPoint at) { show_place_menu(*this, *panel, hit, at); };
  connect(rows_, &ModelRows::menu_wanted, this, show_menu);
  connect(strip_, &ViewPanel::menu_wanted, this,
          [this, show_menu](const std::optional<Hit>& hit, QPoint at) { show_menu(strip_, hit, at); });
  connect(&side_->inspector(), &Inspector::menu_wanted, this, [this](QTableView* table, QPoint at) { show_table_menu(*this, *table, at); });
  connect(find_, &FindBar::found_changed, this, &MainWindow::show_found);
  connect(find_, &FindBar::left, this, [this] {
    fold();
    take_keyboard();
  });
  connect(rows_, &ModelRows::leaving, this, [this](const QWidget* row) { leave(*row); });
  connect(stage_, &Stage::rearranged, this, &MainWindow::remember_arrangement);
  connect(stage_, &Stage::rearranged, this, &MainWindow::fold);
  connect(stage_, &Stage::look_changed, this, &MainWindow::remember_arrangement);
  connect(stage_, &Stage::torn_off, this, [this](ViewPanel* panel, QPoint at) { tear_off(*panel, at); });
  connect(strip_, &ViewPanel::focused, this, [this] { focus_panel(*strip_); });
  table_delay_.setSingleShot(true);
  table_delay_.setInterval(table_delay_ms);
  connect(&table_delay_, &QTimer::timeout, this, &MainWindow::show_table);
  const auto show_table_of = [this](const ViewPanel* panel) {
    if (panel == focused_) show_table_soon();
  };
  connect(rows_, &ModelRows::panel_changed, this, show_table_of);
  connect(strip_, &ViewPanel::changed, this, [this, show_table_of] { show_table_of(strip_); });
  return page;
}

void MainWindow::focus_panel(ViewPanel& panel) {
  focused_ = &panel;
  show_table();
}

/// The focus comes back to the window's own views.
void MainWindow::leave(const QWidget& row) {
  if (!row.isAncestorOf(focused_)) return;
  const bool had_focus = row.isAncestorOf(QApplication::focusWidget());
  focus_panel(stage_->focused_panel());
  if (had_focus) focused_->surface().setFocus();
}

void MainWindow::show_table() {
  table_delay_.stop();
  side_->inspector().show_table_of(*focused_);
  figure_->follow(*focused_);
}

/// At once, but for a run that grows many times a second.
void MainWindow::show_table_soon() {
  if (!navigator_->is_opening())
    show_table();
  else if (!table_delay_.isActive())
    table_delay_.start();
}

void MainWindow::show_run() {
  transport_->show_marks(*playback_);
  show_title();
}

/// No checkpoint waits for a prompt once another message stands where that was said.
void MainWindow::show_error(const QString& message) {
  navigator_->stay();
  error_->show_message(message);
}

void MainWindow::step_cell(std::int64_t rows, std::int64_t columns) {
  if (!focused_->step_mark(rows, columns)) navigator_->step_cell(rows, columns);
}

void MainWindow::show_page(SidePage page) {
  show_work();
  side_wanted_ = true;
  ViewPanel& view = *focused_;  // from a page that goes the keyboard would come to whatever is next
  const bool has_keyboard = !side_->currentWidget()->focusProxy() || side_->isAncestorOf(QApplication::focusWidget());
  const bool again = side_->isVisible() && side_->page() == page && has_keyboard;
  if (page == SidePage::preferences) preferences_->refresh();
  if (page == SidePage::figure) figure_->refresh();
  side_->show_page(again ? SidePage::inspector : page);
  fold();
  if (side_->page() == SidePage::inspector) view.surface().setFocus();
}

void MainWindow::go_to_token(std::int64_t token) { navigator_->step(token - navigator_->cursor().token); }

void MainWindow::arrange(const Arrangement& arrangement) {
  stage_->arrange(arrangement);
  rows_->follow_own();
  remember_arrangement();
  fold();
}

void MainWindow::arrange_as(const Preset& preset) {
  const RunInfo* run = navigator_->run().get();
  arrange(run ? arrangement_of(preset, run->model) : arrangement_of(preset.views));
  stage_->begin_with_first();
}

void MainWindow::keep_arrangement() {
  kept_ = stage_->arrangement();
  remember("own-arrangement", to_text(*kept_));
  say(tr("This arrangement is kept as your own"));
}

void MainWindow::arrange_as_kept() {
  if (kept_) arrange(*kept_);
}

void MainWindow::show_view(const ViewRow& row, std::size_t mode) {
  if (focused_ == strip_) stage_->focused_panel().surface().setFocus();
  if (&focused_->row() != &row) focused_->set_view(row);
  focused_->set_mode(mode);
  remember_arrangement();
}

void MainWindow::go_to(const std::optional<Cursor>& place) {
  if (!place) return;
  navigator_->move({.token = place->token,
                    .layer = place->layer,
                    .head = place->head,
                    .slot = place->slot,
                    .row = place->row,
                    .column = place->column,
                    .reference = place->reference});
}

void MainWindow::go_back() {
  const std::optional<Cursor> place = places_.back();
  if (place || departures_.empty()) return go_to(place);
  navigator_->read_to(departures_.back().prompt, departures_.back().token);
  departures_.pop_back();
}
void MainWindow::go_forth() { go_to(places_.forth()); }

/// Also for a screen reader.
void MainWindow::say(const QString& words) {
  if (words == said_->text()) return;
  said_->setText(words);
  fold();
  QAccessibleEvent alert(said_, QAccessible::NameChanged);
  QAccessible::updateAccessibility(&alert);
}

void MainWindow::escape() {
  if (blank_->isVisible())
    blank_->hide();
  else if (pages_->currentIndex() == 0 && navigator_->run())
    show_work();
  else if (navigator_->is_opening())
    navigator_->cancel();
  else if (comparison_->is_opening())
    comparison_->cancel();
  else if (error_->isVisible())
    error_->dismiss();
  else if (side_->page() != SidePage::inspector)
    show_page(SidePage::inspector);
  else if (comparison_->branch())
    comparison_->remove_branch();
  else if (presenting_)
    toggle_presenter();
  else if (lesson_->lesson())
    say(tr("%1 leaves the lesson").arg(action("lesson-leave")->shortcut().toString(QKeySequence::NativeText)));
  else if (navigator_->cursor().reference >= 0)
    end_reference();
  take_keyboard();
}

void MainWindow::remember(const QString& key, const QVariant& value) {
  if (settings_) settings_->setValue(key, value);
}

/// That of a lesson is not the reader's.
void MainWindow::remember_arrangement() {
  if (lesson_->lesson()) return;
  remember("arrangement", to_text(stage_->arrangement()));
  stand();
}

/// A session is saved with where the reader stands and what is shown there.
void MainWindow::stand() { navigator_->stand(to_text(stage_->arrangement()).toStdString()); }

/// Enter presses a button that has the keyboard, as Space does.
bool MainWindow::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress) {
    const int key = static_cast<QKeyEvent*>(event)->key();
    auto* const button = qobject_cast<QPushButton*>(watched);
    if (button && button->hasFocus() && (key == Qt::Key_Return || key == Qt::Key_Enter)) {
      button->click();
      return true;
    }
  }
  if (event->type() == QEvent::ShortcutOverride) {
    if (QApplication::activePopupWidget()) {  // every key is its own
      event->accept();
      return true;
    }
    const auto* widget = qobject_cast<QWidget*>(watched);
    const auto* key = static_cast<QKeyEvent*>(event);
    if (widget && !(key->modifiers() & Qt::AltModifier) && belongs_to(*widget, *key)) {
      navigator_->take_over();
      event->accept();
      return true;
    }
  }
  return QMainWindow::eventFilter(watched, event);
}

void MainWindow::resizeEvent(QResizeEvent* event) {
  QMainWindow::resizeEvent(event);
  blank_->setGeometry(centralWidget()->rect());
  fold();
}

void MainWindow::closeEvent(QCloseEvent* event) {
  remember("geometry", presenting_ ? place_before_presenting_ : saveGeometry());
  lesson_->leave();
  teacher_->hide();
  hide_apart();
  remember_arrangement();
  QMainWindow::closeEvent(event);
}

}  // namespace statescope
