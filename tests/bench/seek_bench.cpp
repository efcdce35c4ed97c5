// What a recording costs and how fast it is sought: seek_bench [CHECKPOINT] [TOKENS]
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <random>

#include "engine/run/run.h"

using namespace statescope;

namespace {

double seconds(const auto& work) {
  const auto began = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
}

/// Spans as a run reads them, nothing kept.
void read_untraced(Model& model, std::span<const std::int32_t> ids) {
  constexpr std::size_t span = 128;
  ModelState state = model.start();
  const Buffer memory = model.backend().allocate(span * static_cast<std::size_t>(model.hidden()) * sizeof(float));
  for (std::size_t t = 0; t < ids.size(); t += span) {
    const auto part = ids.subspan(t, std::min(span, ids.size() - t));
    model.forward(state, part, {.prompt_length = static_cast<std::int64_t>(ids.size())},
                  Tensor(memory.get(), DType::f32, {static_cast<std::int64_t>(part.size()), model.hidden()}));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string path = argc > 1 ? argv[1] : "assets/checkpoints/niah-sse-gla-n4k1.h5";
  const std::size_t tokens = argc > 2 ? std::stoul(argv[2]) : 32768;
  const std::shared_ptr<Model> model = Model::load(open_checkpoint(path), make_cpu_backend());
  std::mt19937 random(1);
  std::vector<std::int32_t> ids(tokens);
  for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(model->vocab()));

  read_untraced(*model, std::span(ids).first(std::min<std::size_t>(tokens, 2048)));
  for (const std::size_t budget : {std::size_t{0}, std::size_t{32} << 20}) {
    const double untraced = seconds([&] { read_untraced(*model, ids); });
    Run run(model, {.memory_budget = budget});
    const double traced = seconds([&] { run.read(ids, static_cast<std::int64_t>(tokens)); });
    std::vector<double> seeks;
    for (int i = 0; i < 2000; ++i) {
      const auto layer = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(model->layers()));
      const auto token = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(tokens));
      seeks.push_back(1e3 * seconds([&] { run.states_around(layer, token); }));
    }
    std::sort(seeks.begin(), seeks.end());
    fmt::print(
        "budget {:6.0f} MB: in memory {:6.1f} MB, in a file {:6.1f} MB; {} tokens read in {:.2f} s, recorded in {:.2f} s ({:+.0f} %); ",
        static_cast<double>(run.memory_budget()) / 1e6, static_cast<double>(run.bytes_in_memory()) / 1e6,
        static_cast<double>(run.bytes_in_file()) / 1e6, tokens, untraced, traced, 100 * (traced / untraced - 1));
    fmt::print("a seek {:.2f} ms, p99 {:.2f} ms, at most {:.2f} ms\n", seeks[seeks.size() / 2], seeks[seeks.size() * 99 / 100],
               seeks.back());
  }
}
