// Up to three models beside the window's, all under its cursor.
#pragma once

#include <functional>
#include <vector>

#include "app/runs/peer_run.h"

namespace statescope {

using MakeSource = std::function<std::unique_ptr<RunSource>()>;

class Comparison : public QObject {
  Q_OBJECT

 public:
  static constexpr std::size_t most_peers = 3;

  /// `leader` outlives it: model A. `make_source`: one for each further model, on the window's device.
  Comparison(Navigator& leader, MakeSource make_source, QObject* parent = nullptr);
  ~Comparison() override;

  const std::vector<std::unique_ptr<PeerRun>>& peers() const { return peers_; }
  bool is_on() const { return !peers_.empty(); }
  bool is_full() const { return peers_.size() == most_peers; }
  /// Nothing of any is on its way.
  bool is_settled() const;
  bool is_opening() const;

  /// B, C or D. Nothing happens where there are three already.
  void add(const std::filesystem::path& checkpoint);
  /// In place of the branch that stands beside, if any does: the one that the leader's run has left, always. Where the leader goes to
  /// another branch, it is that one's. False: there is none, or no room.
  bool add_parent();
  /// Likewise a branch of the leader's tree, until the leader goes there itself. False: it is the leader's, or there is no room.
  bool add_branch(std::shared_ptr<const RunInfo> run);
  void remove_branch();
  /// That stands beside; null: none does.
  std::shared_ptr<const RunInfo> branch() const;
  bool shows_parent() const { return branch() && follows_parent_; }
  void remove(const PeerRun& peer);
  void stop();
  /// Ends what is being opened, read or generated beside the window's own.
  void cancel();

  /// With whom the views of A compare; null: there is no other model.
  PeerRun* chosen() const { return chosen_; }
  void choose(PeerRun& peer);
  void choose_next();

 Q_SIGNALS:
  void added(PeerRun* peer);
  void removed(PeerRun* peer);  // on its way out
  void changed();               // who is there, what one is doing, who is chosen

 private:
  QString free_letter() const;
  void add(PeerRun::Subject subject, std::unique_ptr<RunSource> source);
  PeerRun* branch_peer() const;
  std::vector<Peer> seen_by(const PeerRun& peer) const;
  void tell_peers(const PeerRun* who);
  void follow_branches();

  Navigator& leader_;
  const MakeSource make_source_;
  std::vector<std::unique_ptr<PeerRun>> peers_;
  PeerRun* chosen_ = nullptr;
  bool follows_parent_ = false;  // the branch beside is the leader's parent, whichever that is
};

}  // namespace statescope
