// The stage of each model that is compared, the window's own first, and one for what is different between two of them: in rows, or, where
// those would be too low, in a few columns.
#pragma once

#include <QFrame>
#include <QGridLayout>
#include <QLabel>
#include <QStackedWidget>
#include <vector>

#include "app/panels/stage.h"
#include "app/runs/comparison.h"

namespace statescope {

/// One model's stage with its letter beside it, or what stands in its place.
class ModelRow : public QFrame {
  Q_OBJECT

 public:
  /// `letter` may have several lines. It takes the stage over.
  ModelRow(const QString& letter, Stage& stage, QWidget* parent);

  Stage& stage() const { return stage_; }
  /// `identity`: its colour.
  void set_frame(const Frame& frame, std::int64_t identity);
  void set_letter(const QString& letter);
  /// The only row needs none.
  void set_letter_shown(bool shown) { letter_->setVisible(shown); }
  /// Instead of the stage; empty: the stage.
  void show_message(const QString& message);
  /// A line above it; may be empty.
  void show_note(const QString& note);

 private:
  QLabel *letter_, *note_;
  QStackedWidget* body_;  // stage, message
  QLabel* message_;
  Stage& stage_;
};

/// All stages show the same views in the same way.
class ModelRows : public QWidget {
  Q_OBJECT

 public:
  /// `own` is that of the comparison's leader.
  ModelRows(Stage& own, Navigator& leader, Comparison& comparison, bool opengl, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  void set_titles_shown(bool shown);
  /// Every view of every row is shown (Stage::set_all_shown).
  void set_all_shown(bool all);
  /// Likewise Stage::fit_of, with `models` of them.
  static float fit_of(const QSizeF& room, std::size_t models, std::size_t views, float scale);
  /// The others follow an arrangement that was set from outside.
  void follow_own();
  void set_difference_shown(bool shown);
  bool is_difference_shown() const { return difference_wanted_; }
  /// That of A − B; null while nothing is compared.
  Stage* difference() const { return difference_ ? &difference_->stage() : nullptr; }
  /// B, C, D, in the order of the comparison's peers.
  std::vector<Stage*> peer_stages() const;
  /// Over the views of all rows.
  void focus_next(int direction);
  /// The row of this model, null: of A, gets the focus.
  void bring_up(const PeerRun* peer);

 Q_SIGNALS:
  void focus_moved(ViewPanel* panel);
  void panel_changed(ViewPanel* panel);
  void spoke(const QString& words);
  void menu_wanted(ViewPanel* panel, const std::optional<Hit>& hit, QPoint at);
  void leaving(const QWidget* row);  // with its views

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  struct PeerRow {
    const PeerRun* peer;
    ModelRow* row;
  };
  ModelRow* make_row(const QString& letter, Navigator& navigator);
  void add(PeerRun& peer);
  void remove(const PeerRun& peer);
  void watch(ModelRow& row);
  void lead(Stage& stage);
  void bring_up(const ModelRow* row);
  void follow(const Stage& from);
  void follow_look(Stage& from, const ViewPanel& panel);
  void follow_focus(const Stage& from);
  std::vector<Stage*> model_stages() const;
  std::vector<ModelRow*> all_rows() const;
  void drop(ModelRow* row);
  void show_states();
  void update_difference();
  void arrange_difference();
  std::size_t columns_of(std::size_t count) const;
  void lay_out();

  Navigator& leader_;
  Comparison& comparison_;
  const bool opengl_;
  Frame frame_;
  bool titles_shown_ = true, all_shown_ = false, difference_wanted_ = true, following_ = false;
  QGridLayout* grid_;
  ModelRow* own_;
  std::vector<PeerRow> rows_;     // in the order of letters
  bool subtracts_states_ = true;  // the views of the difference are those of models with states of the same shapes
  ModelRow* difference_ = nullptr;
  const ModelRow* focused_ = nullptr;  // had the focus last; it is never hidden
};

}  // namespace statescope
