// What a view's panel asks of a run beyond its snapshot, and what it does until that is known.
#include <QPointer>
#include <algorithm>
#include <utility>

#include "app/panels/view_panel.h"

namespace statescope {

bool Inquiry::renew(const std::shared_ptr<const RunInfo>& of, std::vector<Question> asked) {
  if (run == of && questions == asked) return false;
  Findings known;
  if (run == of) {
    for (const Question& question : asked)
      if (const Finding* finding = findings.find(question)) known.set(question, *finding);
  }
  *this = {of, std::move(asked), std::move(known)};
  return true;
}

bool Inquiry::take(const Question& question, Finding finding) {
  if (std::ranges::count(questions, question) == 0) return false;
  findings.set(question, std::move(finding));
  return true;
}

bool Inquiry::is_waiting() const {
  return std::ranges::any_of(questions, [this](const Question& question) {
    const Finding* finding = findings.find(question);
    return !finding || (!finding->answer && finding->refused.empty());
  });
}

/// Nobody waits for that any more.
void ViewPanel::stop_asking() {
  if (!own_.questions.empty()) navigator_.ask(asker_, {}, {});
  if (!std::exchange(ahead_, {}).empty()) navigator_.ask(-asker_, {}, {});
  if (!of_peer_.questions.empty() && navigator_.other()) navigator_.other()->ask(asker_, {}, {});
  own_ = of_peer_ = {};
}

/// What the view wants to know there, where that is something else than before.
void ViewPanel::ask() {
  inquire(&ViewPanel::own_, navigator_, view_->questions(*navigator_.snapshot(), navigator_.cursor()));
  ask_peer();
  look_ahead();
}

void ViewPanel::ask_peer() {
  const std::shared_ptr<const Peer> peer = view_->compares() ? navigator_.peer() : nullptr;
  if (peer && peer->snapshot)
    inquire(&ViewPanel::of_peer_, *navigator_.other(),
            view_->peer_questions(*navigator_.snapshot(), own_.findings, *peer->snapshot, navigator_.cursor()));
  else
    of_peer_ = {};
}

/// What the view would ask where the reader may go next: the tokens beside the cursor, then one of every 128, the nearest first. Windows
/// overlap, so that most of it is known then.
std::vector<Question> ViewPanel::questions_elsewhere() const {
  constexpr std::int64_t beside = 4, stride = 128;
  constexpr std::size_t most = 48;
  const Snapshot& now = *navigator_.snapshot();
  const std::int64_t tokens = std::ssize(now.run->tokens), cursor = navigator_.cursor().token;
  std::vector<std::int64_t> distances;
  for (std::int64_t d = 1; d <= beside; ++d) distances.push_back(d);
  for (std::int64_t d = stride; d < tokens; d += stride) distances.push_back(d);
  std::vector<Question> all;
  const auto add = [&](std::int64_t token) {
    if (token < 0 || token >= tokens) return;
    Cursor there = navigator_.cursor();
    there.token = token;
    Snapshot snapshot;  // without its states, which no question depends on
    snapshot.run = now.run;
    snapshot.layer = now.layer;
    snapshot.head = now.head;
    snapshot.token = token;
    snapshot.routing = now.routing;
    for (Question& question : view_->questions(snapshot, there)) {
      const bool known = std::ranges::count(own_.questions, question) > 0 || std::ranges::count(all, question) > 0;
      const bool costs = std::holds_alternative<NeedleGridQuestion>(question) || std::holds_alternative<LayerStateQuestion>(question);
      if (!known && !costs) all.push_back(std::move(question));
    }
  };
  for (auto d = distances.begin(); d != distances.end() && all.size() < most; ++d) {
    add(cursor + *d);
    add(cursor - *d);
  }
  return all;
}

/// Once all that is shown is known; not while a played token moves.
void ViewPanel::look_ahead() {
  if (!has_all() || is_waiting() || navigator_.cursor().progress < 1) return;
  std::vector<Question> questions = questions_elsewhere();
  if (questions == ahead_) return;
  ahead_ = questions;
  navigator_.ask(-asker_, std::move(questions), [](const Question&, const Finding&) {});
}

void ViewPanel::inquire(Inquiry ViewPanel::*inquiry, Navigator& of, std::vector<Question> questions) {
  if (!(this->*inquiry).renew(of.run(), std::move(questions))) return;
  if (!is_waiting()) return answers_delay_.stop();
  if (!(this->*inquiry).is_waiting()) return;
  answers_delay_.start();
  const QPointer<ViewPanel> self = this;
  of.ask(asker_, (this->*inquiry).questions, [self, inquiry, run = of.run()](const Question& question, Finding finding) {
    if (self && (self.data()->*inquiry).run == run) self->take(inquiry, question, std::move(finding));
  });
}

void ViewPanel::take(Inquiry ViewPanel::*inquiry, const Question& question, Finding finding) {
  if (!(this->*inquiry).take(question, std::move(finding))) return;
  if (inquiry == &ViewPanel::own_ && has_all()) ask_peer();
  if (!is_waiting()) {
    answers_delay_.stop();
    look_ahead();
  }
  if (!answers_delay_.isActive()) build_now();
}

Findings ViewPanel::found() const {
  Findings findings = own_.findings;
  if (view_->compares()) {
    const std::shared_ptr<Peer> peer = navigator_.peer();
    if (peer) peer->findings = of_peer_.findings;
    findings.peer = peer;
  }
  if (view_->looks_beside())
    for (Peer& each : navigator_.beside()) findings.beside.push_back(std::make_shared<const Peer>(std::move(each)));
  return findings;
}

}  // namespace statescope
