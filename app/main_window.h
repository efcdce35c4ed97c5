// The window: stage, inspector, text and time around one navigator.
#pragma once

#include <QMainWindow>
#include <QSettings>
#include <QStackedWidget>
#include <QTimer>
#include <map>
#include <memory>
#include <string>

#include "app/commands.h"
#include "app/header.h"
#include "app/navigator.h"
#include "app/side.h"
#include "app/stage.h"
#include "app/transport.h"
#include "app/window_main.h"

namespace statescope {

/// How the window is made; the rest of WindowOptions is the caller's business.
struct WindowSetup {
  bool opengl = false;
  QString start_words;  // for the status bar: how it is drawn, and whatever else is not as it was asked for
  ThemeChoice theme = ThemeChoice::system;
  float scale = 0;                // 0: as last time
  QSettings* settings = nullptr;  // null: nothing is remembered
  bool autoplay = true;
};

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  MainWindow(RunSource& source, const WindowSetup& setup);
  ~MainWindow() override;

  Navigator& navigator() { return *navigator_; }
  Stage& stage() { return *stage_; }
  ViewPanel& strip() { return *strip_; }
  Side& side() { return *side_; }
  ErrorBar& error_bar() { return *error_; }
  ViewPanel& focused_panel() { return *focused_; }
  const Frame& frame() const { return frame_; }
  ThemeChoice theme() const { return theme_; }
  QAction* action(std::string_view id) const;

  void open_checkpoint(const std::filesystem::path& path, PromptInput prompt);
  /// A prompt (.json, .txt), a checkpoint (.h5) or a model's folder.
  void open_path(const std::filesystem::path& path);
  void choose_checkpoint_file();
  void choose_checkpoint_folder();
  void choose_prompt_file();
  void show_page(SidePage page);
  void go_to_token(std::int64_t token);
  void ask_for_token();
  void choose_slot(const std::string& name);
  void step_speed(int direction) { transport_->step_speed(direction); }
  void set_theme(ThemeChoice choice);
  void set_scale(float scale);
  void set_reduce_motion(bool reduce);
  bool reduces_motion() const { return reduce_motion_; }
  void toggle_side();
  bool side_is_shown() const { return side_wanted_; }
  void toggle_presenter();
  bool is_presenting() const { return presenting_; }
  /// Ends what is going on: an opening or a generation, the message of an error, a page in the inspector's place, presenting.
  void escape();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void dragEnterEvent(QDragEnterEvent* event) override;
  void dropEvent(QDropEvent* event) override;
  void closeEvent(QCloseEvent* event) override;

 private:
  void make_actions();
  void make_menu();
  QWidget* make_welcome();
  QWidget* make_work(bool opengl);
  void run_command(const Command& command, int key);
  void apply_look();
  void fold();
  void focus_panel(ViewPanel& panel);
  void show_run();
  void show_table();
  void show_table_soon();
  void show_error(const QString& message);
  void update_ticks();
  void fill_recent();
  void remember_recent(const QString& path);
  void remember(const QString& key, const QVariant& value);

  std::unique_ptr<Navigator> navigator_;
  QSettings* settings_;
  Frame frame_;
  ThemeChoice theme_;
  bool system_is_dark_, reduce_motion_ = false, side_wanted_ = true, presenting_ = false;
  std::map<std::string, QAction*, std::less<>> actions_;
  QMenu* recent_ = nullptr;
  Header* header_ = nullptr;
  ErrorBar* error_ = nullptr;
  QStackedWidget* pages_ = nullptr;  // welcome, work
  Stage* stage_ = nullptr;
  Side* side_ = nullptr;
  ViewPanel* strip_ = nullptr;
  Transport* transport_ = nullptr;
  ViewPanel* focused_ = nullptr;
  QTimer table_delay_;    // while the run grows
  QList<QLayout*> gaps_;  // layouts whose spacing follows the scale
};

}  // namespace statescope
