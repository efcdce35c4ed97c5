#include "app/runs/playback.h"

#include <QPointer>
#include <QTimer>
#include <algorithm>
#include <utility>

#include "engine/unread.h"
#include "views/needle.h"

namespace statescope {
namespace {

constexpr int kPlayback = 0;  // panels count from 1

CursorMove to_token(std::int64_t token) {
  CursorMove move;
  move.token = token;
  return move;
}

}  // namespace

Playback::Playback(Navigator& navigator, QObject* parent) : QObject(parent), navigator_(navigator) {
  connect(this, &Playback::changed, this, &Playback::ask_for_needle);
  connect(&navigator_, &Navigator::opening_ended, this, &Playback::ask_for_needle);
  connect(&navigator_, &Navigator::snapshot_changed, this, &Playback::watch);
  connect(&navigator_, &Navigator::cursor_changed, this, [this] {
    if (navigator_.is_playing() && loop_ && navigator_.cursor().token > loop_->last) go_round();
  });
  connect(&navigator_, &Navigator::playing_changed, this, [this] {
    const bool ended = std::exchange(was_playing_, navigator_.is_playing()) && !navigator_.is_playing();
    if (ended && loop_ && !paused_by_reader_) QTimer::singleShot(0, this, &Playback::go_round_from_end);
  });
  connect(&navigator_, &Navigator::opened, this, [this] {
    if (std::exchange(loop_, std::nullopt)) Q_EMIT changed();
    needle_ = nullptr;
    asked_ = {};
  });
}

Known Playback::known() const {
  Known known{.run = *navigator_.run(), .routing = navigator_.is_current() ? navigator_.snapshot()->routing.get() : nullptr};
  if (needle_) known.kept_from = asked_.end - 1, known.kept = needle_->all.kept;
  return known;
}

/// Once for a run, and only where a breakpoint wants to know.
void Playback::ask_for_needle() {
  const auto wants = [](const Breakpoint& one) { return one.kind == Breakpoint::Kind::survival; };
  if (!navigator_.run() || unread(*navigator_.run()) > 0 || std::ranges::none_of(breakpoints_, wants)) return;
  const NeedleQuestion question = needle_question(*navigator_.run(), navigator_.cursor().token);
  if (question.end == 0 || (question == asked_ && needle_)) return;
  asked_ = question;
  needle_ = nullptr;
  navigator_.ask(kPlayback, {question}, [self = QPointer<Playback>(this), question](const Question&, const Finding& finding) {
    if (!self || self->asked_ != question) return;
    if (finding.answer) self->needle_ = std::static_pointer_cast<const NeedleStory>(finding.answer);
    if (!finding.refused.empty()) Q_EMIT self->said(QString::fromStdString(finding.refused));
  });
}

void Playback::watch() {
  if (!navigator_.is_playing()) return;
  const std::int64_t token = navigator_.cursor().token;
  const Breakpoint* reason = breakpoint_at(breakpoints_, known(), token);
  if (!reason) return;
  paused_by_reader_ = true;
  navigator_.pause();
  Q_EMIT said(tr("Stopped at token %1: %2").arg(token).arg(words_of(*reason)));
}

/// Playing has ended by itself, unless the cursor was moved meanwhile.
void Playback::go_round_from_end() {
  const std::int64_t token = navigator_.cursor().token;
  const bool at_end = token + 1 == navigator_.tokens() && loop_ && loop_->last == token;
  if (at_end && !navigator_.is_playing() && !navigator_.is_opening()) go_round();
}

void Playback::go_round() {
  navigator_.move(to_token(loop_->first));
  navigator_.play();
}

void Playback::toggle_play() {
  paused_by_reader_ = navigator_.is_playing();
  const std::int64_t token = navigator_.cursor().token;
  const bool outside = loop_ && (token < loop_->first || token >= loop_->last);
  if (outside && !navigator_.is_playing())
    go_round();
  else
    navigator_.toggle_play();
}

void Playback::step_to_stop(int direction) {
  if (!navigator_.run()) return;
  const std::optional<std::int64_t> token = next_stop(breakpoints_, known(), navigator_.cursor().token, direction);
  if (!token) return;
  navigator_.move(to_token(*token));
  if (const Breakpoint* reason = breakpoint_at(breakpoints_, known(), *token))
    Q_EMIT said(tr("Token %1: %2").arg(*token).arg(words_of(*reason)));
}

void Playback::add(Breakpoint breakpoint) {
  if (std::ranges::find(breakpoints_, breakpoint) == breakpoints_.end()) breakpoints_.push_back(std::move(breakpoint));
  Q_EMIT changed();
}

void Playback::remove(std::size_t index) {
  breakpoints_.erase(breakpoints_.begin() + static_cast<std::ptrdiff_t>(index));
  Q_EMIT changed();
}

void Playback::enable(std::size_t index, bool enabled) {
  breakpoints_[index].enabled = enabled;
  Q_EMIT changed();
}

void Playback::toggle_here() {
  if (!navigator_.run()) return;
  const std::int64_t token = navigator_.cursor().token;
  const auto here = [token](const Breakpoint& one) { return one.kind == Breakpoint::Kind::token && one.number == token; };
  const bool removed = std::erase_if(breakpoints_, here) > 0;
  if (!removed) breakpoints_.push_back({.kind = Breakpoint::Kind::token, .number = token, .text = {}});
  Q_EMIT changed();
  Q_EMIT said(removed ? tr("No breakpoint at token %1 any more").arg(token) : tr("Breakpoint at token %1").arg(token));
}

void Playback::toggle_loop() {
  if (!navigator_.run()) return;
  loop_ = loop_ ? std::nullopt : std::optional(Loop{0, navigator_.tokens() - 1});
  show_loop();
}

void Playback::loop_from_here() {
  if (!navigator_.run()) return;
  const std::int64_t token = navigator_.cursor().token, end = navigator_.tokens() - 1;
  loop_ = Loop{token, loop_ && loop_->last > token ? loop_->last : end};
  show_loop();
}

void Playback::loop_to_here() {
  if (!navigator_.run()) return;
  const std::int64_t token = navigator_.cursor().token;
  loop_ = Loop{loop_ && loop_->first < token ? loop_->first : 0, token};
  show_loop();
}

void Playback::show_loop() {
  Q_EMIT changed();
  Q_EMIT said(loop_ ? tr("Playing loops over tokens %1 to %2").arg(loop_->first).arg(loop_->last)
                    : tr("Playing goes on to the end, without a loop"));
}

}  // namespace statescope
