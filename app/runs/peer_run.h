// One more model beside the window's: it reads the same prompt through its own tokenizer and goes where the window's cursor goes.
#pragma once

#include <QObject>
#include <filesystem>
#include <memory>
#include <variant>

#include "app/runs/alignment.h"
#include "app/runs/navigator.h"

namespace statescope {

/// How a model's answer compares with what the prompt expects.
enum class AnswerState { unknown, right, wrong };
AnswerState answer_state(const RunInfo& run);

class PeerRun : public QObject {
  Q_OBJECT

 public:
  using Branch = std::shared_ptr<const RunInfo>;
  using Subject = std::variant<std::filesystem::path, Branch>;  // a checkpoint, or a branch of what the leader shows

  /// `leader` outlives it. A checkpoint reads what the leader shows, now and whenever that is another prompt.
  PeerRun(QString letter, Subject subject, std::unique_ptr<RunSource> source, Navigator& leader);
  ~PeerRun() override;

  const QString& letter() const { return letter_; }
  Navigator& navigator() { return *navigator_; }
  const Navigator& navigator() const { return *navigator_; }
  /// Of the file or folder, or of the branch.
  QString name() const;
  /// Empty where it is a branch.
  std::filesystem::path checkpoint() const {
    const auto* path = std::get_if<std::filesystem::path>(&subject_);
    return path ? *path : std::filesystem::path();
  }
  /// Null where it is of a checkpoint.
  Branch branch() const { return std::holds_alternative<Branch>(subject_) ? std::get<Branch>(subject_) : nullptr; }
  /// Why it shows nothing, in a line; empty: it shows something, or will.
  const QString& problem() const { return problem_; }
  /// What else is to be known, in a line: another device, other tokens; may be empty.
  QString note() const;
  /// What it is doing: "reading 40 %"; empty at rest.
  QString doing() const;
  const Alignment& alignment() const { return alignment_; }
  /// It stands where the leader does, or is on its way there.
  bool follows() const { return stands_ && problem_.isEmpty() && alignment_.refused.empty(); }
  /// Nothing of it is on its way to the leader's place.
  bool is_settled() const;

  /// It, as views of the leader see it, and the leader as its own views do.
  Peer seen_by_leader() const;
  /// The same, but while it is on its way there as it was before.
  Peer last_seen() const;
  Peer leader_seen() const;

 Q_SIGNALS:
  void changed();  // what it is doing, a problem, a note

 private:
  void read();
  void grow();
  void match();
  void follow();
  void lead(const CursorMove& change);
  void set_problem(const QString& problem);

  const QString letter_;
  const Subject subject_;
  std::unique_ptr<RunSource> source_;  // before the navigator that looks at it
  Navigator& leader_;
  std::unique_ptr<Navigator> navigator_;
  Alignment alignment_;
  std::shared_ptr<const RunInfo> own_run_, leader_run_;  // that are aligned
  Cursor led_, wanted_;                                  // the leader's place, as last followed; what is wanted here
  bool leading_ = false, stands_ = false;                // stands: its run is of the leader's prompt
  QString problem_, device_note_, doing_;
};

}  // namespace statescope
