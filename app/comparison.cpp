#include "app/comparison.h"

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
}

Comparison::~Comparison() {
  leader_.hold_while({});
  leader_.set_other(nullptr, {});
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
  if (is_full() || !make_source_) return;
  const QString letter = free_letter();
  const auto place = std::ranges::find_if(peers_, [&](const auto& peer) { return peer->letter() > letter; });
  PeerRun& peer = **peers_.insert(place, std::make_unique<PeerRun>(letter, checkpoint, make_source_(), leader_));
  peer.navigator().set_other(&leader_, [&peer] { return peer.leader_seen(); });
  connect(&peer, &PeerRun::changed, this, &Comparison::changed);
  Q_EMIT added(&peer);
  choose(chosen_ ? *chosen_ : peer);
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
  Q_EMIT removed(leaving);
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
