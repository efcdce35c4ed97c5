// A lesson on its way: which step, what was predicted, and the picture and numbers of the step. Knows no text widget.
#pragma once

#include <QObject>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "app/lesson/lesson.h"
#include "app/lesson/progress.h"
#include "app/panels/stage.h"
#include "app/runs/comparison.h"
#include "app/runs/navigator.h"

namespace statescope {

class LessonPlayer : public QObject {
  Q_OBJECT

 public:
  using Open = std::function<void(const std::filesystem::path& checkpoint, PromptInput prompt)>;
  /// `open` begins to read a run; whether it came is seen from the navigator. Navigator, stage and comparison outlive the player.
  LessonPlayer(Navigator& navigator, Stage& stage, Comparison& comparison, Open open, QObject* parent = nullptr);

  /// `before`: how far it came another time. It begins at its first step all the same, with its questions open.
  void start(Lesson lesson, std::optional<LessonMarks> before = {});
  /// The stage is arranged as before the lesson, what stood beside it is closed; the run and the place in it stay.
  void leave();
  /// Null: none is on its way.
  const Lesson* lesson() const { return lesson_ ? &*lesson_ : nullptr; }
  std::size_t index() const { return index_; }
  const LessonStep& step() const { return lesson_->steps[index_]; }
  bool hides(Hideable part) const;
  /// How much stands on the stage: models, and views of each.
  struct Crowd {
    std::size_t models = 1, views = 1;
  };
  /// Of all pictures of the lesson with as many models as that of this step: what fits one of them fits the others.
  std::vector<Crowd> crowds() const;

  /// An open question is answered first, without a prediction.
  void next();
  void previous();
  /// The step at which it was left another time, not finished; nothing at all other steps than the first.
  std::optional<std::size_t> left_at() const;
  /// As it was left.
  void go_on();
  void go_to_step(std::size_t index);
  /// What its text takes from steps before it is known.
  bool can_go_to(std::size_t index) const;
  LessonMarks marks() const;
  /// The picture of the step again, from wherever the reader has gone.
  void show_picture();
  bool is_at_picture() const;
  void predict(std::size_t choice);

  /// The question has been answered, or there is none.
  bool is_revealed() const { return !step().question || progress_[index_].revealed; }
  /// Nothing of the lesson is left.
  bool is_at_end() const { return is_revealed() && index_ + 1 == lesson_->steps.size(); }
  /// Of the step, as far as it has come.
  const LessonPicture& picture() const { return is_revealed() ? step().revealed : step().picture; }
  std::optional<std::size_t> predicted() const { return progress_[index_].predicted; }
  /// The choice that the run answers with; nothing while that is not known, or where it is none of them.
  std::optional<std::size_t> right_choice() const;
  /// What the question's answer is in this run; the words of the right choice where the answer is no number.
  std::string answer() const;
  /// Every number of the step has come, or it is said why not.
  bool is_ready() const;
  /// Markdown, its gaps filled from the run.
  std::string filled(const Prose& prose) const;
  /// What the words of the step rely on and this run does not show.
  std::vector<std::string> broken_claims() const;

 Q_SIGNALS:
  void entered();  // another step, or no lesson any more
  void changed();  // what the step says
  void moved();    // the reader's place: is_at_picture
  void failed(const QString& message);

 private:
  struct Progress {
    std::optional<std::size_t> predicted;
    bool revealed = false, done = false;
    std::vector<std::optional<Measured>> values;  // as Wanted has them: the run says the same when the reader comes back
  };
  struct Wanted {
    const Quantity* quantity;
    bool of_reveal;                   // read in the picture that the answer brings
    Cursor picture;                   // where that stands
    std::optional<QuantityPlace> at;  // none: this run has no such place
    std::optional<Measured> value;
  };

  /// What one of the models has been asked for the step, and has answered.
  struct Asked {
    std::shared_ptr<const RunInfo> run;  // null: nothing yet
    Findings findings;
  };

  void enter(std::size_t index, bool plays);
  void reveal(std::optional<std::size_t> predicted);
  void list_wanted();
  bool run_stands() const;
  void open_run();
  void draw_picture(bool plays);
  void compare();
  bool compares_as_wanted() const;
  Cursor place_in_run(const LessonPicture& picture, const RunInfo& run) const;
  Navigator* beside() const;
  void ask(bool of_beside);
  void ask_beside();
  std::string missing_beside() const;
  void measure_all();
  bool shows(const Wanted& wanted) const;
  std::optional<Measured> measured(const Wanted& wanted) const;
  void keep_notes();
  void stop_where_asked();
  void end_opening();
  std::string said(const Quantity& quantity) const;
  const Measured* value_of(const Quantity& quantity) const;

  Navigator& navigator_;
  Stage& stage_;
  Comparison& comparison_;
  Open open_;
  std::optional<Lesson> lesson_;
  std::size_t index_ = 0;
  std::vector<Progress> progress_;  // by step
  std::map<std::string, std::string> notes_;
  std::optional<LessonMarks> left_;  // another time
  PromptInput prompt_;               // of the step
  std::optional<Arrangement> before_;
  bool waits_for_run_ = false, plays_ = false, begins_ = false;
  Cursor place_;                         // of the step's picture in the run
  std::optional<std::int64_t> stop_at_;  // while it plays by itself
  std::optional<Progress> waiting_;      // answered before all numbers of the question's picture had come
  std::vector<Wanted> wanted_;           // of the step
  Asked own_, of_beside_;
};

}  // namespace statescope
