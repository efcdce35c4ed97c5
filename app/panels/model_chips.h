// The models that are compared, each with its letter and colour, what it runs on and how it stands.
#pragma once

#include <QHBoxLayout>
#include <QToolButton>
#include <vector>

#include "app/runs/comparison.h"

namespace statescope {

/// "✓ right"; empty where nobody knows.
QString answer_words(const RunInfo& run);

class ModelChips : public QWidget {
  Q_OBJECT

 public:
  ModelChips(Navigator& leader, Comparison& comparison, QWidget* parent = nullptr);

  void set_frame(const Frame& frame);
  /// Whether a chip says if its model answers rightly.
  void set_answers_told(bool told);

 Q_SIGNALS:
  void chosen(const PeerRun* peer);  // null: A

 private:
  /// A chip's words: on it, and all that is known.
  struct Words {
    QString text, all;
  };
  void make();
  void update_words();
  Words words_of(const QString& name, const Navigator& navigator, const QString& doing, const QString& problem) const;
  QToolButton* make_chip(const PeerRun* peer);

  Navigator& leader_;
  Comparison& comparison_;
  Frame frame_;
  bool answers_told_ = true;
  QHBoxLayout* layout_;
  std::vector<QToolButton*> chips_;      // A first
  std::vector<const PeerRun*> made_of_;  // those that the chips after A stand for
};

}  // namespace statescope
