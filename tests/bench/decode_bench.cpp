// How long a token takes through the layers of a model, one token after the other, with logits or without: decode_bench --help
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>

#include "engine/model/model.h"
#include "tests/bench/bench.h"
#include "tests/bench/models.h"

using namespace statescope;
using bench::seconds;
using bench::share;

namespace {

struct Options : bench::ModelChoice {
  std::int64_t layers = 0;
  bool logits = false;
  int runs = 25, tokens = 20;
};

class DecodeBench {
 public:
  explicit DecodeBench(const Options& options)
      : options_(options), model_(Model::load(bench::open(options.model, options.layers), open_device(options.device))) {}

  void measure() {
    constexpr int warm_up = 3;  // a device captures a step the second time
    for (int t = 0; t < warm_up; ++t) step();
    std::vector<double> all;
    for (int run = 0; run < options_.runs; ++run) all.push_back(1e6 * run_seconds() / options_.tokens);
    const auto layers = static_cast<double>(model_->layers());
    fmt::print("{}, {}: layers {}{}; µs a token: median {:.1f}, least {:.1f}; a layer: {:.2f}, {:.2f}\n", options_.model,
               model_->backend().description(), model_->layers(), options_.logits ? ", and logits" : "", share(all, 0.5), share(all, 0),
               share(all, 0.5) / layers, share(all, 0) / layers);
  }

 private:
  Tensor row(const Buffer& memory, std::int64_t width) const { return {memory.get(), DType::f32, {1, width}}; }

  void step() {
    const auto id = static_cast<std::int32_t>(state_.position * 7919 % model_->vocab());
    const Tensor hidden = row(hidden_memory_, model_->hidden());
    model_->forward(state_, std::span(&id, 1), {.chunk_size = 0, .prompt_length = 1}, hidden);
    if (options_.logits) model_->logits(row(logits_memory_, model_->vocab()), hidden);
  }
  /// Of one token behind the other, until the last one is there.
  double run_seconds() {
    return seconds([&] {
      for (int t = 0; t < options_.tokens; ++t) step();
      model_->backend().download(Tensor(last_.data(), DType::f32, {1, model_->hidden()}), row(hidden_memory_, model_->hidden()));
    });
  }

  Options options_;
  std::shared_ptr<Model> model_;
  ModelState state_ = model_->start();
  std::vector<float> last_ = std::vector<float>(static_cast<std::size_t>(model_->hidden()));
  Buffer hidden_memory_ = model_->backend().allocate(last_.size() * sizeof(float)),
         logits_memory_ = model_->backend().allocate(static_cast<std::size_t>(model_->vocab()) * sizeof(float));
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("How long a token takes through the layers of a model");
  options.add_to(app);
  app.add_option("--layers", options.layers, "of a config's model, so many alone")->check(CLI::PositiveNumber);
  app.add_flag("--logits", options.logits, "with logits");
  app.add_option("--runs", options.runs, "whose median counts")->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--tokens", options.tokens, "of a run")->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return bench::run("decode_bench", [&] { DecodeBench(options).measure(); });
}
