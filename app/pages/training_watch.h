// A training under way, watched beside the window: every checkpoint of its folder is inspected as it comes.
#pragma once

#include <QObject>
#include <QString>
#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "app/inspect/watch.h"

namespace statescope {

/// Which course of a training is drawn; the numbers are those of the page that `statescope inspect` writes.
struct TrendRow {
  const char* name;  // translated where it is shown
  const char* help;
  const char* format;  // of its numbers in a table
};
constexpr std::size_t trends = 4;
const std::array<TrendRow, trends>& trend_rows();

/// One checkpoint, as far as the window shows it.
struct TrainingStep {
  std::string path, name, series;  // series: its name without the step, the same for all of one training
  std::int64_t steps = 0;          // 0: unknown
  std::string verdict;             // in short
  std::string told;                // what was found, in sentences; why nothing can be said
  bool ill = false;
  std::optional<std::int64_t> layer;                        // where the first illness is
  std::array<double, trends> values{{NAN, NAN, NAN, NAN}};  // of trend_rows(); NaN: there is none
};
TrainingStep training_step(const Inspected& inspected);

class TrainingWatch : public QObject {
  Q_OBJECT

 public:
  using Tell = std::function<bool(double)>;
  /// Reads and judges one checkpoint, on a thread of its own; ends with an Error soon after `tell` has answered false.
  using Inspect = std::function<Inspected(const FoundCheckpoint&, const Tell&)>;

  /// `every`: seconds between two looks.
  /// `kept`: where results of earlier processes are.
  explicit TrainingWatch(Inspect inspect, std::optional<KeptResults> kept = {}, double every = 2, QObject* parent = nullptr);
  ~TrainingWatch() override;

  /// Begins, or goes on; what was read of the same folder before is not read again. One that is watched is left for another folder.
  void start(const std::filesystem::path& folder);
  /// What is being read is dropped.
  void stop();
  bool is_watching() const { return watching_; }
  /// The last one asked for; empty: none yet.
  const std::filesystem::path& folder() const { return folder_; }
  /// In the order of the folder.
  const std::vector<TrainingStep>& steps() const { return steps_; }

 Q_SIGNALS:
  void steps_changed();
  void state_changed();                                         // watching or not, another folder
  void progressed(const QString& checkpoint, double fraction);  // of the one that is being read
  void rested();                                                // all there is has been read
  void skipped(const QString& why);                             // "PATH: why", once for each state of a file

 private:
  /// What both threads see of one folder.
  struct Shared {
    std::atomic<bool> stop = false;
    std::unique_ptr<Watch> watch;
    std::function<void(double)> tell;  // of the checkpoint that is being read
  };

  void run(const std::shared_ptr<Shared>& shared, const std::filesystem::path& folder);
  void look(Shared& shared, const std::filesystem::path& folder);
  void publish(const Shared& shared);
  void post(std::function<void()> work);
  void begin();
  void end();

  Inspect inspect_;
  std::optional<KeptResults> kept_;
  const double every_;
  std::filesystem::path folder_, read_folder_;  // wanted; that of shared_
  std::shared_ptr<Shared> shared_;
  std::jthread thread_;
  bool watching_ = false, running_ = false;
  std::vector<TrainingStep> steps_;
};

}  // namespace statescope
