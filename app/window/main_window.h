// The window: stage, inspector, text and time around one navigator.
#pragma once

#include <QBoxLayout>
#include <QElapsedTimer>
#include <QMainWindow>
#include <QSettings>
#include <QStackedWidget>
#include <QTimer>
#include <memory>
#include <string>

#include "app/controls/actions.h"
#include "app/controls/palette.h"
#include "app/lesson/progress.h"
#include "app/pages/training_watch.h"
#include "app/panels/arrangement.h"
#include "app/panels/header.h"
#include "app/panels/model_rows.h"
#include "app/panels/side.h"
#include "app/panels/stage.h"
#include "app/panels/transport.h"
#include "app/runs/comparison.h"
#include "app/runs/navigator.h"
#include "app/runs/playback.h"
#include "app/window/places.h"
#include "app/window/window_main.h"

namespace statescope {

class FigurePage;
class FindBar;
class KeyPage;
class LessonPage;
class LessonPlayer;
class PreferencesPage;
class StartPage;
class TeacherWindow;
class ViewWindow;
class TrainingPage;
class WordsPage;

/// How the window is made; the rest of WindowOptions is the caller's business.
struct WindowSetup {
  bool opengl = false;
  QString start_words;  // for the status bar: how it is drawn, and whatever else is not as it was asked for
  ThemeChoice theme = ThemeChoice::system;
  float scale = 0;                // 0: as last time
  QSettings* settings = nullptr;  // null: nothing is remembered
  bool autoplay = true;
  MakeSource make_source;          // of each model that is compared; empty: none can be
  TrainingWatch::Inspect inspect;  // each checkpoint of a training that is watched
  std::optional<KeptResults> kept_inspections = {};
  bool is_elsewhere = false;  // checkpoints and sessions are those of an engine on another machine
};

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  MainWindow(RunSource& source, const WindowSetup& setup);
  ~MainWindow() override;

  Navigator& navigator() { return *navigator_; }
  const Navigator& navigator() const { return *navigator_; }
  Comparison& comparison() { return *comparison_; }
  const Comparison& comparison() const { return *comparison_; }
  ModelRows& rows() { return *rows_; }
  const ModelRows& rows() const { return *rows_; }
  Stage& stage() { return *stage_; }
  const Stage& stage() const { return *stage_; }
  ViewPanel& strip() { return *strip_; }
  Side& side() { return *side_; }
  ErrorBar& error_bar() { return *error_; }
  ViewPanel& focused_panel() { return *focused_; }
  Playback& playback() { return *playback_; }
  const Playback& playback() const { return *playback_; }
  Actions& actions() { return *actions_; }
  Palette& palette() { return *palette_; }
  TrainingPage& training() { return *training_; }
  LessonPlayer& lesson() { return *lesson_; }
  const LessonPlayer& lesson() const { return *lesson_; }
  LessonPage& lesson_page() { return *lesson_page_; }
  /// What the last command or stop had to say, in the status bar.
  QString said() const { return said_->text(); }
  void say(const QString& words);
  /// The place, size and state of last time; at a first start as `available`, a screen without its bars, has room.
  void take_place(const QRect& available);
  const Frame& frame() const { return frame_; }
  ThemeChoice theme() const { return theme_; }
  QAction* action(std::string_view id) const { return actions_->action(id); }

  void open_checkpoint(const std::filesystem::path& path, PromptInput prompt, std::function<PromptInput()> example = {});
  /// One of our own: with the prompt that stands here where that is of the same task, else with an example of what it was trained on.
  void open_shipped(const std::filesystem::path& path);
  /// `located`: where its checkpoint is now; empty: where it was, or in the usual places.
  void open_session(const std::filesystem::path& path, const std::filesystem::path& located = {});
  void show_error(const QString& message);
  /// A prompt (.json, .txt), a lesson (.md), a session (.scope, .scope.zip), a checkpoint (.h5) or a model's folder.
  void open_path(const std::filesystem::path& path);
  /// One more model beside this one, up to three: it reads the same prompt and follows the same cursor.
  void compare_with(const std::filesystem::path& checkpoint);
  void choose_to_compare();
  void stop_comparing() { comparison_->stop(); }
  /// The training that is watched, or, where none is, asks for its folder.
  void show_training();
  void watch_training(const std::filesystem::path& folder);
  /// One prompt of the needle grid, paused where its answer goes wrong; going back leads to the prompt of before.
  void open_example(const NeedleExample& example);
  /// Among the cells of the focused view, or those of the state.
  void step_cell(std::int64_t rows, std::int64_t columns);
  void choose_checkpoint_file();
  void choose_checkpoint_folder();
  void choose_prompt_file();
  void choose_lesson_file();
  /// The page that lists what can be opened; what is open stays.
  void show_start();
  StartPage& start() { return *start_; }
  void open_lesson(const std::filesystem::path& path);
  /// The lesson, or the list of them, beside the stage, or in its place where there is no room for both; pressed again, away with it.
  void toggle_lessons();
  bool lessons_are_shown() const { return lessons_wanted_; }
  /// What was open before it comes back.
  void leave_lesson();
  /// With all of the lesson's text; presenting, the class does not see that then.
  void toggle_teacher();
  bool teacher_is_shown() const;
  TeacherWindow& teacher() { return *teacher_; }
  /// Of the lesson; after the last one the next lesson begins.
  void next_step();
  /// What a page key of a presenter's remote does: the lesson's steps, without a lesson the tokens.
  void turn_page(int direction);
  void show_page(SidePage page);
  void go_to_token(std::int64_t token);
  void ask_for_token();
  /// Words of the text: their places are marked on the time line.
  void find_text();
  FindBar& find_bar() { return *find_; }
  /// What the words mean that this view uses.
  void show_words_of(const ViewPanel& panel);
  void choose_slot(const std::string& name);
  void step_speed(int direction) { transport_->step_speed(direction); }
  void set_theme(ThemeChoice choice);
  void set_scale(float scale);
  /// As the reader has chosen it; while presenting the type is larger.
  float wanted_scale() const { return scale_; }
  void set_reduce_motion(bool reduce);
  bool reduces_motion() const { return reduce_motion_; }
  void set_autoplay(bool autoplay);
  bool plays_by_itself() const { return autoplay_; }
  void arrange(const Arrangement& arrangement);
  /// As that suits the model; its first view is in focus then.
  void arrange_as(const Preset& preset);
  /// The focused view of the stage into a window of its own, or from there back to the stage.
  void toggle_apart();
  const std::vector<ViewWindow*>& views_apart() const { return apart_; }
  /// Whether it shows this window's own model: on the stage, in a window of its own, the text.
  bool is_own(const ViewPanel& panel) const;
  /// One arrangement of the reader's own, to come back to.
  void keep_arrangement();
  void arrange_as_kept();
  bool has_kept_arrangement() const { return kept_.has_value(); }
  /// In the place of the focused view; `mode` one of View::modes.
  void show_view(const ViewRow& row, std::size_t mode = 0);
  void show_palette();
  QStringList recent_paths() const;
  void go_back();
  void go_forth();
  void toggle_side();
  bool side_is_shown() const { return side_wanted_; }
  /// The token to compare with becomes this one; this one, none.
  void toggle_reference();
  void end_reference();
  void toggle_presenter();
  bool is_presenting() const { return presenting_; }
  /// A remote's start key, which does not end it.
  void begin_presenting();
  /// A breakpoint here, or, while presenting, a black screen and back.
  void press_b();
  /// Faster, or likewise.
  void press_period();
  bool is_blank() const { return blank_->isVisible(); }
  /// Ends what is going on: an opening or a generation, the message of an error, a page in the inspector's place, presenting.
  void escape();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dragLeaveEvent(QDragLeaveEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;

 private:
  /// What a lesson leaves, to come back to.
  struct Work {
    std::filesystem::path checkpoint, session;
    PromptInput prompt;
    Cursor cursor;
    std::vector<std::filesystem::path> beside;
  };

  void make_pages(const WindowSetup& setup);
  void follow_training();
  void open_step(const TrainingStep& step);
  QWidget* make_start();
  void show_work();
  void take_keyboard();
  QWidget* make_work(bool opengl);
  void make_lessons(QWidget& page);
  void fill_lessons();
  Work work() const;
  void take_up(const Work& work);
  void enter_step();
  void keep_lesson();
  void go_to_second_screen();
  void recall(const WindowSetup& setup);
  void recall_arrangement();
  void list_views();
  void make_status_bar(const QString& start_words);
  void make_overlays(QWidget& center);
  void make_connections();
  void follow_navigator();
  void run_command(const Command& command, int key);
  void apply_look();
  void fold();
  void toggle_blank();
  QCursor pointer_of_presenter() const;
  QSizeF room_for_views(float scale) const;
  QSizeF room_before_presenting() const;
  bool pictures_grow(float scale) const;
  float lesson_text(float scale) const;
  bool views_fit(float scale, float part) const;
  float fitting_scale() const;
  void focus_panel(ViewPanel& panel);
  void leave(const QWidget& row);
  void show_run();
  void show_table();
  void show_table_soon();
  void show_found();
  void show_reference();
  void show_title();
  void open_on_prompt(const std::filesystem::path& path);
  /// A JSON of messages, as turns of a chat; false: it is something else.
  bool open_conversation(const std::filesystem::path& path);
  /// What a figure of this program was made from, at the place that it shows.
  void open_figure(const std::filesystem::path& path);
  void end_drag();
  void arrive(const std::vector<FigurePanel>& panels);
  void update_ticks();
  void fill_recent();
  void remember_recent(const QString& path);
  void remember(const QString& key, const QVariant& value);
  void remember_arrangement();
  ViewWindow* window_of(const ViewPanel& panel) const;
  ViewWindow& make_apart(const ViewPanel& of);
  void tear_off(ViewPanel& panel, QPoint at);
  void show_apart(ViewWindow& window);
  void give_back(ViewWindow& window);
  void hide_apart();
  void remember_apart();
  void recall_apart();
  void stand();
  void reopen_views();
  void go_to(const std::optional<Cursor>& place);

  std::unique_ptr<Navigator> navigator_;
  std::unique_ptr<Comparison> comparison_;
  QSettings* settings_;
  LessonProgress lesson_progress_;
  Frame frame_;
  ThemeChoice theme_;
  float scale_ = 1;
  bool system_is_dark_, reduce_motion_ = false, autoplay_ = true, side_wanted_ = true, presenting_ = false;
  bool is_elsewhere_ = false;  // checkpoints and sessions are an engine's on another machine
  bool lessons_wanted_ = false, side_wanted_before_lesson_ = true, difference_wanted_before_lesson_ = true;
  QByteArray place_before_presenting_;
  std::optional<Work> before_lesson_;
  std::filesystem::path session_on_its_way_;
  Playback* playback_ = nullptr;
  Places places_;
  /// A prompt that was left for an example, and where in it the reader stood.
  struct Departure {
    PromptInput prompt;
    std::int64_t token = 0;
  };
  std::vector<Departure> departures_;
  QElapsedTimer since_start_;
  std::optional<Arrangement> kept_;
  OpeningViews opening_views_{"routing", "state"};  // of the models that are open
  Actions* actions_ = nullptr;
  QMenu* recent_ = nullptr;
  Header* header_ = nullptr;
  ErrorBar* error_ = nullptr;
  QStackedWidget* pages_ = nullptr;  // start, work
  StartPage* start_ = nullptr;
  Stage* stage_ = nullptr;
  QBoxLayout* work_ = nullptr;  // the lesson; beside or below it the run: stage, side and text
  ModelRows* rows_ = nullptr;   // of which the stage is the first
  Side* side_ = nullptr;
  ViewPanel* strip_ = nullptr;
  FindBar* find_ = nullptr;
  Transport* transport_ = nullptr;
  ViewPanel* focused_ = nullptr;
  std::vector<ViewWindow*> apart_;
  bool opengl_ = false;
  Palette* palette_ = nullptr;
  KeyPage* keys_ = nullptr;
  PreferencesPage* preferences_ = nullptr;
  FigurePage* figure_ = nullptr;
  TrainingPage* training_ = nullptr;
  WordsPage* words_ = nullptr;
  LessonPlayer* lesson_ = nullptr;
  LessonPage* lesson_page_ = nullptr;
  TeacherWindow* teacher_ = nullptr;
  QWidget* blank_ = nullptr;     // over everything
  QWidget* dropping_ = nullptr;  // a frame round everything while something is dragged over it
  QLabel* said_ = nullptr;
  QTimer table_delay_;    // while the run grows
  QList<QLayout*> gaps_;  // layouts whose spacing follows the scale
};

}  // namespace statescope
