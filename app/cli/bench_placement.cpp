// `statescope bench --placement`: on paper, and where there is a device measured beside it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <optional>

#include "app/assets.h"
#include "app/bench/reckoning.h"
#include "app/cli/bench_random.h"
#include "app/cli/commands.h"
#include "datasets/task.h"
#include "engine/checkpoint/printable.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr double kGigabyte = 1e9;

/// The four models that come with the program, small ones first.
std::vector<std::string> released() {
  std::vector<std::string> files;
  for (const char* name : {"Qwen3.5-27B", "Kimi-Linear-48B-A3B", "Qwen3-Next-80B-A3B", "Qwen3.5-397B-A17B"})
    files.push_back((assets_folder() / "placement" / name).string() + ".json");
  return files;
}

/// A GPU of such a memory; what the options say of it counts more than what is known.
GpuKind gpu_with(double gigabytes, const KnownGpus& known, const BenchArguments& arguments) {
  GpuKind kind;
  const auto found = std::ranges::find(known.kinds, gigabytes * kGigabyte, &GpuKind::memory);
  if (found != known.kinds.end() && arguments.bandwidth == 0) kind = *found;
  kind.memory = gigabytes * kGigabyte;
  if (arguments.bandwidth > 0) kind.bandwidth = arguments.bandwidth * kGigabyte;
  if (arguments.link > 0) kind.link = arguments.link * kGigabyte;
  if (kind.bandwidth == 0)
    throw OptionsError(fmt::format("no GPU with {} GB of memory is known: give --gpu-bandwidth and --link, too", gigabytes));
  if (kind.link == 0) throw OptionsError("--gpu-bandwidth needs --link: GB/s from one GPU to the next");
  return kind;
}

std::string bytes_text(double bytes) {
  return bytes < kGigabyte / 10 ? fmt::format("{:.1f} MB", bytes / 1e6) : fmt::format("{:.1f} GB", bytes / kGigabyte);
}

void print_model(const PaperModel& model, std::int64_t context) {
  const bool is_quantised = model.config.has("quantization_config") || model.config.object("text_config").has("quantization_config");
  fmt::print("{}: {}, {:.1f} billion parameters in {}{}, {} layers of width {}\n", printable(model.name), model.plan.family,
             model.parameters / 1e9,
             model.dtype == DType::f32   ? "float32"
             : model.dtype == DType::f16 ? "float16"
                                         : "bfloat16",
             is_quantised ? ", which its config has quantised" : "", model.plan.layers.size(), model.plan.hidden);
  fmt::print("  takes {} with what {} tokens leave behind\n", bytes_text(model.takes()), kPlacedTokens);
  fmt::print("  a token behind {} others: {} of weights, {} of states (read and written), {} of keys and values\n", context,
             bytes_text(model.weights()), bytes_text(model.states()), bytes_text(model.cache() * static_cast<double>(context)));
}

/// Its row, and what it is of; nothing where it does not fit.
std::optional<Reckoned> print_row(const PaperModel& model, int gpus, const GpuKind& kind, const BenchArguments& arguments, double reached) {
  const HostKind host{arguments.host_memory * kGigabyte, arguments.host_bandwidth * kGigabyte};
  const Reckoned one = reckon(model.parts, model.traffic, model.plan.hidden, gpus, kind, host, arguments.context);
  const std::string name = fmt::format("{} × {:.0f} GB{}", gpus, kind.memory / kGigabyte, kind.name.empty() ? "" : " (" + kind.name + ")");
  if (!one.no_room.empty()) return fmt::print("  {:<24}  no room\n", name), std::nullopt;
  fmt::print("  {:<24}  {:>9.2f}  {:>9.1f}  {:>9.1f}  {:>6.1f} %  {}\n", name, 1e3 * one.seconds(), 1 / one.seconds(),
             reached / one.seconds(), 100 * one.link_seconds / one.seconds(), fmt::join(one.layers, " + "));
  return one;
}

}  // namespace

int bench_placement_command(const BenchArguments& arguments) {
  const KnownGpus known = known_gpus(assets_folder() / "placement/gpus.json");
  const std::vector<int> counts = arguments.gpus.empty() ? std::vector{1, 2, 4, 8} : arguments.gpus;
  std::vector<GpuKind> kinds;
  if (arguments.memory.empty() && arguments.bandwidth == 0 && arguments.link == 0) kinds = known.kinds;
  if (kinds.empty() && arguments.memory.empty()) throw OptionsError("--gpu-bandwidth and --link need --gpu-memory");
  for (const double memory : arguments.memory) kinds.push_back(gpu_with(memory, known, arguments));
  std::vector<PaperModel> models;
  for (const std::string& path : arguments.checkpoints.empty() ? released() : arguments.checkpoints) models.push_back(paper_model(path));

  std::optional<Bench> bench;
  if (arguments.device.name != "cpu") bench.emplace(arguments.device, "");
  const bool measures = bench && bench->on_device();
  if (measures) {
    std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    fmt::print("{}\n", bench->backend()->description());
    bench->measure_limits();
  }
  for (const PaperModel& model : models) {
    print_model(model, arguments.context);
    fmt::print("  {:<24}  {:>9}  {:>9}  {:>9}  {:>8}  {}\n", "", "ms", "tokens/s", "expected", "links", "layers");
    std::optional<Reckoned> last;
    for (const GpuKind& kind : kinds) {
      for (const int gpus : counts) last = print_row(model, gpus, kind, arguments, known.reached);
    }
    if (kinds.size() * counts.size() == 1 && last) {
      for (const std::string& reason : last->reasons) fmt::print("  {}\n", reason);
    }
    if (!measures) continue;
    if (model.takes() < static_cast<double>(bench->backend()->free_bytes()))
      bench_random(*bench, "  measured", model.config);
    else
      fmt::print("  not measured: it takes {}, and {} are free\n", bytes_text(model.takes()),
                 bytes_text(static_cast<double>(bench->backend()->free_bytes())));
  }
  fmt::print(
      "ms and tokens/s: one after the other at the limit of the memories; expected: {:.0f} % of it ({}); links: their part of the time\n",
      100 * known.reached, known.where);
  return 0;
}

}  // namespace statescope
