#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "app/bench/bench.h"
#include "app/bench/sse.h"
#include "app/cli/bench_random.h"
#include "app/cli/commands.h"
#include "app/common/console.h"
#include "engine/model/model.h"
#include "engine/model/random_checkpoint.h"
#include "engine/run/not_finite.h"
#include "kernels/ops/linear.h"

namespace statescope {
namespace {

/// Numbers of matrix states that one token reads, and writes: the shared state and one partition per choice, else all slots.
double state_numbers(const Model& model) {
  std::int64_t numbers = 0;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    const MixerLayout& layout = model.layout(layer);
    const Config& config = model.plan().layers[static_cast<std::size_t>(layer)].config;
    for (const MixerLayout::Memory& memory : layout.memory) {
      const std::int64_t chosen = std::max(config.integer("num_writer", config.integer("topk", 2)), config.integer("num_reader", 1));
      const std::int64_t slots = layout.partitions > 0 ? chosen + (layout.has_shared_slot ? 1 : 0) : memory.shape[0];
      numbers += slots * memory.shape.row_size();
    }
  }
  return static_cast<double>(numbers);
}

/// Multiplications and additions of one token: with every weight but the head (and the embeddings), and writing and reading its states.
double block_flops(const Model& model) {
  const std::int64_t table = model.vocab() * model.hidden();
  const bool tied = model.bytes_per_token() == model.checkpoint().bytes();
  return 2 * static_cast<double>(model.checkpoint().parameters() - (tied ? 1 : 2) * table) + 4 * state_numbers(model);
}

/// What a prompt's tokens but the last spare: the last block's SwiGLU or experts. (Its readout too, a hundredth of a deep model's work.)
double spared_flops(const Model& model) {
  double numbers = 0;
  const LayerPlan& last = model.plan().layers.back();
  if (last.ffn == FfnKind::none) return 0;
  for (const StoredTensor& tensor : model.checkpoint().tensors) {
    if (tensor.name.starts_with(last.ffn_prefix)) numbers += static_cast<double>(tensor.size());
  }
  return 2 * numbers;
}

class ModelBench {
 public:
  ModelBench(const Bench& bench, Model& model, std::int64_t longest)
      : bench_(bench), model_(model), weight_bytes_(static_cast<double>(model.bytes_per_token())) {
    for (std::int64_t t = 0; t < longest; ++t) ids_.push_back(static_cast<std::int32_t>(t * 7919 % model.vocab()));
    hidden_memory_ = model.backend().allocate(static_cast<std::size_t>(longest * model.hidden()) * sizeof(float));
    logits_memory_ = model.backend().allocate(static_cast<std::size_t>(model.vocab()) * sizeof(float));
  }

  void prefill(std::int64_t T) {
    const double seconds = bench_.seconds([&] {
      ModelState state = model_.start();
      read(state, T);
    });
    const double flops = static_cast<double>(T) * block_flops(model_) - static_cast<double>(T - 1) * spared_flops(model_);
    fmt::print("  prefill {:10.0f} tokens/s  ({} tokens in {:.1f} ms; {:.0f} GFLOP, {})\n", static_cast<double>(T) / seconds, T,
               seconds * 1e3, flops / 1e9, bench_.share(seconds, weight_bytes_, flops));
  }

  void decode() {
    ModelState state = model_.start();
    read(state, prompt);
    const Tensor logits(logits_memory_.get(), DType::f32, {1, model_.vocab()});
    const double seconds = bench_.seconds([&] { read(state, 1, logits); });
    const double states = 2 * state_numbers(model_) * sizeof(float), bytes = weight_bytes_ + states;
    const double flops = block_flops(model_) + 2 * static_cast<double>(model_.vocab() * model_.hidden());
    fmt::print("  decode  {:10.1f} tokens/s  ({:.2f} MB of weights + {:.2f} MB of states a token, {:.4f} ms, {})\n", 1 / seconds,
               weight_bytes_ / 1e6, states / 1e6, 1e3 * seconds, bench_.share(seconds, bytes, flops));
  }

 private:
  static constexpr std::int64_t prompt = 64;

  void read(ModelState& state, std::int64_t T, Tensor logits = {}) {
    Tensor hidden(hidden_memory_.get(), DType::f32, {T, model_.hidden()});
    const std::int64_t chunk = T == 1 ? 0 : 64;
    model_.forward(state, std::span(ids_).first(static_cast<std::size_t>(T)),
                   {.chunk_size = chunk, .prompt_length = std::max(T, prompt), .outputs = 1, .logits = logits}, hidden);
  }

  const Bench& bench_;
  Model& model_;
  double weight_bytes_;
  std::vector<std::int32_t> ids_;
  Buffer hidden_memory_, logits_memory_;
};

void bench_model(const Bench& bench, Model& model) {
  const std::vector<std::int64_t> lengths = bench.on_device() ? std::vector<std::int64_t>{8192, 32768} : std::vector<std::int64_t>{512};
  ModelBench one(bench, model, lengths.back());
  for (const std::int64_t T : lengths) one.prefill(T);
  one.decode();
}

void bench_file(const Bench& bench, const std::string& path) {
  std::shared_ptr<Model> model;
  // Every page is touched, so that a mapped file is really read; a device takes a copy of it.
  const double load = bench.seconds([&] {
    const auto checkpoint = open_checkpoint(path);
    model = Model::load(checkpoint, bench.backend());
    if (bench.on_device()) return;
    for (const StoredTensor& tensor : checkpoint->tensors) stream_read(tensor.data, static_cast<std::size_t>(tensor.bytes()));
  });
  const auto bytes = static_cast<double>(model->checkpoint().bytes());
  fmt::print("{}: {}, {:.2f} million parameters\n", path, model->plan().family,
             static_cast<double>(model->checkpoint().parameters()) / 1e6);
  fmt::print("  load    {:10.2f} GB/s      ({:.2f} MB in {:.2f} ms, file cached)\n", bytes / load / 1e9, bytes / 1e6, load * 1e3);
  print_notes(model->notes());
  if (const NotFinite found{find_not_finite(*model, LookedThrough::all_but_experts), {}}) print_note(found.text());
  bench_model(bench, *model);
}

struct RandomModel {
  std::string_view name;
  nlohmann::json config;
};

/// The 340M configurations of the papers (spec §4.7, §14).
std::vector<RandomModel> models_for_cpu() {
  const nlohmann::json common{{"hidden_size", 1024}, {"num_hidden_layers", 24}, {"vocab_size", 32000}, {"tie_word_embeddings", true}};
  const auto with = [&](nlohmann::json more) {
    more.update(common);
    return more;
  };
  return {{"GLA 340M", with({{"model_type", "gla"}, {"num_heads", 4}})},
          {"Gated DeltaNet 340M", with({{"model_type", "gated_deltanet"}, {"num_heads", 4}, {"head_dim", 128}, {"expand_v", 2.0}})},
          {"SSE-GLA n4k1 340M", with({{"model_type", "sse"}, {"num_heads", 8}, {"head_dim", 128}, {"num_writer", 1}, {"num_reader", 1}})}};
}

/// The defaults of flash-linear-attention, and the 2B model of the SSE paper.
std::vector<RandomModel> models_for_device() {
  const nlohmann::json common{{"hidden_size", 2048}, {"vocab_size", 32000}, {"tie_word_embeddings", false}};
  const auto with = [&](nlohmann::json more) {
    more.insert(common.begin(), common.end());
    return more;
  };
  return {{"GLA 1.3B", with({{"model_type", "gla"}, {"num_hidden_layers", 24}, {"num_heads", 4}})},
          {"Gated DeltaNet 1.3B",
           with({{"model_type", "gated_deltanet"}, {"num_hidden_layers", 21}, {"num_heads", 6}, {"head_dim", 256}, {"expand_v", 2.0}})},
          {"SSE-GLA n4k1 2B", with({{"model_type", "sse"},
                                    {"hidden_size", 2304},
                                    {"num_hidden_layers", 18},
                                    {"num_heads", 18},
                                    {"head_dim", 128},
                                    {"intermediate_size", 6912},
                                    {"vocab_size", 151936},
                                    {"num_writer", 1},
                                    {"num_reader", 1}})}};
}

}  // namespace

void bench_random(const Bench& bench, std::string_view name, const Config& config) {
  if (!bench.wants(name)) return;
  const auto checkpoint = random_checkpoint(config, 1, DType::bf16);
  const auto model = Model::load(checkpoint, bench.backend());
  fmt::print("{}: random bfloat16 weights, {:.1f} million parameters\n", name, static_cast<double>(checkpoint->parameters()) / 1e6);
  bench_model(bench, *model);
}

int bench_command(const BenchArguments& arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);  // a line is there when it has been measured
  Bench bench(arguments.device, arguments.only);
  fmt::print("{}\n", bench.backend()->description());
  bench.measure_limits();
  for (const std::string& path : arguments.checkpoints) bench_file(bench, path);
  if (!arguments.checkpoints.empty()) return 0;
  const std::int64_t tokens = bench.on_device() ? 8192 : 1024;
  fmt::print("operations, {} tokens, 8 heads of 128\n", tokens);
  bench_kernels(bench, tokens);
  for (const RandomModel& random : bench.on_device() ? models_for_device() : models_for_cpu())
    bench_random(bench, random.name, Config(random.config));
  return 0;
}

int bench_sse_command(const BenchSseArguments& arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  ReportFile file(arguments.json, arguments.force);
  const bool on_device = open_cuda_device(arguments.device) != nullptr;
  const std::vector<SsePlace> places = sse_places(arguments.lengths, arguments.partitions, on_device);
  std::FILE* const told = file.is_standard_output() ? stderr : stdout;
  const SseTimings timings = measure_sse(arguments.device, places, [&](const std::string& line) { fmt::print(told, "{}\n", line); });
  fmt::print(told, "{}: {} heads of {}, {} partition a token\n", timings.device, timings.heads, timings.head_dim, timings.chosen);
  file.write(to_json(timings));
  return 0;
}

}  // namespace statescope
