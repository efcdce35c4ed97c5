#include <fmt/format.h>

#include <QCoreApplication>
#include <mutex>

#include "app/batch/batch.h"
#include "app/cli/commands.h"
#include "app/common/console.h"
#include "app/common/interruption.h"
#include "app/figure/fonts_alone.h"
#include "datasets/files.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t most_bytes = 16 << 20;

}  // namespace

int batch_command(const BatchArguments& arguments) {
  const std::filesystem::path file = arguments.file;
  const Batch batch = parse_batch(is_stream(file) ? read_text(file) : read_file(file, most_bytes), file.string());
  const std::vector<BatchJob> jobs = jobs_of(batch, file.parent_path());
  const std::filesystem::path folder = file.parent_path() / batch.output;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(fmt::format("{}: {}", folder.string(), error.message()));

  const FontsAlone application;  // which knows where the program is
  const Interruption interruption;
  BatchResult result;
  {
    ProgressBar bar("batch");
    std::mutex mutex;
    const auto progress = [&](std::size_t done) {
      const std::lock_guard lock(mutex);
      bar.show(static_cast<double>(done) / static_cast<double>(jobs.size()), fmt::format("{} of {}", done, jobs.size()));
      return !Interruption::asked();
    };
    const bool rounds = arguments.device.precision == Precision::bfloat16;
    const std::vector<std::string> device{"--device", arguments.device.name, "--precision", rounds ? "bfloat16" : "float32"};
    result = run_batch(jobs, QCoreApplication::applicationFilePath().toStdString(), device, arguments.processes, arguments.force, progress);
  }
  for (const std::string& line : result.failed) fmt::print(stderr, "{}\n", printable(line));
  fmt::print("{} made, {} there already, {} failed{}, in {}\n", result.made, result.there, result.failed.size(),
             result.cancelled ? ", the others not begun" : "", printable(folder.string()));
  return result.failed.empty() && !result.cancelled ? 0 : Interruption::status();
}

}  // namespace statescope
