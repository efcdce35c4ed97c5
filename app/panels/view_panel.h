// A view's place in the window: its question, its drawing on whatever surface there is, pointer and zoom.
#pragma once

#include <QAction>
#include <QBoxLayout>
#include <QFrame>
#include <QGesture>
#include <QLabel>
#include <QSlider>
#include <QTimer>
#include <QToolButton>
#include <array>
#include <map>
#include <memory>

#include "app/controls/range_bar.h"
#include "app/controls/surface.h"
#include "app/figure/from_view.h"
#include "app/panels/drawing_scale.h"
#include "app/runs/navigator.h"
#include "views/view.h"

namespace statescope {

/// The view that is always below; the others take turns on the stage.
inline constexpr std::string_view strip_view = "token_strip";

/// The row of the catalogue called `id`, or null.
const ViewRow* find_view(std::string_view id);

/// In the reader's language: a title, question or help of the catalogue, or a view's way of looking.
QString view_words(std::string_view text);
/// Likewise its title, question and help, as a tooltip that breaks its lines.
QString view_help(const ViewRow& row);

/// What a view has asked of a run, and what has come of it.
struct Inquiry {
  std::shared_ptr<const RunInfo> run;
  std::vector<Question> questions;
  Findings findings;

  /// What is known already stays known. False: it is the same as before.
  bool renew(const std::shared_ptr<const RunInfo>& run, std::vector<Question> questions);
  bool take(const Question& question, Finding finding);
  bool is_waiting() const;
};

class ViewPanel : public QFrame {
  Q_OBJECT

 public:
  /// `titled` panels say their question and let the reader choose another view; the others follow the cursor before its snapshot has come.
  ViewPanel(Navigator& navigator, const ViewRow& row, bool opengl, bool titled, QWidget* parent = nullptr);

  ~ViewPanel() override;

  void set_view(const ViewRow& row);
  const ViewRow& row() const { return *row_; }
  const View& view() const { return *view_; }
  /// Of the view as it stands; nothing before the cursor's snapshot and answers are there.
  std::optional<ViewRecipe> recipe() const;
  /// The next one of the catalogue that is not the strip, in this place.
  void next_view();
  /// The next way to look at the same.
  void next_mode();
  /// The view, mode and knob of another panel.
  void take_look(const ViewPanel& other);
  /// The view, mode, knob and range of a figure. What is not there stays as it is.
  void take_look(const FigurePanel& figure);
  /// One of View::modes; what the view does not have is the first.
  void set_mode(std::size_t mode);
  /// Below the views in the menu of the title; this panel has the focus when one of them is chosen there.
  void add_actions(const QList<QAction*>& actions);
  /// Turns the view's knob, if it has one (unset: as at first), and has all of the drawing in sight.
  void look_afresh(std::optional<double> knob);
  /// Of a view with cells of its own; false: it has none.
  bool step_mark(std::int64_t rows, std::int64_t columns);
  void choose_marked();
  /// What stands at a place of the drawing, exactly, as text; without `hit` what stands under the cursor. Empty: nothing.
  QString words_at(const std::optional<Hit>& hit) const;
  /// Of that the number or text alone.
  QString value_at(const std::optional<Hit>& hit) const;
  /// The menu at the place that keys have chosen.
  void ask_for_menu();
  /// The control of its colours' range; there where it has a heatmap.
  void toggle_range_bar();
  const RangeBar* range_bar() const { return range_bar_; }
  void set_frame(const Frame& frame);
  void set_title_shown(bool shown);
  /// Enlarges the data in the drawing's plots, so that axes, title and colour bar stay; where it has none, all of the drawing. And back.
  void zoom(float factor);
  /// Where it is enlarged: looks at what lies further right or down, in parts of what is in sight.
  void pan(QPointF parts);
  void fit();
  float zoom() const;
  /// Which part of its data is in sight: "token 3 “␣anna” to token 9 “.”"; empty: all of them.
  QString in_sight() const;
  /// What is drawn is not that of the cursor, or something of it is still being worked out and left out.
  bool is_pending() const;
  QWidget& surface() { return *surface_->widget(); }
  const HitRegions& hits() const { return surface_->hits(); }

 Q_SIGNALS:
  void focused();
  void changed();       // the view was built again, at rest
  void look_changed();  // another view, mode or knob, by the reader
  void example_chosen(const NeedleExample& example);
  void spoke(const QString& words);  // what a key or the wheel would do here
  void torn_off(QPoint at);          // dragged by its title out of the window; `at`: on the screen
  /// The menu of the place under the pointer, which is chosen then; without `hit`, of the view. `at`: on the screen.
  void menu_wanted(const std::optional<Hit>& hit, QPoint at);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  void build();
  bool has_all() const;
  bool is_waiting() const { return own_.is_waiting() || of_peer_.is_waiting(); }
  void ask();
  void ask_peer();
  void stop_asking();
  void look_ahead();
  std::vector<Question> questions_elsewhere() const;
  void inquire(Inquiry ViewPanel::*inquiry, Navigator& of, std::vector<Question> questions);
  void take(Inquiry ViewPanel::*inquiry, const Question& question, Finding finding);
  Findings found() const;
  void build_now();
  void choose_mode(std::size_t mode);
  void fill_mode_menu();
  void show_modes();
  void show_knob(const Knob& knob);
  void show_range();
  void fit_head();
  void keep_corners();
  QBoxLayout& head_layout() const { return *static_cast<QBoxLayout*>(head_->layout()); }
  void describe();
  void show_pending();
  void wait_for_word();
  void paint(Canvas& canvas) const;
  void choose(QPointF at, bool dragging);
  void choose_hit(const Hit& hit);
  void hover(QPointF at, QPoint global);
  void hide_stale_tip();
  const HitRegions::ZoomPlot* main_plot() const;
  bool shows_part() const;
  void zoom_at(float factor, QPointF at);
  void zoom_data(float factor, const HitRegions::ZoomPlot& plot, QPointF share);
  void move_drawing(QPointF by);
  void drag(QPointF to, Qt::MouseButtons buttons);
  void drag_title(const QMouseEvent& mouse);
  void pinch(const QPinchGesture& fingers);
  void turn_wheel(const QWheelEvent& wheel);
  void look_again(bool part_is_new);
  void tell_in_sight();
  void keep_cursor_in_sight();
  void open_menu(QPointF at, QPoint global);
  void keep_inside();

  Navigator& navigator_;
  const ViewRow* row_;
  std::unique_ptr<View> view_;
  Frame frame_;
  mutable DrawingScale drawing_scale_;
  std::unique_ptr<Surface> surface_;
  QWidget* head_ = nullptr;
  QLabel* question_ = nullptr;
  QToolButton* title_ = nullptr;
  QToolButton* mode_ = nullptr;
  QLabel* knob_name_ = nullptr;
  QSlider* knob_ = nullptr;
  QLabel* pending_ = nullptr;
  RangeBar* range_bar_ = nullptr;  // null where there is no title either
  bool range_wanted_ = false;
  std::map<std::string_view, RangeChoice> ranges_;  // by view
  QTimer pending_delay_, answers_delay_;
  const int asker_;              // number of this panel, above 0; below it looks ahead (Analyst)
  std::vector<Question> ahead_;  // that are asked there
  Inquiry own_, of_peer_;
  bool titled_;
  float zoom_ = 1;                                // of a drawing without plots
  QPointF offset_;                                // of its corner, left and above the panel's
  QRectF part_{0, 0, 1, 1};                       // of the data of plots, what is in sight
  bool part_is_new_ = false;                      // and has not been drawn yet
  std::array<std::int64_t, 2> followed_{-1, -1};  // the cursor's places across and down when it was last drawn
  QPointF drag_;
  bool drags_title_ = false, pinches_ = false;
  bool menu_is_due_ = false;   // the right button is down and has not moved the drawing
  std::optional<Cursor> tip_;  // where the reader stood when the tooltip came up
};

}  // namespace statescope
