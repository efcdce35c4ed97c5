#include "views/beside.h"

#include "views/words.h"

namespace statescope {

Message without_peer(const Findings& findings) {
  const Peer* peer = findings.peer.get();
  if (!peer)
    return {Views::tr("There is no other model to compare with"), Views::tr("Compare with… in the File menu opens one beside this one.")};
  if (peer->snapshot) return {};
  return {Views::tr("Nothing is known about {} here", peer->letter),
          peer->missing.empty() ? Views::tr("{} is on its way to this token.", peer->letter) : peer->missing};
}

Message without_peer_layer(const Snapshot& snapshot, const Findings& findings) {
  const Message message = without_peer(findings);
  if (message || findings.peer->snapshot->layer == snapshot.layer) return message;
  return {Views::tr("{} has no layer {}", findings.peer->letter, snapshot.layer),
          Views::tr("It has {} of them, {} has {}.", findings.peer->snapshot->run->model.layers.size(), findings.peer->own_letter,
                    snapshot.run->model.layers.size())};
}

}  // namespace statescope
