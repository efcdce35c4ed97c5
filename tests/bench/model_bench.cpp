// How long a model takes to read a prompt, and for each token behind it: model_bench --help
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "engine/model/model.h"
#include "tests/bench/bench.h"
#include "tests/bench/models.h"

using namespace statescope;
using bench::seconds;
using bench::share;

namespace {

struct Options : bench::ModelChoice {
  std::int64_t layers = 0, context = 0, at_once = 0;
  std::size_t leave = 0;
  bool logits = false, json = false;
  int runs = 25, tokens = 20;
  std::vector<std::int64_t> prompts;
};

class ModelBench {
 public:
  explicit ModelBench(const Options& options) : options_(options), device_(open_device(options.device)), ballast_(all_but(options.leave)) {
    const double loading = seconds([&] { model_ = Model::load(bench::open(options.model, options.layers), device_); });
    if (!options.json) fmt::print("loading, with the making of a config's weights: {:.1f} s\n", loading);
    for (const std::string& line : model_->info().placement) fmt::print("{}\n", line);
    last_.resize(static_cast<std::size_t>(model_->hidden()));
    logits_.resize(static_cast<std::size_t>(model_->vocab()));
    logits_memory_ = device_->allocate(logits_.size() * sizeof(float));
    const std::int64_t longest =
        std::max({std::int64_t{1}, options.context, options.prompts.empty() ? 0 : *std::ranges::max_element(options.prompts)});
    for (std::int64_t t = 0; t < longest; ++t) ids_.push_back(static_cast<std::int32_t>(t * 7919 % model_->vocab()));
    hidden_memory_ = model_->backend().allocate(ids_.size() * last_.size() * sizeof(float));
  }

  void measure() {
    for (const std::int64_t T : options_.prompts) {
      measure("prefill", "and logits", T, 1, [&] { prefill(T); });
    }
    if (options_.tokens == 0) return;
    ModelState state = model_->start();
    read(state, options_.context);
    constexpr int warm_up = 3;  // a device captures a step the second time
    for (int t = 0; t < warm_up; ++t) step(state);
    measure("decode", options_.logits ? "and logits" : "alone", options_.tokens, options_.tokens, [&] {
      for (int t = 0; t < options_.tokens; ++t) step(state);
      download(hidden(1), last_);
    });
  }

 private:
  /// Takes the device's memory but so many bytes; 0: none.
  Buffer all_but(std::size_t bytes) const {
    const std::size_t free = device_->free_bytes();
    return bytes > 0 && bytes < free ? device_->allocate(free - bytes) : Buffer();
  }
  Tensor hidden(std::int64_t rows) const { return {hidden_memory_.get(), DType::f32, {rows, model_->hidden()}}; }
  void download(const Tensor& row, std::vector<float>& to) {
    model_->backend().download(Tensor(to.data(), DType::f32, {1, static_cast<std::int64_t>(to.size())}), row);
  }
  /// On the device.
  Tensor logits() const { return {logits_memory_.get(), DType::f32, {1, model_->vocab()}}; }

  /// States are filled, and the last position's logits brought to the host.
  void prefill(std::int64_t T) {
    ModelState state = model_->start();
    read(state, T);
    download(logits(), logits_);
  }
  /// A prompt of T tokens, in passes of so many.
  void read(ModelState& state, std::int64_t T) {
    const std::int64_t pass = options_.at_once > 0 ? options_.at_once : T;
    for (std::int64_t first = 0; first < T; first += pass) {
      const std::int64_t count = std::min(pass, T - first);
      const std::span ids = std::span(ids_).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
      model_->forward(state, ids, {.chunk_size = 64, .prompt_length = T, .outputs = 1, .logits = logits()}, hidden(count));
    }
  }
  void step(ModelState& state) {
    const auto id = static_cast<std::int32_t>(state.position * 7919 % model_->vocab());
    model_->forward(state, std::span(&id, 1), {.chunk_size = 0, .prompt_length = 1, .logits = options_.logits ? logits() : Tensor{}},
                    hidden(1));
  }

  /// Says how long work on so many tokens takes, for each of so many parts.
  template <class Work>
  void measure(const char* what, const char* with, std::int64_t tokens, int parts, const Work& work) {
    work();
    std::vector<double> all, all_cpu;
    for (int run = 0; run < options_.runs; ++run)
      all_cpu.push_back(1e3 * bench::cpu_seconds([&] { all.push_back(1e3 * seconds(work) / parts); }) / parts);
    const double median = share(all, 0.5), least = share(all, 0);
    const auto layers = static_cast<double>(model_->layers());
    if (options_.json) {
      const nlohmann::json line{{"what", what}, {"tokens", tokens},  {"layers", model_->layers()},
                                {"ms", median}, {"least_ms", least}, {"cpu_ms", share(all_cpu, 0.5)}};
      fmt::print("{}\n", line.dump());
      return;
    }
    fmt::print("{}, {}: {} of {} tokens, {} layers {}: median {:.4f} ms{}, least {:.4f}; a layer {:.2f} µs, {:.2f}\n", options_.model,
               model_->backend().description(), what, tokens, model_->layers(), with, median, parts > 1 ? " a token" : "", least,
               1e3 * median / layers, 1e3 * least / layers);
  }

  Options options_;
  std::shared_ptr<Backend> device_;
  Buffer ballast_;
  std::shared_ptr<Model> model_;
  std::vector<std::int32_t> ids_;
  std::vector<float> last_, logits_;
  Buffer hidden_memory_, logits_memory_;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("How long a model takes to read a prompt, and for each of some tokens behind one another");
  options.add_to(app);
  app.add_option("--prefill", options.prompts, "read prompts of so many tokens, with the last one's logits")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  app.add_option("--at-once", options.at_once, "tokens of a prompt's pass; 0: all")->check(CLI::NonNegativeNumber);
  app.add_option("--context", options.context, "tokens before those that are measured one by one")->check(CLI::NonNegativeNumber);
  app.add_option("--layers", options.layers, "of a config's model, so many alone")->check(CLI::PositiveNumber);
  app.add_option("--leave", options.leave, "of the device's memory so much alone, as 24GB; 0: all of it")
      ->transform(CLI::AsSizeValue(true));
  app.add_flag("--logits", options.logits, "each token with logits");
  app.add_option("--runs", options.runs, "whose median counts")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--tokens", options.tokens, "of a run; 0: none")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_flag("--json", options.json, "a line of JSON for each result");
  CLI11_PARSE(app, argc, argv);
  return bench::run("model_bench", [&] { ModelBench(options).measure(); });
}
