// From a seek to the textures of the state that it finds: what goes over the bus, and how long it takes: texture_bench --help
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <random>

#include "engine/run/run.h"
#include "kernels/device_rows.h"
#include "tests/bench/bench.h"
#include "tests/bench/models.h"
#include "tests/kernels/egl_context.h"

using namespace statescope;
using bench::share;
using statescope::testing::EglContext;
using statescope::testing::FloatTexture;
using statescope::testing::PixelBuffer;

namespace {

struct Options : bench::ModelChoice {
  Options() : ModelChoice{"tests/bench/sse_gla_2b.json", {.name = "cuda", .precision = Precision::bfloat16}} {}
  std::int64_t tokens = 8192;
  int seeks = 200;
};

double milliseconds(const auto& work) { return 1e3 * bench::seconds(work); }

/// The textures of one head's slots.
class Textures {
 public:
  Textures(const EglContext& context, std::int64_t slots, std::int64_t K, std::int64_t V)
      : finish_(context.gl<void(APIENTRY*)()>("glFinish")), cells_(K * V) {
    for (std::int64_t slot = 0; slot < slots; ++slot) textures_.push_back(std::make_unique<FloatTexture>(context, K, V));
  }
  /// From the host, or from what is bound; returns when they are there.
  void fill(const float* numbers) const {
    auto place = reinterpret_cast<std::uintptr_t>(numbers);
    for (const auto& texture : textures_) {
      texture->fill(reinterpret_cast<const void*>(place));
      place += static_cast<std::uintptr_t>(cells_) * sizeof(float);
    }
    finish_();
  }
  std::vector<float> texels() const {
    std::vector<float> all;
    for (const auto& texture : textures_) {
      const std::vector<float> one = texture->texels();
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

 private:
  void(APIENTRY* finish_)();
  std::int64_t cells_;
  std::vector<std::unique_ptr<FloatTexture>> textures_;
};

/// One way from the run to the window.
struct Way {
  std::string name;
  double bytes_to_host = 0, bytes_to_window = 0;
  std::vector<double> seek = {}, textures = {}, shared = {};  // milliseconds; shared: of the textures', until the buffer has the numbers

  void print() const {
    fmt::print("  {:<34} {:8.1f} kB to the host, {:7.1f} kB back; seek {:6.3f} ms, p99 {:6.3f}; then textures {:6.3f} ms, p99 {:6.3f}\n",
               name, bytes_to_host / 1e3, bytes_to_window / 1e3, share(seek, 0.5), share(seek, 0.99), share(textures, 0.5),
               share(textures, 0.99));
    if (!shared.empty()) fmt::print("  {:<34} of the textures, the copy into the buffer of OpenGL: {:.3f} ms\n", "", share(shared, 0.5));
  }
};

void measure(const Options& options) {
  const auto model = Model::load(bench::open(options.model), open_device(options.device));
  std::mt19937 random(1);
  std::vector<std::int32_t> ids;
  for (std::int64_t t = 0; t < options.tokens; ++t)
    ids.push_back(static_cast<std::int32_t>(random() % static_cast<std::uint32_t>(model->vocab())));
  Run run(model);
  run.read(ids, options.tokens);
  std::int64_t layer = 0;
  while (layer + 1 < model->layers() && model->layout(layer).memory.empty()) ++layer;
  const Shape shape = model->layout(layer).memory.at(0).shape;
  const std::int64_t slots = shape[0], H = shape[1], K = shape[2], V = shape[3];
  const double head = static_cast<double>(slots * K * V) * sizeof(float);
  fmt::print("{}, {}; a state of layer {} is {} slots of {} heads of {} x {}\n", options.model, model->backend().description(), layer,
             slots, H, K, V);

  std::string why;
  const std::unique_ptr<EglContext> context = EglContext::on_cuda_device(0, why);
  if (!context) throw std::runtime_error(why);
  const Textures textures(*context, slots, K, V);
  const PixelBuffer buffer(*context, static_cast<std::size_t>(head));
  const std::unique_ptr<SharedBuffer> shared = [&] {
    const HeadState first = run.head_states_around(layer, 0, 0).second;
    return first.on_device ? first.on_device->share(buffer.name()) : nullptr;
  }();
  if (!shared) throw std::runtime_error("the device shares no buffer with OpenGL");

  Way all{"all heads, through the host", 2 * head * static_cast<double>(H), head};
  Way one{"one head, through the host", 2 * head, head};
  Way device{"one head, textures on the device", 2 * head, 0};
  std::int64_t same = 0;
  for (int i = 0; i < 3 * options.seeks; ++i) {
    const auto token = static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(options.tokens));
    const std::int64_t h = static_cast<std::int64_t>(random()) % H;
    if (i % 3 == 0) {
      LayerState state;
      all.seek.push_back(milliseconds([&] { state = run.states_around(layer, token).second; }));
      std::vector<float> values;
      all.textures.push_back(milliseconds([&] {
        for (std::int64_t slot = 0; slot < slots; ++slot) values.insert(values.end(), state.matrix(slot, h), state.matrix(slot, h) + K * V);
        textures.fill(values.data());
      }));
      continue;
    }
    Way& way = i % 3 == 1 ? one : device;
    HeadState state;
    way.seek.push_back(milliseconds([&] { state = run.head_states_around(layer, h, token).second; }));
    way.textures.push_back(milliseconds([&] {
      if (&way == &one) return textures.fill(state.values.data());
      way.shared.push_back(milliseconds([&] {
        if (!shared->take(*state.on_device)) throw std::runtime_error("the device refused");
      }));
      buffer.bind(buffer.name());
      textures.fill(nullptr);
      buffer.bind(0);
    }));
    same += textures.texels() == state.values ? 1 : 0;
  }
  for (const Way* way : {&all, &one, &device}) way->print();
  fmt::print("  texels that are the host's numbers: {} of {} times\n", same, 2 * options.seeks);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("From a seek to the textures of the state that it finds");
  options.add_to(app);
  app.add_option("--tokens", options.tokens)->check(CLI::PositiveNumber)->capture_default_str();
  app.add_option("--seeks", options.seeks, "of each way")->check(CLI::PositiveNumber)->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return bench::run("texture_bench", [&] { measure(options); });
}
