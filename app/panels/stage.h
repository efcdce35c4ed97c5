// One to six views, the first of them large: two in an upper row, the others in a lower one, as many as there is room for.
#pragma once

#include <QSplitter>
#include <vector>

#include "app/panels/arrangement.h"
#include "app/panels/view_panel.h"

namespace statescope {

class Stage : public QSplitter {
  Q_OBJECT

 public:
  /// `view_actions`: what every view's menu offers beside the other views; they act on the focused view.
  Stage(Navigator& navigator, QList<QAction*> view_actions, bool opengl, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  void set_titles_shown(bool shown);
  /// Every view is shown, however little room there is: two of them one above the other where that gives them more.
  void set_all_shown(bool all);
  /// How well `views` views would fit into `room` at `scale`: below 1 they would be smaller than is good for them.
  static float fit_of(const QSizeF& room, std::size_t views, float scale);
  /// In the order of the arrangement; those without room are hidden.
  const std::vector<ViewPanel*>& panels() const { return panels_; }
  /// The one that has, or last had, the focus; it is never hidden.
  ViewPanel& focused_panel() const { return *focused_; }

  void arrange(const Arrangement& arrangement);
  Arrangement arrangement() const;
  bool is_full() const { return panels_.size() == most_views; }
  /// Gives it the focus. Nothing happens on a full stage.
  void add_view(const ViewRow& row);
  /// The first of the catalogue that does not stand on the stage yet, or the first.
  void add_view();
  /// Takes the focused view away; the last one stays.
  void close_view();
  /// The focused view and the large one change places.
  void make_large();
  void focus_next(int direction);
  /// The view at `index` becomes the one that is never hidden, without the keyboard's focus.
  void bring_up(std::size_t index);
  /// The same with the first view, which has the focus if another view had it.
  void begin_with_first();
  /// Gives the focused view more of its row (factor > 1), or less.
  void widen(float factor);
  /// Gives the focused view's row more of the stage, or less.
  void heighten(float factor);

 Q_SIGNALS:
  void focus_moved();
  void example_chosen(const NeedleExample& example);
  void panel_changed(ViewPanel* panel);
  void rearranged();  // by the reader: what stands where, or a size
  void look_changed(ViewPanel* panel);
  void spoke(const QString& words);
  void torn_off(ViewPanel* panel, QPoint at);
  void menu_wanted(ViewPanel* panel, const std::optional<Hit>& hit, QPoint at);

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct Place {
    QSplitter* row;
    int column;
  };
  Place place_of(std::size_t index) const;
  ViewPanel* make_panel(const ViewRow& row);
  void drop_panels(std::size_t keep);
  void focus(ViewPanel& panel);
  void take_sizes();
  void lay_out();
  void fold();
  std::size_t upper_views() const { return one_above_other_ ? 1 : 2; }

  Navigator& navigator_;
  const QList<QAction*> view_actions_;
  const bool opengl_;
  Frame frame_;
  bool titles_shown_ = true, all_shown_ = false, one_above_other_ = false;
  QSplitter *upper_, *lower_;
  std::vector<ViewPanel*> panels_;
  std::vector<float> widths_;  // as in Arrangement
  float upper_share_ = 0.64f;
  ViewPanel* focused_ = nullptr;
};

}  // namespace statescope
