// What a recording costs, what memory it takes, and how fast any token of it is reached: seek_bench --help
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>

#include "engine/run/run.h"
#include "tests/bench/bench.h"
#include "tests/bench/models.h"

using namespace statescope;
using bench::seconds;
using bench::share;

namespace {

struct Options : bench::ModelChoice {
  std::int64_t tokens = 32768, interval = 0;
  std::vector<std::int64_t> tokens_at_once{0};
  std::vector<std::size_t> budgets{0, 32};  // MB
  std::size_t host_budget = 0;              // MB
  int seeks = 500, repeats = 5;
};

/// What the process has in memory.
double resident_megabytes() {
  ::malloc_trim(0);
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE)) / 1e6;
}

double megabytes(std::size_t bytes) { return static_cast<double>(bytes) / 1e6; }

class SeekBench {
 public:
  explicit SeekBench(const Options& options)
      : options_(options), model_(Model::load(bench::open(options.model), open_device(options.device))) {
    for (std::int64_t t = 0; t < options.tokens; ++t)
      ids_.push_back(static_cast<std::int32_t>(random_() % static_cast<std::uint32_t>(model_->vocab())));
    fmt::print("{}, {} tokens; {}; a keyframe takes {:.1f} MB, block inputs {:.3f} MB a token\n", options.model, options.tokens,
               model_->backend().description(), megabytes(keyframe_bytes()),
               megabytes(static_cast<std::size_t>((model_->layers() + 1) * model_->hidden()) * sizeof(float)));
  }

  void measure(std::size_t budget, std::int64_t tokens_at_once) {
    std::vector<double> traced, untraced, whole;
    std::unique_ptr<Run> run;
    const auto length = static_cast<std::int64_t>(ids_.size());
    double resident = 0;
    read_untraced(std::min<std::int64_t>(length, 8192));  // takes what reading keeps
    for (int i = 0; i < options_.repeats + 1; ++i) {
      run.reset();
      resident = resident_megabytes();
      run = std::make_unique<Run>(model_, RunOptions{.tokens_at_once = tokens_at_once,
                                                     .keyframe_interval = options_.interval,
                                                     .memory_budget = budget << 20,
                                                     .host_memory_budget = options_.host_budget << 20});
      traced.push_back(seconds([&] { run->read(ids_, length), run->residual(model_->layers(), length - 1, length); }));
      resident = resident_megabytes() - resident;
      const std::int64_t at_once = run->tokens_at_once();
      untraced.push_back(seconds([&] { read_untraced(at_once); }));
      if (model_->backend().has_own_memory()) whole.push_back(seconds([&] { read_untraced(length); }));
    }
    const double first = traced.front();
    for (std::vector<double>* times : {&traced, &untraced, &whole}) {
      if (!times->empty()) times->erase(times->begin());  // the first pass of a size takes its scratch memory
    }
    fmt::print(
        "budget {:.1f} MB: {:.1f} MB on the device, {:.1f} MB in all memory (the process has {:.1f} MB more than before), {:.1f} MB "
        "in a file; keyframes every {} tokens {}\n",
        megabytes(run->memory_budget()), megabytes(run->bytes_on_device()), megabytes(run->bytes_in_memory()), resident,
        megabytes(run->bytes_in_file()), run->keyframe_interval(), run->remark());
    const double recorded = share(traced, 0.5);
    const auto cost = [&](const std::vector<double>& without) {
      return fmt::format("{:.1f} ms ({:+.1f} %)", 1e3 * share(without, 0.5), 100 * (recorded / share(without, 0.5) - 1));
    };
    fmt::print("  recorded in {:.1f} ms (the first time {:.1f}); without a recording, {} tokens at once, {}", 1e3 * recorded, 1e3 * first,
               run->tokens_at_once(), cost(untraced));
    if (!whole.empty()) fmt::print("; all at once {}", cost(whole));
    fmt::print("\n");
    decode(*run);
    seek(*run);
  }

 private:
  std::size_t keyframe_bytes() const {
    std::size_t bytes = 0;
    for (const MixerState& layer : model_->start().layers) bytes += static_cast<std::size_t>(layer.everything.shape.size()) * sizeof(float);
    return bytes;
  }

  /// Nothing is kept but the state after the last token.
  ModelState read_untraced(std::int64_t at_once) {
    ModelState state = model_->start();
    const auto D = static_cast<std::size_t>(model_->hidden());
    const Buffer memory = model_->backend().allocate(static_cast<std::size_t>(at_once) * D * sizeof(float));
    Tensor hidden;
    for (std::span<const std::int32_t> rest = ids_; !rest.empty(); rest = rest.subspan(static_cast<std::size_t>(hidden.rows()))) {
      hidden = Tensor(memory.get(), DType::f32, {std::min(std::ssize(rest), at_once), model_->hidden()});
      model_->forward(state, rest.first(static_cast<std::size_t>(hidden.rows())), {.prompt_length = std::ssize(ids_)}, hidden);
    }
    std::vector<float> last(D);
    model_->backend().download(Tensor(last.data(), DType::f32, {1, model_->hidden()}), hidden.slice(hidden.rows() - 1, 1));
    return state;
  }

  /// One token after the other, behind all others.
  void decode(Run& run) {
    const std::span<const std::int32_t> more = std::span(ids_).first(64);
    const auto count = static_cast<double>(more.size());
    ModelState state = read_untraced(run.tokens_at_once());
    const Buffer memory = model_->backend().allocate(static_cast<std::size_t>(model_->hidden()) * sizeof(float));
    const Tensor hidden(memory.get(), DType::f32, {1, model_->hidden()});
    std::vector<float> last(static_cast<std::size_t>(model_->hidden()));
    const Tensor host(last.data(), DType::f32, hidden.shape);
    const auto each = [&](const auto& read) {
      for (std::size_t t = 0; t < more.size(); ++t) read(more.subspan(t, 1));
      model_->backend().download(host, hidden);
    };
    const auto untraced = [&](std::span<const std::int32_t> one) { model_->forward(state, one, {.chunk_size = 0}, hidden); };
    const auto traced = [&](std::span<const std::int32_t> one) { run.read(one, std::ssize(ids_)); };
    each(untraced), each(traced);
    const double without = seconds([&] { each(untraced); }), with = seconds([&] { each(traced); });
    fmt::print("  one token more: recorded in {:.3f} ms, without a recording {:.3f} ms ({:+.1f} %)\n", 1e3 * with / count,
               1e3 * without / count, 100 * (with / without - 1));
  }

  /// What a view sees of one layer at one token: a head's states before and after it, the routing, the logits.
  void seek(Run& run) {
    std::vector<double> states, views;
    for (std::int64_t layer = 0; layer < model_->layers(); ++layer) run.routing(layer);
    for (int i = 0; i < options_.seeks; ++i) {
      const auto layer = static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(model_->layers()));
      const auto token = static_cast<std::int64_t>(random_() % static_cast<std::uint32_t>(ids_.size()));
      states.push_back(1e3 * seconds([&] { run.head_states_around(layer, 0, token); }));
      views.push_back(states.back() + 1e3 * seconds([&] { run.routing(layer), run.logits(token); }));
    }
    fmt::print("  {} seeks: median {:.2f} ms, p99 {:.2f} ms, at most {:.2f} ms; of which the states {:.2f}, {:.2f}, {:.2f} ms\n",
               states.size(), share(views, 0.5), share(views, 0.99), share(views, 1), share(states, 0.5), share(states, 0.99),
               share(states, 1));
  }

  Options options_;
  std::mt19937 random_{1};
  std::shared_ptr<Model> model_;
  std::vector<std::int32_t> ids_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("What a recording costs, and how fast it is sought");
  options.add_to(app);
  app.add_option("--tokens", options.tokens)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--at-once", options.tokens_at_once, "tokens of one forward pass, each in turn; 0: as the device likes it")
      ->delimiter(',');
  app.add_option("--interval", options.interval, "tokens between keyframes (default: the same)");
  app.add_option("--budget", options.budgets, "MB on the device, each in turn; 0: a quarter of what is free")->delimiter(',');
  app.add_option("--host-budget", options.host_budget, "MB beside them on the host; 0: a quarter of what is free");
  app.add_option("--seeks", options.seeks)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--repeats", options.repeats)->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return bench::run("seek_bench", [&] {
    SeekBench bench(options);
    for (const std::size_t budget : options.budgets) {
      for (const std::int64_t tokens_at_once : options.tokens_at_once) bench.measure(budget, tokens_at_once);
    }
  });
}
