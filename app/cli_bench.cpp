#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>

#include "app/cli_commands.h"
#include "engine/model/model.h"
#include "engine/model/random_checkpoint.h"
#include "kernels/linear.h"

namespace statescope {
namespace {

constexpr int kRepeats = 10;

double median_seconds(const std::function<void()>& work) {
  std::vector<double> seconds;
  for (int i = 0; i < kRepeats + 1; ++i) {
    const auto start = std::chrono::steady_clock::now();
    work();
    if (i > 0)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());  // the first run warms up
  }
  std::nth_element(seconds.begin(), seconds.begin() + kRepeats / 2, seconds.end());
  return seconds[kRepeats / 2];
}

/// Bytes of matrix states that decoding one token reads and writes: the shared state and one partition per choice, else all slots.
std::int64_t state_bytes_per_token(const Model& model) {
  std::int64_t floats = 0;
  for (std::int64_t layer = 0; layer < model.layers(); ++layer) {
    const MixerLayout& layout = model.layout(layer);
    const Config& config = model.plan().layers[static_cast<std::size_t>(layer)].config;
    for (const MixerLayout::Memory& memory : layout.memory) {
      const std::int64_t chosen = std::max(config.integer("num_writer", config.integer("topk", 2)), config.integer("num_reader", 1));
      const std::int64_t slots = layout.partitions > 0 ? chosen + (layout.has_shared_slot ? 1 : 0) : memory.shape[0];
      floats += 2 * slots * memory.shape.row_size();
    }
  }
  return floats * static_cast<std::int64_t>(sizeof(float));
}

void print_model(Model& model, double bandwidth) {
  Backend& backend = model.backend();
  constexpr std::int64_t T = 512;
  std::vector<std::int32_t> ids;
  for (std::int64_t t = 0; t < T; ++t) ids.push_back(static_cast<std::int32_t>(t * 7919 % model.vocab()));
  Buffer memory = backend.allocate(static_cast<std::size_t>(T * model.hidden() + model.vocab()) * sizeof(float));
  Tensor hidden(memory.get(), DType::f32, {T, model.hidden()}),
      logits(static_cast<float*>(memory.get()) + T * model.hidden(), DType::f32, {1, model.vocab()});

  const double prefill = median_seconds([&] {
    ModelState state = model.start();
    model.forward(state, ids, {.chunk_size = 64, .prompt_length = T}, hidden);
  });
  ModelState state = model.start();
  model.forward(state, std::span(ids).first(64), {.chunk_size = 64, .prompt_length = 64}, hidden.slice(0, 64));
  constexpr int steps = 8;
  const double decode = median_seconds([&] {
                          for (int i = 0; i < steps; ++i) {
                            model.forward(state, std::span(ids).subspan(static_cast<std::size_t>(i), 1),
                                          {.chunk_size = 0, .prompt_length = 64}, hidden.slice(0, 1));
                            model.logits(logits, hidden.slice(0, 1));
                          }
                        }) /
                        steps;
  const std::int64_t weights = model.bytes_per_token(), states = state_bytes_per_token(model);
  const double rate = static_cast<double>(weights + states) / decode / 1e9;
  fmt::print("  prefill {:10.0f} tokens/s  ({} tokens in {:.1f} ms)\n", T / prefill, T, prefill * 1e3);
  fmt::print("  decode  {:10.1f} tokens/s  ({:.2f} MB of weights + {:.2f} MB of states a token, {:.1f} GB/s = {:.0f} % of streaming)\n",
             1 / decode, static_cast<double>(weights) / 1e6, static_cast<double>(states) / 1e6, rate, 100 * rate / bandwidth);
}

/// Bytes a second with which this machine reads memory, with the threads that the weight products use.
double streaming_bandwidth() {
  std::vector<std::uint64_t> block(std::size_t{1} << 25, 1);  // 256 MiB, far larger than any cache
  const std::size_t bytes = block.size() * sizeof(block[0]);
  const double seconds = median_seconds([&] { stream_read(block.data(), bytes); });
  return static_cast<double>(bytes) / seconds / 1e9;
}

void bench_file(const std::string& path, int threads, double bandwidth) {
  std::shared_ptr<Model> model;
  // Every page is touched, so that a mapped file is really read.
  const double load = median_seconds([&] {
    const auto checkpoint = open_checkpoint(path);
    model = Model::load(checkpoint, std::shared_ptr<Backend>(make_cpu_backend(threads)));
    for (const StoredTensor& tensor : checkpoint->tensors) stream_read(tensor.data, static_cast<std::size_t>(tensor.bytes()));
  });
  const auto bytes = static_cast<double>(model->checkpoint().bytes());
  fmt::print("{}: {}, {:.2f} million parameters\n", path, model->plan().family,
             static_cast<double>(model->checkpoint().parameters()) / 1e6);
  fmt::print("  load    {:10.2f} GB/s      ({:.2f} MB in {:.2f} ms, file cached)\n", bytes / load / 1e9, bytes / 1e6, load * 1e3);
  print_model(*model, bandwidth);
}

void bench_random(std::string_view title, const nlohmann::json& config, int threads, double bandwidth) {
  const auto checkpoint = random_checkpoint(Config(config), 1, DType::bf16);
  const auto model = Model::load(checkpoint, std::shared_ptr<Backend>(make_cpu_backend(threads)));
  fmt::print("{}: random bfloat16 weights, {:.0f} million parameters\n", title, static_cast<double>(checkpoint->parameters()) / 1e6);
  print_model(*model, bandwidth);
}

}  // namespace

int bench_command(const BenchArguments& arguments) {
  const std::unique_ptr<Backend> limit = make_cpu_backend(arguments.threads);  // so that reading and products use the same threads
  fmt::print("{}\n", limit->description());
  const double bandwidth = streaming_bandwidth();
  fmt::print("streaming read {:.1f} GB/s\n", bandwidth);
  for (const std::string& path : arguments.checkpoints) bench_file(path, arguments.threads, bandwidth);
  if (!arguments.checkpoints.empty()) return 0;
  // The 340M configurations of the papers (spec §4.7, §14).
  const nlohmann::json common{{"hidden_size", 1024}, {"num_hidden_layers", 24}, {"vocab_size", 32000}, {"tie_word_embeddings", true}};
  auto with = [&](nlohmann::json more) {
    more.update(common);
    return more;
  };
  bench_random("GLA 340M", with({{"model_type", "gla"}, {"num_heads", 4}}), arguments.threads, bandwidth);
  bench_random("Gated DeltaNet 340M", with({{"model_type", "gated_deltanet"}, {"num_heads", 4}, {"head_dim", 128}, {"expand_v", 2.0}}),
               arguments.threads, bandwidth);
  bench_random("SSE-GLA n4k1 340M",
               with({{"model_type", "sse"}, {"num_heads", 8}, {"head_dim", 128}, {"num_writer", 1}, {"num_reader", 1}}), arguments.threads,
               bandwidth);
  return 0;
}

}  // namespace statescope
