#include "app/runs/peer_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "app/common/plain_words.h"
#include "engine/unread.h"

namespace statescope {
namespace {

/// The leader's field where it has moved since, else what was wanted here: a partition that the leader does not have stays chosen.
void take_moved(const Cursor& from, const Cursor& before, Cursor& into, std::int64_t Cursor::*field) {
  if (from.*field != before.*field) into.*field = from.*field;
}

void take_asked(const std::optional<std::int64_t>& asked, std::int64_t& into) { into = asked.value_or(into); }

std::int64_t mapped(const std::vector<std::int64_t>& map, std::int64_t token) {
  return map.empty() ? token : map[static_cast<std::size_t>(std::clamp<std::int64_t>(token, 0, std::ssize(map) - 1))];
}

/// All of the prompt.
bool has_read(const Navigator& navigator) { return navigator.run() && unread(*navigator.run()) == 0; }

}  // namespace

AnswerState answer_state(const RunInfo& run) {
  const auto answered = std::ssize(run.tokens) - run.prompt_length;
  if (run.expected.empty() || answered < std::ssize(run.expected)) return AnswerState::unknown;
  const bool right = std::equal(run.expected.begin(), run.expected.end(), run.tokens.begin() + run.prompt_length,
                                [](const TokenInfo& a, const TokenInfo& b) { return a.id == b.id; });
  return right ? AnswerState::right : AnswerState::wrong;
}

PeerRun::PeerRun(QString letter, Subject subject, std::unique_ptr<RunSource> source, Navigator& leader)
    : letter_(std::move(letter)),
      subject_(std::move(subject)),
      source_(std::move(source)),
      leader_(leader),
      navigator_(std::make_unique<Navigator>(*source_)) {
  navigator_->set_autoplay(false);
  navigator_->follow([this](const CursorMove& change) { lead(change); });
  connect(&leader_, &Navigator::opened, this, &PeerRun::read);
  connect(&leader_, &Navigator::opening_ended, this, &PeerRun::grow);
  connect(&leader_, &Navigator::run_changed, this, &PeerRun::match);
  connect(&leader_, &Navigator::cursor_changed, this, &PeerRun::follow);
  for (const auto signal : {&Navigator::motion_changed, &Navigator::snapshot_changed})
    connect(&leader_, signal, this, [this] { navigator_->set_progress(leader_.cursor().progress); });
  connect(navigator_.get(), &Navigator::opened, this, [this] {
    stands_ = true;
    set_problem({});
  });
  connect(navigator_.get(), &Navigator::run_changed, this, &PeerRun::match);
  connect(navigator_.get(), &Navigator::progressed, this, [this](double fraction, const QString& what) {
    doing_ = fraction > 0 ? tr("%1 %2 %").arg(what).arg(std::floor(100 * fraction)) : what;
    Q_EMIT changed();
  });
  connect(navigator_.get(), &Navigator::opening_ended, this, [this] {
    doing_.clear();
    if (!stands_ && problem_.isEmpty()) set_problem(tr("Opening it was cancelled. Choose it again to compare with it."));
    grow();
    Q_EMIT changed();
  });
  connect(navigator_.get(), &Navigator::failed, this, &PeerRun::set_problem);
  connect(navigator_.get(), &Navigator::device_failed, this, [this](const QString& message) {
    device_note_ = message;
    Q_EMIT changed();
  });
  if (leader_.run()) read();
}

PeerRun::~PeerRun() = default;

QString PeerRun::name() const {
  if (branch()) return branch()->branch.number == 0 ? tr("the model's own run") : tr("branch %1").arg(branch()->branch.number);
  const auto& checkpoint = std::get<std::filesystem::path>(subject_);
  return checkpoint_name(checkpoint);
}

/// What the leader reads, on the model that is open or the one to be opened.
void PeerRun::read() {
  stands_ = false;
  problem_.clear();
  if (navigator_->run())
    navigator_->read(leader_.prompt());
  else
    navigator_->open(branch() ? leader_.checkpoint() : std::get<std::filesystem::path>(subject_), leader_.prompt());
  Q_EMIT changed();
}

/// The leader has generated more.
void PeerRun::grow() {
  if (!stands_ || branch() || navigator_->is_opening() || leader_.is_opening()) return;
  const auto generated = [](const Navigator& of) { return of.tokens() - of.run()->prompt_length; };
  const std::int64_t missing = generated(leader_) - generated(*navigator_);
  if (missing > 0 && leader_.prompt().generate != navigator_->prompt().generate) navigator_->generate_more(missing);
}

void PeerRun::match() {
  if (!stands_ || !has_read(leader_) || !has_read(*navigator_)) return;
  if (own_run_ == navigator_->run() && leader_run_ == leader_.run()) return;
  own_run_ = navigator_->run();
  leader_run_ = leader_.run();
  alignment_ = branch() ? align_by_place(*leader_run_, *own_run_) : align(*leader_run_, *own_run_);
  follow();
  Q_EMIT changed();
}

void PeerRun::follow() {
  if (!follows() || !own_run_ || own_run_ != navigator_->run()) return;
  const Cursor& leader = leader_.cursor();
  for (const auto field : {&Cursor::layer, &Cursor::head, &Cursor::slot, &Cursor::row, &Cursor::column})
    take_moved(leader, led_, wanted_, field);
  led_ = leader;
  if (leading_) return;
  wanted_.token = mapped(alignment_.other, leader.token);
  wanted_.reference = leader.reference < 0 ? -1 : mapped(alignment_.other, leader.reference);
  wanted_.progress = leader.progress;
  navigator_->place(wanted_);
}

/// A click here is the leader's; what only this model has is chosen here alone.
void PeerRun::lead(const CursorMove& change) {
  CursorMove to_leader = change;
  if (change.token) to_leader.token = mapped(alignment_.own, *change.token);
  if (change.reference && *change.reference >= 0) to_leader.reference = mapped(alignment_.own, *change.reference);
  leading_ = true;
  leader_.move(to_leader);
  leading_ = false;
  take_asked(change.layer, wanted_.layer);
  take_asked(change.head, wanted_.head);
  take_asked(change.slot, wanted_.slot);
  take_asked(change.row, wanted_.row);
  take_asked(change.column, wanted_.column);
  follow();
}

void PeerRun::set_problem(const QString& problem) {
  problem_ = problem;
  Q_EMIT changed();
}

QString PeerRun::doing() const {
  if (!doing_.isEmpty()) return doing_;
  return leader_.run() ? QString() : tr("waits for A");
}

QString PeerRun::note() const {
  QStringList notes;
  if (!alignment_.refused.empty())
    notes.push_back(tr("%1 cannot follow the cursor: %2.").arg(letter_, QString::fromStdString(alignment_.refused)));
  else if (own_run_ && !branch() && alignment_.same_until < std::min(own_run_->prompt_length, leader_run_->prompt_length))
    notes.push_back(tr("%1 splits the text into other tokens (%2): the cursor stands where the same characters end.")
                        .arg(letter_)
                        .arg(own_run_->prompt_length));
  if (!device_note_.isEmpty()) notes.push_back(device_note_);
  return notes.join(QChar(' '));
}

bool PeerRun::is_settled() const {
  if (!problem_.isEmpty() || !alignment_.refused.empty()) return true;
  return stands_ && !navigator_->is_opening() && navigator_->is_current();
}

Peer PeerRun::seen_by_leader() const {
  Peer peer{.own_letter = "A",
            .letter = letter_.toStdString(),
            .snapshot = {},
            .missing = {},
            .same_until = alignment_.same_until,
            .findings = {}};
  if (!problem_.isEmpty())
    peer.missing = problem_.toStdString();
  else if (!stands_ || !has_read(*navigator_))
    peer.missing = tr("%1 has not read the prompt yet").arg(letter_).toStdString();
  else if (!has_read(leader_))
    peer.missing = tr("%1 has not read the prompt yet").arg("A").toStdString();
  else if (!alignment_.refused.empty())
    peer.missing = alignment_.refused;
  else if (navigator_->is_current())
    peer.snapshot = navigator_->snapshot();
  return peer;
}

Peer PeerRun::last_seen() const {
  Peer peer = seen_by_leader();
  const std::shared_ptr<const Snapshot>& last = navigator_->snapshot();
  if (peer.missing.empty() && last && last->run == own_run_) peer.snapshot = last;
  return peer;
}

Peer PeerRun::leader_seen() const {
  Peer peer = seen_by_leader();
  std::swap(peer.own_letter, peer.letter);
  peer.snapshot = peer.snapshot && leader_.is_current() ? leader_.snapshot() : nullptr;
  return peer;
}

}  // namespace statescope
