#include "app/runs/comparison.h"

#include <algorithm>
#include <utility>

namespace statescope {

Comparison::Comparison(Navigator& leader, MakeSource make_source, QObject* parent)
    : QObject(parent), leader_(leader), make_source_(std::move(make_source)) {
  // Playing is as fast as the slowest.
  leader_.hold_while([this] {
    return std::ranges::any_of(peers_,
                               [](const auto& peer) { return peer->follows() && !peer->is_settled() && !peer->navigator().is_opening(); });
  });
  leader_.set_beside([this] {
    std::vector<Peer> beside;
    for (const auto& peer : peers_) beside.push_back(peer->last_seen());
    return beside;
  });
  connect(&leader_, &Navigator::snapshot_changed, this, [this] { tell_peers(nullptr); });
  connect(&leader_, &Navigator::run_changed, this, &Comparison::follow_branches);
  connect(&leader_, &Navigator::opened, this, [this] {
    if (!follows_parent_) remove_branch();
  });
}

Comparison::~Comparison() {
  leader_.hold_while({});
  leader_.set_other(nullptr, {});
  leader_.set_beside({});
}

bool Comparison::is_settled() const {
  return std::ranges::all_of(peers_, [](const auto& peer) { return peer->is_settled(); });
}

bool Comparison::is_opening() const {
  return std::ranges::any_of(peers_, [](const auto& peer) { return peer->navigator().is_opening(); });
}

QString Comparison::free_letter() const {
  for (const char* letter : {"B", "C"})
    if (std::ranges::none_of(peers_, [&](const auto& peer) { return peer->letter() == QLatin1String(letter); }))
      return QLatin1String(letter);
  return QStringLiteral("D");
}

void Comparison::add(const std::filesystem::path& checkpoint) {
  if (!is_full() && make_source_) add(PeerRun::Subject(checkpoint), make_source_());
}

void Comparison::add(PeerRun::Subject subject, std::unique_ptr<RunSource> source) {
  const QString letter = free_letter();
  const auto place = std::ranges::find_if(peers_, [&](const auto& peer) { return peer->letter() > letter; });
  PeerRun& peer = **peers_.insert(place, std::make_unique<PeerRun>(letter, std::move(subject), std::move(source), leader_));
  peer.navigator().set_other(&leader_, [&peer] { return peer.leader_seen(); });
  peer.navigator().set_beside([this, &peer] { return seen_by(peer); });
  connect(&peer, &PeerRun::changed, this, &Comparison::changed);
  connect(&peer.navigator(), &Navigator::snapshot_changed, &leader_, &Navigator::beside_changed);
  connect(&peer.navigator(), &Navigator::snapshot_changed, this, [this, &peer] { tell_peers(&peer); });
  Q_EMIT added(&peer);
  choose(chosen_ ? *chosen_ : peer);
}

/// The leader, and the other peers.
std::vector<Peer> Comparison::seen_by(const PeerRun& peer) const {
  std::vector<Peer> beside{peer.leader_seen()};
  for (const auto& other : peers_)
    if (other.get() != &peer) beside.push_back(other->last_seen());
  return beside;
}

/// That somebody beside them has moved.
void Comparison::tell_peers(const PeerRun* who) {
  for (const auto& peer : peers_)
    if (peer.get() != who) Q_EMIT peer->navigator().beside_changed();
}

PeerRun* Comparison::branch_peer() const {
  const auto found = std::ranges::find_if(peers_, [](const auto& peer) { return peer->branch() != nullptr; });
  return found == peers_.end() ? nullptr : found->get();
}

std::shared_ptr<const RunInfo> Comparison::branch() const {
  const PeerRun* peer = branch_peer();
  return peer ? peer->branch() : nullptr;
}

bool Comparison::add_parent() {
  follows_parent_ = add_branch(leader_.parent());
  return follows_parent_;
}

bool Comparison::add_branch(std::shared_ptr<const RunInfo> run) {
  if (!run || run == leader_.run() || (is_full() && !branch_peer())) return false;
  std::unique_ptr<RunSource> source = leader_.beside(run);
  if (!source) return false;
  remove_branch();
  follows_parent_ = false;
  add(std::move(run), std::move(source));
  choose(*branch_peer());
  return true;
}

void Comparison::remove_branch() {
  if (const PeerRun* peer = branch_peer()) remove(*peer);
}

/// Where another branch is shown than before, or all have been read anew.
void Comparison::follow_branches() {
  const std::shared_ptr<const RunInfo> beside = branch();
  if (!beside) return;
  std::shared_ptr<const RunInfo> wanted = leader_.parent();
  if (!follows_parent_) {
    const auto& runs = leader_.branches()->runs;
    const auto number = static_cast<std::size_t>(beside->branch.number);
    wanted = number < runs.size() && beside->branch.number != leader_.run()->branch.number ? runs[number] : nullptr;
  }
  if (beside == wanted) return;
  remove_branch();
  if (follows_parent_)
    add_parent();
  else
    add_branch(std::move(wanted));
}

void Comparison::choose(PeerRun& peer) {
  chosen_ = &peer;
  leader_.set_other(&peer.navigator(), [&peer] { return peer.seen_by_leader(); });
  Q_EMIT changed();
}

void Comparison::choose_next() {
  if (!is_on()) return;
  const auto at = std::ranges::find(peers_, chosen_, &std::unique_ptr<PeerRun>::get) - peers_.begin();
  choose(*peers_[static_cast<std::size_t>(at + 1) % peers_.size()]);
}

void Comparison::remove(const PeerRun& peer) {
  const auto at = std::ranges::find(peers_, &peer, &std::unique_ptr<PeerRun>::get);
  PeerRun* leaving = at->release();
  peers_.erase(at);
  if (chosen_ == leaving) {
    chosen_ = nullptr;
    leader_.set_other(nullptr, {});
    if (is_on()) choose(*peers_.front());
  }
  leaving->navigator().set_other(nullptr, {});
  leaving->navigator().set_beside({});
  disconnect(&leaving->navigator(), nullptr, this, nullptr);
  Q_EMIT removed(leaving);
  Q_EMIT leader_.beside_changed();
  tell_peers(nullptr);
  leaving->setParent(this);
  leaving->deleteLater();  // after the widgets that look at it, which may be handling a key
  Q_EMIT changed();
}

void Comparison::stop() {
  while (is_on()) remove(*peers_.back());
}

void Comparison::cancel() {
  for (const auto& peer : peers_)
    if (peer->navigator().is_opening()) peer->navigator().cancel();
}

}  // namespace statescope
