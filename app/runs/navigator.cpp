#include "app/runs/navigator.h"

#include <algorithm>
#include <utility>

#include "app/common/plain_words.h"
#include "engine/unread.h"
#include "views/chosen.h"

namespace statescope {
namespace {

constexpr int autoplay_delay_ms = 600;
constexpr int frame_ms = 16;
constexpr int hold_ms = 16;        // until it is asked again whether playing may go on
constexpr double beat_ms = 700;    // of one played step at 1×
constexpr double motion_ms = 400;  // at most; the rest of the beat stands still

std::int64_t clamp_index(std::int64_t index, std::int64_t count) {
  return std::clamp<std::int64_t>(index, 0, std::max<std::int64_t>(count - 1, 0));
}

/// Of the prompt, which are being read.
std::int64_t tokens_to_come(const Navigator& navigator) { return navigator.run() && navigator.is_opening() ? unread(*navigator.run()) : 0; }

}  // namespace

Navigator::Navigator(RunSource& source, QObject* parent) : QObject(parent), source_(source) {
  beat_.setSingleShot(true);
  connect(&beat_, &QTimer::timeout, this, &Navigator::advance);
  frames_.setInterval(frame_ms);
  frames_.setTimerType(Qt::PreciseTimer);
  connect(&frames_, &QTimer::timeout, this, &Navigator::tick);
  autoplay_delay_.setSingleShot(true);
  autoplay_delay_.setInterval(autoplay_delay_ms);
  connect(&autoplay_delay_, &QTimer::timeout, this, [this] {
    autoplaying_ = true;
    play();
  });
}

bool Navigator::answers_cursor(const Snapshot* snapshot) const {
  return snapshot && snapshot->run == run_ && snapshot->layer == cursor_.layer && snapshot->head == cursor_.head &&
         snapshot->token == cursor_.token;
}

bool Navigator::shows_place() const {
  return snapshot_ && snapshot_run_ == grown_run_ && snapshot_->layer == cursor_.layer && snapshot_->head == cursor_.head &&
         snapshot_->token == cursor_.token;
}

const LayerInfo* Navigator::layer_info() const {
  if (!run_ || run_->model.layers.empty()) return nullptr;
  return &run_->model.layers[static_cast<std::size_t>(cursor_.layer)];
}

Session::OpenCallbacks Navigator::callbacks() {
  const int ticket = ++opening_ticket_;
  const QPointer<Navigator> self = this;
  const auto valid = [self, ticket] { return self && self->opening_ticket_ == ticket; };
  Session::OpenCallbacks result;
  result.progress = [self, valid](double fraction, std::string what) {
    if (!valid()) return;
    self->opening_ = true;  // again, where the device failed at a snapshot
    Q_EMIT self->progressed(fraction, QString::fromStdString(what));
  };
  result.run = [self, valid](std::shared_ptr<const RunInfo> run) {
    if (valid()) self->take_run(std::move(run));
  };
  result.failed = [self, valid](const Failure& failure) {
    if (!valid() || self->reads_example(failure)) return;
    const bool cancelled = failure.kind == Failure::Kind::cancelled;
    const QString words = cancelled ? QString() : self->explained(failure);
    self->end_opening();
    if (!cancelled) Q_EMIT self->failed(words);
  };
  result.done = [self, valid] {
    if (valid()) self->end_opening();
  };
  result.device_failed = result.not_saved = result.not_finite = [self, valid](std::string message) {
    if (valid()) Q_EMIT self->device_failed(without_options(message));
  };
  result.other_device = [self, valid](const std::string& words) {
    if (valid()) Q_EMIT self->remarked(QString::fromStdString(words));
  };
  result.place = [self, valid](RunPlace place) {
    if (valid()) self->saved_place_ = std::move(place);
  };
  result.branches = [self, valid](std::shared_ptr<const BranchTree> branches) {
    if (valid()) self->take_branches(std::move(branches));
  };
  return result;
}

Session::OpenCallbacks Navigator::changing() {
  keep_place_ = true;
  return callbacks();
}

QString Navigator::coming() const { return wanted_ && !wanted_->checkpoint.empty() ? checkpoint_name(wanted_->checkpoint) : QString(); }

void Navigator::begin(Wanted wanted, const QString& what) {
  destination_.reset();
  wanted_ = std::move(wanted);
  if (!run_) prompt_ = wanted_->prompt;
  if (wanted_->prompt.ids.empty()) text_prompt_ = wanted_->prompt;
  opening_ = true;
  keep_place_ = false;
  Q_EMIT progressed(0, what);
  if (wanted_->checkpoint.empty())
    source_.read(wanted_->prompt, callbacks());
  else
    source_.open(wanted_->checkpoint, wanted_->prompt, callbacks());
}

void Navigator::open(std::filesystem::path checkpoint, PromptInput prompt, std::function<PromptInput()> example) {
  waiting_checkpoint_.clear();
  pause();
  begin({std::move(checkpoint), std::move(prompt), std::move(example)}, tr("opening"));
}

void Navigator::read(PromptInput prompt) {
  if (!waiting_checkpoint_.empty()) return open(std::filesystem::path(waiting_checkpoint_), std::move(prompt));
  pause();
  begin({{}, std::move(prompt)}, tr("reading"));
}

void Navigator::read_to(PromptInput prompt, std::int64_t token) {
  read(std::move(prompt));
  destination_ = Destination{token};
}

void Navigator::read_to_answer(PromptInput prompt, std::int64_t place) {
  read(std::move(prompt));
  destination_ = Destination{place, true};
}

void Navigator::generate_more(std::int64_t count) {
  if (!run_ || opening_) return;
  opening_ = true;
  const std::int64_t there = tokens() + unread(*run_);
  prompt_.generate = there - run_->prompt_length + count;
  Q_EMIT progressed(0, tr("generating"));
  source_.generate(there + count, changing());
}

void Navigator::cancel() {
  source_.cancel();
  if (opening_) Q_EMIT progressed(0, tr("cancelling"));  // what is under way ends soon
}

Session::OpenCallbacks Navigator::intervening() {
  Session::OpenCallbacks answers = changing();
  answers.failed = [this, failed = std::move(answers.failed), self = QPointer<Navigator>(this)](const Failure& failure) {
    failed(Cancelled());
    if (self && failure.kind != Failure::Kind::cancelled) Q_EMIT intervention_failed(without_options(failure.message));
  };
  return answers;
}

void Navigator::intervene(std::vector<Intervention> interventions) {
  if (!run_) return;
  pause();
  opening_ = true;
  Q_EMIT progressed(0, tr("reading on"));
  source_.intervene(std::move(interventions), intervening());
}

void Navigator::add_run(PromptInput prompt) {
  if (!run_ || opening_) return;
  opening_ = true;
  Q_EMIT progressed(0, tr("reading"));
  source_.add_run(std::move(prompt), intervening());
}

std::shared_ptr<const RunInfo> Navigator::parent() const {
  if (!branches_ || !run_ || run_->branch.parent < 0) return nullptr;
  return branches_->runs[static_cast<std::size_t>(run_->branch.parent)];
}

void Navigator::undo_intervention() {
  if (can_move_between_branches()) source_.undo(changing());
}
void Navigator::redo_intervention() {
  if (can_move_between_branches()) source_.redo(changing());
}
void Navigator::go_to_branch(std::int64_t branch) {
  if (can_move_between_branches()) source_.go_to_branch(branch, changing());
}

void Navigator::open_session(std::filesystem::path path, std::filesystem::path located) {
  waiting_checkpoint_.clear();
  pause();
  wanted_.reset();
  destination_.reset();
  opening_ = true;
  keep_place_ = false;
  Q_EMIT progressed(0, tr("opening"));
  source_.open_session(std::move(path), std::move(located), callbacks());
}

void Navigator::save_session(std::filesystem::path path) {
  const QPointer<Navigator> self = this;
  const QString name = QString::fromStdString(path.string());
  source_.save(
      std::move(path),
      [self, name] {
        if (self) Q_EMIT self->session_saved(name);
      },
      [self](const std::string& message) {
        if (self) Q_EMIT self->failed(QString::fromStdString(message));
      });
}

void Navigator::stand(std::string views) {
  if (run_ && !saved_place_) source_.stand_at({cursor_.layer, cursor_.head, cursor_.token, std::move(views)});
}

/// What was asked for stands.
void Navigator::take_wanted() {
  if (!wanted_) return;
  if (!wanted_->checkpoint.empty()) checkpoint_ = wanted_->checkpoint;
  prompt_ = std::move(wanted_->prompt);
  wanted_.reset();
}

void Navigator::take_branches(std::shared_ptr<const BranchTree> branches) {
  branches_ = std::move(branches);
  take_wanted();
  prompt_ = branches_->prompt;  // which need not be what was asked for: a model without text reads ids
  checkpoint_ = branches_->checkpoint;
  Q_EMIT branches_changed();
}

void Navigator::take_run(std::shared_ptr<const RunInfo> run) {
  take_wanted();
  accept_run(std::move(run));
}

void Navigator::accept_run(std::shared_ptr<const RunInfo> run) {
  const bool first = !run_, another = !std::exchange(keep_place_, true);
  const bool grows = !another && !first && run->branch.number == run_->branch.number;
  if (!grows) ++grown_run_;
  run_ = std::move(run);
  if (another) facts_ = source_.facts();
  if (another) cursor_.token = 0, cursor_.row = cursor_.column = cursor_.reference = -1;
  const std::optional<RunPlace> saved = std::exchange(saved_place_, std::nullopt);
  if (saved) {
    cursor_.layer = saved->layer, cursor_.head = saved->head;
    destination_ = Destination{saved->token};
  }
  if (destination_) {
    cursor_.token = destination_->token + (destination_->of_answer ? run_->prompt_length : 0);
    if (cursor_.token < tokens()) destination_.reset();
  }
  cursor_ = inside(cursor_);
  if (another) Q_EMIT opened();
  if (saved) Q_EMIT placed(QString::fromStdString(saved->views));
  Q_EMIT run_changed();
  Q_EMIT cursor_changed();
  request();
  if (first && !saved && autoplay_ && !reduce_motion_) autoplay_delay_.start();
}

void Navigator::end_opening() {
  opening_ = false;
  wanted_.reset();
  if (playing_) Q_EMIT remarked({});  // it waits no longer
  Q_EMIT opening_ended();
}

/// The checkpoint that is on its way has a list of words without one of the prompt's.
bool Navigator::lacks_words(const Failure& failure) const {
  return failure.kind == Failure::Kind::unknown_word && wanted_ && !wanted_->checkpoint.empty();
}

/// Instead of a prompt that was there already, in words of another model.
bool Navigator::reads_example(const Failure& failure) {
  if (!lacks_words(failure) || !wanted_->example) return false;
  Wanted wanted = *wanted_;
  try {
    wanted.prompt = std::exchange(wanted.example, {})();
  } catch (const std::exception&) {
    return false;  // then the checkpoint waits for a prompt
  }
  begin(wanted, tr("opening"));
  Q_EMIT remarked(tr("%1 does not know every word of the prompt that was here: it reads an example of its own.").arg(coming()));
  return true;
}

/// A checkpoint whose words are not those of the prompt waits for another prompt.
QString Navigator::explained(const Failure& failure) {
  const QString words = without_options(failure.message);
  waiting_checkpoint_.clear();
  if (!lacks_words(failure)) return words;
  waiting_checkpoint_ = wanted_->checkpoint;
  const QString name = QString::fromStdString(waiting_checkpoint_.filename().string());
  return run_ ? tr("%1 does not know every word of this prompt. Open or write another prompt: the checkpoint opens with it. "
                   "Or close this message to stay with %2. (%3)")
                    .arg(name, QString::fromStdString(run_->model.name), words)
              : tr("%1 does not know every word of this prompt. Open or write another prompt: the checkpoint opens with it. (%2)")
                    .arg(name, words);
}

void Navigator::accept_snapshot(std::shared_ptr<const Snapshot> snapshot) {
  if (!answers_cursor(snapshot.get())) return;
  const bool stepped = playing_ && snapshot_ && snapshot_->token != snapshot->token;
  snapshot_ = std::move(snapshot);
  snapshot_run_ = grown_run_;
  if (stepped && !reduce_motion_) {
    cursor_.progress = 0;
    moving_since_.start();
    frames_.start();
  } else if (!frames_.isActive()) {
    cursor_.progress = 1;
  }
  Q_EMIT snapshot_changed();
  if (playing_) beat_.start(static_cast<int>(beat_ms / speed_));
}

void Navigator::request() {
  if (!run_ || run_->tokens.empty()) return;
  const QPointer<Navigator> self = this;
  source_.show(cursor_.layer, cursor_.head, cursor_.token, [self](std::shared_ptr<const Snapshot> snapshot) {
    if (self) self->accept_snapshot(std::move(snapshot));
  });
}

Cursor Navigator::inside(Cursor place) const {
  place.token = clamp_index(place.token, tokens());
  place.reference = std::clamp<std::int64_t>(place.reference, -1, std::max<std::int64_t>(tokens() - 1, -1));
  place.layer = clamp_index(place.layer, run_ ? static_cast<std::int64_t>(run_->model.layers.size()) : 0);
  if (!run_ || run_->model.layers.empty()) return place;
  const LayerInfo& layer = run_->model.layers[static_cast<std::size_t>(place.layer)];
  // Where there is nothing to choose, what is chosen elsewhere stays chosen.
  place.head = layer.most_heads() > 0 ? clamp_index(place.head, layer.most_heads()) : cursor_.head;
  if (!layer.has_state()) {
    place.slot = cursor_.slot;
    place.row = cursor_.row, place.column = cursor_.column;
    return place;
  }
  place.slot = clamp_index(place.slot, layer.slots());
  if (place.row != kAllRows) place.row = std::clamp<std::int64_t>(place.row, -1, std::max<std::int64_t>(layer.rows - 1, -1));
  place.column = std::clamp<std::int64_t>(place.column, -1, std::max<std::int64_t>(layer.columns - 1, -1));
  return place;
}

void Navigator::go_to(Cursor place) {
  place = inside(place);
  const bool elsewhere = place.layer != cursor_.layer || place.token != cursor_.token;
  const bool unseen = elsewhere || place.head != cursor_.head;
  cursor_ = place;
  if (elsewhere) rest();
  Q_EMIT cursor_changed();
  if (unseen) request();
}

void Navigator::place(const Cursor& place) {
  go_to(place);
  set_progress(place.progress);
}

void Navigator::set_other(Navigator* other, std::function<Peer()> peer) {
  if (other_) disconnect(other_, nullptr, this, nullptr);
  other_ = other;
  peer_ = std::move(peer);
  if (other_) {
    for (const auto signal : {&Navigator::run_changed, &Navigator::cursor_changed, &Navigator::snapshot_changed, &Navigator::opening_ended})
      connect(other_, signal, this, &Navigator::other_changed);
    connect(other_, &Navigator::failed, this, [this] { Q_EMIT other_changed(); });
  }
  Q_EMIT other_changed();
}

std::shared_ptr<Peer> Navigator::peer() const { return other_ ? std::make_shared<Peer>(peer_()) : nullptr; }

void Navigator::move(const CursorMove& change) {
  if (lead_) return lead_(change);
  autoplay_delay_.stop();
  destination_.reset();
  if (change.token && *change.token != cursor_.token) pause();
  Cursor place = cursor_;
  place.token = change.token.value_or(place.token);
  if (place.token >= tokens() && tokens_to_come(*this) > 0) {  // until it has been read the last one that has been stands for it
    destination_ = Destination{std::min(place.token, run_->prompt_length - 1)};
    Q_EMIT remarked(tr("Token %1 is being read").arg(destination_->token));
  }
  place.layer = change.layer.value_or(place.layer);
  place.head = change.head.value_or(place.head);
  place.slot = change.slot.value_or(place.slot);
  place.row = change.row.value_or(place.row);
  place.column = change.column.value_or(place.column);
  place.reference = change.reference.value_or(place.reference);
  go_to(place);
}

void Navigator::step(std::int64_t count) {
  CursorMove change;
  change.token = cursor_.token + count;
  move(change);
}

void Navigator::step_layer(std::int64_t layers) {
  CursorMove change;
  change.layer = cursor_.layer + layers;
  move(change);
}

void Navigator::step_head(std::int64_t heads) {
  CursorMove change;
  change.head = cursor_.head + heads;
  move(change);
}

void Navigator::step_cell(std::int64_t rows, std::int64_t columns) {
  CursorMove change;
  change.row = std::max<std::int64_t>(cursor_.row + rows, 0);
  const bool along_rows = columns == 0 && cursor_.row >= 0 && cursor_.column < 0;  // a row as a whole stays one
  change.column = along_rows ? -1 : std::max<std::int64_t>(cursor_.column + columns, 0);
  move(change);
}

void Navigator::point_at(std::int64_t row, std::int64_t column) {
  if (chooses_whole(cursor_) || (row == cursor_.row && column == cursor_.column)) return;
  if (lead_) return lead_({.row = row, .column = column});
  Cursor place = cursor_;
  place.row = row;
  place.column = column;
  go_to(place);
}

void Navigator::toggle_reference() { move({.reference = cursor_.reference == cursor_.token ? -1 : cursor_.token}); }

void Navigator::play() {
  autoplay_delay_.stop();
  if (playing_ || !run_) return;
  playing_ = true;
  if (cursor_.token + 1 >= tokens() && tokens_to_come(*this) == 0)
    go_to([this] {
      Cursor start = cursor_;
      start.token = 0;
      return start;
    }());
  Q_EMIT playing_changed();
  if (tokens_to_come(*this) > 0) Q_EMIT remarked(tr("Plays as soon as the prompt has been read"));
  if (is_current()) beat_.start(0);
}

void Navigator::pause() {
  autoplay_delay_.stop();
  beat_.stop();
  autoplaying_ = false;
  if (!std::exchange(playing_, false)) return;
  rest();
  Q_EMIT playing_changed();
}

void Navigator::toggle_play() { playing_ ? pause() : play(); }

void Navigator::take_over() {
  autoplay_delay_.stop();
  if (is_autoplaying()) pause();
}

void Navigator::set_speed(double steps_per_beat) {
  speed_ = steps_per_beat;
  Q_EMIT playing_changed();
}

void Navigator::advance() {
  if (tokens_to_come(*this) > 0 || (held_ && held_())) return beat_.start(hold_ms);
  if (cursor_.token + 1 >= tokens()) return pause();
  Cursor next = cursor_;
  ++next.token;
  go_to(next);
  if (playing_ && !reduce_motion_) set_progress(0);  // those who follow may be there first
}

void Navigator::tick() {
  const double length = std::min(motion_ms, beat_ms / speed_);
  set_progress(static_cast<float>(std::min(1.0, static_cast<double>(moving_since_.elapsed()) / length)));
}

void Navigator::rest() { set_progress(1); }

void Navigator::set_progress(float progress) {
  if (progress >= 1) frames_.stop();
  if (std::exchange(cursor_.progress, progress) != progress) Q_EMIT motion_changed();
}

}  // namespace statescope
