// Where the reader stands in a run: the wanted place, the snapshot that answers it, and playing. Knows no widget.
#pragma once

#include <QElapsedTimer>
#include <QObject>
#include <QPointer>
#include <QString>
#include <QTimer>
#include <optional>

#include "app/runs/run_source.h"
#include "views/view.h"

namespace statescope {

class Navigator : public QObject {
  Q_OBJECT

 public:
  /// `source` outlives the navigator.
  explicit Navigator(RunSource& source, QObject* parent = nullptr);

  const std::shared_ptr<const RunInfo>& run() const { return run_; }
  /// The newest answer to a wanted place; null before the first. While another is on its way it is that of the place before.
  const std::shared_ptr<const Snapshot>& snapshot() const { return snapshot_; }
  /// The wanted place. It moves at once; the snapshot follows.
  const Cursor& cursor() const { return cursor_; }
  bool is_current() const { return answers_cursor(snapshot_.get()); }
  /// Also where the run has grown since: the snapshot is of this place when fewer tokens had been read.
  bool shows_place() const;
  /// From the asking until all has been read and generated, or has failed.
  bool is_opening() const { return opening_; }
  /// The name of the checkpoint that is on its way; empty: none is.
  QString coming() const;
  bool is_playing() const { return playing_; }
  bool is_autoplaying() const { return playing_ && autoplaying_; }
  double speed() const { return speed_; }
  std::int64_t tokens() const { return run_ ? static_cast<std::int64_t>(run_->tokens.size()) : 0; }
  const LayerInfo* layer_info() const;

  /// `example`: what the checkpoint reads instead where it does not know every word of the prompt; empty: it waits for another one.
  void open(std::filesystem::path checkpoint, PromptInput prompt, std::function<PromptInput()> example = {});
  /// On the open model, or on the checkpoint that waits for a prompt in its own words.
  void read(PromptInput prompt);
  /// A checkpoint waits for a prompt in its own words.
  bool waits_for_prompt() const { return !waiting_checkpoint_.empty(); }
  /// No checkpoint waits for a prompt any more.
  void stay() { waiting_checkpoint_.clear(); }
  /// Likewise, and goes to `token` as soon as it has been read or generated.
  void read_to(PromptInput prompt, std::int64_t token);
  /// Likewise to token `place` of the answer that the model gives.
  void read_to_answer(PromptInput prompt, std::int64_t place);
  void generate_more(std::int64_t count);
  void cancel();

  /// Null before the first run.
  const std::shared_ptr<const BranchTree>& branches() const { return branches_; }
  /// The branch that the run shown has left; null where it left none.
  std::shared_ptr<const RunInfo> parent() const;
  /// To look at another branch beside the run shown (RunSource::beside).
  std::unique_ptr<RunSource> beside(std::shared_ptr<const RunInfo> run) { return source_.beside(std::move(run)); }
  /// From here on they change the run shown; the cursor stays. What goes wrong is told by `intervention_failed`.
  void intervene(std::vector<Intervention> interventions);
  /// Another prompt, whose states can be imported then: a run of branches() that is not shown. What goes wrong is told likewise.
  void add_run(PromptInput prompt);
  /// Nothing while something else is under way.
  void undo_intervention();
  void redo_intervention();
  void go_to_branch(std::int64_t branch);

  /// Where it says where the reader stood, it opens there, paused; `placed` tells what was shown.
  void open_session(std::filesystem::path path, std::filesystem::path located = {});
  void save_session(std::filesystem::path path);
  /// What the window shows where the cursor is, to be saved with it.
  void stand(std::string views);
  /// Of the model of the run shown.
  const ModelFacts& facts() const { return facts_; }
  /// What another model is to read: the prompt, or, where the model shown reads no text, the last text that was to be read.
  const PromptInput& prompt_for_another() const { return facts_.no_text.isEmpty() ? prompt_ : text_prompt_; }
  /// Of the run shown; while there is none, the one last asked for.
  const PromptInput& prompt() const { return prompt_; }
  /// Of the run shown.
  const std::filesystem::path& checkpoint() const { return checkpoint_; }

  /// Each lands inside the run. A change of token by hand ends playing. Where another leads, it is asked to move instead.
  void move(const CursorMove& change);
  void step(std::int64_t tokens);
  void step_layer(std::int64_t layers);
  void step_head(std::int64_t heads);
  void step_cell(std::int64_t rows, std::int64_t columns);
  /// The cell under the pointer becomes the chosen one, unless a whole row or state is; nothing else changes, playing goes on.
  void point_at(std::int64_t row, std::int64_t column);
  /// The cursor's token becomes the one to compare with, or, where it is already, none is.
  void toggle_reference();

  /// Another navigator leads from now on: what the reader does here goes to `lead`, and only `place` moves this one.
  void follow(std::function<void(const CursorMove&)> lead) { lead_ = std::move(lead); }
  void place(const Cursor& place);
  /// Cursor::progress, of a step that another plays.
  void set_progress(float progress);
  /// Playing waits with its next step while `held` says so.
  void hold_while(std::function<bool()> held) { held_ = std::move(held); }

  /// Another model that views of this one may compare with, and what is known of it at this place; without `peer` there is none.
  void set_other(Navigator* other, std::function<Peer()> peer);
  Navigator* other() const { return other_; }
  /// Without findings; null: there is no other model.
  std::shared_ptr<Peer> peer() const;
  /// All models under this cursor, that one among them; where one is on its way here, as it was at the place before.
  void set_beside(std::function<std::vector<Peer>()> beside) { beside_ = std::move(beside); }
  std::vector<Peer> beside() const { return beside_ ? beside_() : std::vector<Peer>(); }

  /// About the run shown (RunSource::ask).
  void ask(int asker, std::vector<Question> questions, std::function<void(Question, Finding)> tell) {
    source_.ask(asker, run_, std::move(questions), std::move(tell));
  }

  void play();
  void pause();
  void toggle_play();
  /// Any key of the reader takes over from a play that nobody asked for.
  void take_over();
  void set_speed(double steps_per_beat);
  void set_reduce_motion(bool reduce) { reduce_motion_ = reduce; }
  bool reduces_motion() const { return reduce_motion_; }
  /// Plays soon after the first run stands, unless the reader has done anything by then.
  void set_autoplay(bool autoplay) { autoplay_ = autoplay; }

 Q_SIGNALS:
  void run_changed();
  void branches_changed();  // or the file that they are saved in
  void opened();            // another checkpoint or prompt stands: the first run_changed of each
  void cursor_changed();
  void snapshot_changed();
  void motion_changed();  // only Cursor::progress
  void other_changed();   // another model to compare with, or that one has moved
  void beside_changed();  // one of the models under this cursor has moved
  void playing_changed();
  void progressed(double fraction, const QString& what);
  void opening_ended();
  void failed(const QString& message);
  void intervention_failed(const QString& message);
  void placed(const QString& views);  // after `opened`: as they were saved
  void session_saved(const QString& path);
  void remarked(const QString& words);         // what else is to be known of the run
  void device_failed(const QString& message);  // the run came to the CPU, or its recording to the host

 private:
  /// What has been asked for and does not stand yet; without a checkpoint it is read on the open model.
  struct Wanted {
    std::filesystem::path checkpoint;
    PromptInput prompt;
    std::function<PromptInput()> example = {};
  };

  void begin(Wanted wanted, const QString& what);
  Session::OpenCallbacks callbacks();
  /// Of what changes the run shown: it keeps its prompt and the cursor's place.
  Session::OpenCallbacks changing();
  /// The same; what goes wrong is told by `intervention_failed`.
  Session::OpenCallbacks intervening();
  bool can_move_between_branches() const { return branches_ && !opening_; }
  void take_wanted();
  void take_branches(std::shared_ptr<const BranchTree> branches);
  void take_run(std::shared_ptr<const RunInfo> run);
  void end_opening();
  bool lacks_words(const Failure& failure) const;
  bool reads_example(const Failure& failure);
  QString explained(const Failure& failure);
  void accept_run(std::shared_ptr<const RunInfo> run);
  void accept_snapshot(std::shared_ptr<const Snapshot> snapshot);
  bool answers_cursor(const Snapshot* snapshot) const;
  void request();
  void go_to(Cursor place);
  Cursor inside(Cursor place) const;
  void advance();
  void tick();
  void rest();

  RunSource& source_;
  std::function<void(const CursorMove&)> lead_;  // empty: this one leads
  std::function<bool()> held_;
  QPointer<Navigator> other_;
  std::function<Peer()> peer_;
  std::function<std::vector<Peer>()> beside_;
  PromptInput prompt_;
  PromptInput text_prompt_;  // the last text asked for
  ModelFacts facts_;
  std::filesystem::path checkpoint_;
  std::optional<Wanted> wanted_;
  std::filesystem::path waiting_checkpoint_;  // could not be opened with the prompt of then; empty: none
  std::shared_ptr<const BranchTree> branches_;
  std::shared_ptr<const RunInfo> run_;
  std::shared_ptr<const Snapshot> snapshot_;
  int grown_run_ = 0, snapshot_run_ = 0;  // a number for the run shown, however long it is by now; of the snapshot
  Cursor cursor_;
  /// The token to go to once it is there; of the answer: counted from the end of the prompt.
  struct Destination {
    std::int64_t token = 0;
    bool of_answer = false;
  };
  std::optional<Destination> destination_;
  std::optional<RunPlace> saved_place_;  // of the session that is on its way
  int opening_ticket_ = 0;               // answers to an earlier opening are dropped
  bool opening_ = false, keep_place_ = false;
  bool playing_ = false, autoplaying_ = false, autoplay_ = true, reduce_motion_ = false;
  double speed_ = 1;
  QTimer beat_;    // until the next played step
  QTimer frames_;  // 60 Hz, only while a played step moves
  QTimer autoplay_delay_;
  QElapsedTimer moving_since_;
};

}  // namespace statescope
