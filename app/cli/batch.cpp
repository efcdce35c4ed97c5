#include <fmt/format.h>

#include <QCoreApplication>
#include <QTemporaryFile>
#include <cereal/types/string.hpp>
#include <cereal/types/utility.hpp>
#include <mutex>
#include <optional>
#include <utility>

#include "app/batch/batch.h"
#include "app/cli/engine.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/figure/fonts_alone.h"
#include "app/ranks/packed.h"
#include "app/ranks/ranks.h"
#include "datasets/files.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t most_bytes = 16 << 20;

struct Figures {
  std::vector<BatchJob> jobs;
  std::filesystem::path folder;  // where they go
};

Figures figures_of(const std::filesystem::path& file, bool elsewhere = false) {
  const Batch batch = parse_batch(is_stream(file) ? read_text(file) : read_file(file, most_bytes), file.string());
  Figures figures{jobs_of(batch, file.parent_path(), elsewhere), file.parent_path() / batch.output};
  std::error_code error;
  std::filesystem::create_directories(figures.folder, error);
  if (error) throw Error(fmt::format("{}: {}", figures.folder.string(), error.message()));
  return figures;
}

std::vector<std::string> options_of(const DeviceChoice& device) {
  return {"--device", device.name, "--precision", device.precision == Precision::bfloat16 ? "bfloat16" : "float32"};
}

/// The engine of all figures, and what leads their processes there.
class EngineOfFigures {
 public:
  explicit EngineOfFigures(const BatchArguments& arguments) : reached_(reach_engine(arguments.engine, arguments.device, 0)) {
    if (!reached_) return;
    const EnginePlace& place = reached_->place();
    options_ = {"--engine", place.address};
    if (!arguments.engine.authorities.empty()) options_.insert(options_.end(), {"--engine-ca", arguments.engine.authorities});
    if (place.token.empty()) return;
    if (!token_.open() || token_.write(place.token.c_str()) < 0 || !token_.flush())
      throw Error("no room for temporary files: " + token_.errorString().toStdString());
    options_.insert(options_.end(), {"--engine-token-file", token_.fileName().toStdString()});
  }
  explicit operator bool() const { return reached_ != nullptr; }
  const std::vector<std::string>& options() const { return options_; }

 private:
  std::unique_ptr<EngineRuns> reached_;
  QTemporaryFile token_;  // for its owner alone
  std::vector<std::string> options_;
};

int report(const Figures& figures, const BatchResult& result) {
  for (const std::string& line : result.failed) fmt::print(stderr, "{}\n", printable(line));
  fmt::print("{} made, {} there already, {} failed{}, in {}\n", result.made, result.there, result.failed.size(),
             result.cancelled ? ", the others not begun" : "", printable(figures.folder.string()));
  return result.failed.empty() && !result.cancelled ? 0 : Interruption::status();
}

int batch_on_ranks(const BatchArguments& arguments, const RankPlace& place) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const DeviceChoice device = device_of_rank(arguments.device, place, visible_gpus());
  Ranks ranks(place, [&](const std::string& job, const auto&) {
    const auto [spec, output] = unpacked<std::pair<std::string, std::string>>(job);
    const BatchOutcome outcome = make_figure({spec, output}, program, options_of(device), arguments.force);
    return packed(std::pair(outcome.was_there, outcome.failed));
  });
  if (!place.is_first()) return ranks.follow(), 0;

  const Figures figures = figures_of(arguments.file);
  const Interruption interruption;
  std::vector<std::string> jobs;
  for (const BatchJob& job : figures.jobs) jobs.push_back(packed(std::pair(job.spec, job.output.string())));
  std::vector<std::optional<BatchOutcome>> outcomes(jobs.size());
  std::size_t done = 0;
  {
    ProgressBar bar("batch");
    try {
      ranks.run(jobs, [&](std::size_t job, double, const std::string* result) {
        if (!result) return true;
        const auto [was_there, failed] = unpacked<std::pair<bool, std::string>>(*result);
        outcomes[job] = BatchOutcome{was_there, failed};
        ++done;
        bar.show(static_cast<double>(done) / static_cast<double>(jobs.size()), fmt::format("{} of {}", done, jobs.size()));
        return true;
      });
    } catch (const Cancelled&) {
    }
  }
  return report(figures, sum_of(figures.jobs, outcomes));
}

}  // namespace

int batch_command(const BatchArguments& arguments) {
  const std::optional<RankPlace> place = rank_place();
  if (place && !arguments.engine.place.empty()) throw OptionsError("--engine does not go with mpirun or srun; start one process");
  if (place) return batch_on_ranks(arguments, *place);
  const Figures figures = figures_of(arguments.file, !arguments.engine.place.empty());
  const FontsAlone application;  // which knows where the program is
  const Interruption interruption;
  const EngineOfFigures engine(arguments);
  BatchResult result;
  {
    ProgressBar bar("batch");
    std::mutex mutex;
    const auto progress = [&](std::size_t done) {
      const std::lock_guard lock(mutex);
      bar.show(static_cast<double>(done) / static_cast<double>(figures.jobs.size()), fmt::format("{} of {}", done, figures.jobs.size()));
      return !Interruption::asked();
    };
    result = run_batch(figures.jobs, QCoreApplication::applicationFilePath().toStdString(),
                       engine ? engine.options() : options_of(arguments.device), arguments.processes, arguments.force, progress);
  }
  return report(figures, result);
}

}  // namespace statescope
