// What distinguishes MiniMax's, RWKV's and Zamba's layers (spec §17.5, §17.7, §17.10).
#include <cmath>

#include "tests/mixers/mixer_rig.h"

namespace statescope::test::recurrent_test {
namespace {

constexpr std::int64_t kTokens = 24;

/// Of one head, in double precision: S ← diag(α) S − eᵀ (p S) + kᵀ v from the channels of a pass, p and e only where keys erase.
std::vector<double> state_from_channels(const Pass& pass, std::int64_t h, std::int64_t K, std::int64_t V) {
  std::vector<double> S(static_cast<std::size_t>(K * V)), erased(static_cast<std::size_t>(V));
  const bool erases = pass.channels.contains("erase_key");
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const auto of = [&](const char* name, std::int64_t width, std::int64_t i) {
      return double{pass[name].row(t)[static_cast<std::size_t>(h * width + i)]};
    };
    std::fill(erased.begin(), erased.end(), 0.0);
    for (std::int64_t i = 0; erases && i < K * V; ++i)
      erased[static_cast<std::size_t>(i % V)] += of("erase_key", K, i / V) * S[static_cast<std::size_t>(i)];
    for (std::int64_t i = 0; i < K * V; ++i) {
      const std::int64_t r = i / V, c = i % V;
      double& cell = S[static_cast<std::size_t>(i)];
      cell = std::exp(of("log_decay", K, r)) * cell + of("k", K, r) * of("v", V, c);
      if (erases) cell -= of("erase_key", K, r) * of("erase_rate", K, r) * erased[static_cast<std::size_t>(c)];
    }
  }
  return S;
}

double state_error(const MixerRig& rig, const Pass& pass) {
  const Shape& shape = rig.layout.memory[0].shape;
  const std::vector<float> found = values_of(pass.state.memory[0]);
  std::vector<float> expected;
  for (std::int64_t h = 0; h < shape[1]; ++h) {
    for (const double cell : state_from_channels(pass, h, shape[2], shape[3])) expected.push_back(static_cast<float>(cell));
  }
  return difference(found, expected);
}

}  // namespace

TEST_CASE("lightning attention: rates fall with the head and with depth, and the last layer forgets next to nothing") {
  const Editable model(
      minimax_config("minimax", {{"num_hidden_layers", 5}, {"layer_types", json(std::vector<std::string>(5, "linear_attention"))}}));
  for (const std::int64_t layer : {0, 2, 4}) {
    MixerRig rig(model, layer);
    const Pass pass = rig.read(rig.some_input(3));
    for (std::size_t h = 0; h < 4; ++h) {
      const double rate = std::exp2(-2.0 * static_cast<double>(h + 1)) * (1 - static_cast<double>(layer) / (4 + 1e-5) + 1e-5);
      CHECK(pass["log_decay"].row(2)[h] == Approx(-rate).epsilon(1e-5));
    }
  }
}

TEST_CASE("RWKV: the state is what the channels say, with what is taken away and without") {
  MixerRig seventh(Editable(rwkv_config("rwkv7")), 1), sixth(Editable(rwkv_config("rwkv6")), 1);
  CHECK(state_error(seventh, seventh.read(seventh.some_input(kTokens))) < 1e-5);
  CHECK(state_error(sixth, sixth.read(sixth.some_input(kTokens))) < 1e-5);
  // With a = 0 nothing is taken away.
  Editable kept(rwkv_config("rwkv7"));
  kept.fill("a_lora.lora.2.weight", 0).fill("a_lora.lora.2.bias", -200);
  MixerRig rig(kept, 1);
  Pass pass = rig.read(rig.some_input(kTokens));
  CHECK(std::ranges::all_of(pass["erase_rate"].floats, [](float a) { return a == 0; }));
  pass.channels.erase("erase_key");
  CHECK(state_error(rig, pass) < 1e-5);
}

TEST_CASE("RWKV-7: values behind layer 0 lie between their own and those of layer 0") {
  Editable own(rwkv_config("rwkv7")), first(rwkv_config("rwkv7"));
  own.fill("v_lora.lora.2.weight", 0).fill("v_lora.lora.2.bias", -200);
  first.fill("v_lora.lora.2.weight", 0).fill("v_lora.lora.2.bias", 200);
  MixerRig alone(own, 1), mixed(first, 1);
  const std::int64_t D = alone.hidden();
  const std::vector<float> x = alone.some_input(kTokens);
  std::vector<float> other = x;
  for (std::int64_t i = 0; i < std::ssize(other); ++i) {
    if (i % (2 * D) >= D) other[static_cast<std::size_t>(i)] += 1;
  }
  CHECK(alone.read(x).y == alone.read(other).y);
  const Pass pass = mixed.read(x);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const std::span<const float> expected = std::span(x).subspan(static_cast<std::size_t>((2 * t + 1) * D), static_cast<std::size_t>(D));
    CHECK(difference(pass["v"].row(t), expected) < 1e-6);
  }
}

namespace {

/// Layer 1 of an RWKV-7 model by spec §17.10 in double precision, from its weights: D inputs, H heads of K key and V value channels.
class Rwkv7Layer {
 public:
  Rwkv7Layer(Editable& model, std::int64_t D, std::int64_t H, std::int64_t V) : model_(model), D_(D), H_(H), K_(D / H), V_(V) {}

  /// y of every row [x | v₀ | …], `width` wide
  std::vector<float> outputs(const std::vector<float>& input, std::int64_t width) {
    std::vector<double> S(size(H_ * K_ * V_)), before(size(D_));
    std::vector<float> all;
    for (std::int64_t t = 0; t < std::ssize(input) / width; ++t) {
      const auto row = input.begin() + t * width;
      const std::vector<double> x(row, row + D_), v0(row + D_, row + D_ + H_ * V_);
      for (const double y : output(x, before, v0, S)) all.push_back(static_cast<float>(y));
      before = x;
    }
    return all;
  }

 private:
  using Row = std::vector<double>;
  static std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  std::span<const float> weight(const std::string& name) { return model_.floats("model.layers.1.attn." + name); }
  Row product(const std::string& name, const Row& x) {
    const std::span<const float> W = weight(name + ".weight");
    Row y(W.size() / x.size());
    for (std::size_t i = 0; i < W.size(); ++i) y[i / x.size()] += double{W[i]} * x[i % x.size()];
    return y;
  }
  Row lora(const std::string& name, const Row& x, double (*act)(double), bool bias = true) {
    Row low = product(name + ".lora.0", x);
    for (double& z : low) z = act(z);
    Row y = product(name + ".lora.2", low);
    for (std::size_t i = 0; bias && i < y.size(); ++i) y[i] += weight(name + ".lora.2.bias")[i];
    return y;
  }

  Row output(const Row& x, const Row& before, const Row& v0, Row& S) {
    const auto mixed = [&](const char* which) {
      Row y = x;
      for (std::size_t i = 0; i < y.size(); ++i) y[i] += (before[i] - x[i]) * weight(which)[i];
      return y;
    };
    const auto same = [](double z) { return z; };
    const Row r = product("r_proj", mixed("x_r")), raw_k = product("k_proj", mixed("x_k")),
              g = lora("g_lora", mixed("x_g"), sigmoid, false), w = lora("w_lora", mixed("x_w"), std::tanh),
              rate = lora("a_lora", mixed("x_a"), same), mix = lora("v_lora", mixed("x_v"), same);
    Row v = product("v_proj", mixed("x_v")), read(size(H_ * V_));
    for (std::size_t i = 0; i < v.size(); ++i) v[i] += (v0[i] - v[i]) * sigmoid(mix[i]);
    for (std::int64_t h = 0; h < H_; ++h) {
      Row kappa, k, a;
      double squares = 1e-6, bonus = 0, mean = 0, variance = 0;
      for (std::int64_t c = 0; c < K_; ++c) {
        const std::size_t i = size(h * K_ + c);
        a.push_back(sigmoid(rate[i]));
        kappa.push_back(raw_k[i] * weight("k_k")[i]);
        squares += kappa.back() * kappa.back();
        k.push_back(raw_k[i] * (1 + (a.back() - 1) * weight("k_a")[i]));
        bonus += r[i] * k.back() * weight("r_k")[i];
      }
      Row o(size(V_));
      for (std::int64_t n = 0; n < V_; ++n) {
        const auto cell = [&](std::int64_t c) -> double& { return S[size((h * K_ + c) * V_ + n)]; };
        double erased = 0;
        for (std::int64_t c = 0; c < K_; ++c) erased += kappa[size(c)] / std::sqrt(squares) * cell(c);
        for (std::int64_t c = 0; c < K_; ++c) {
          const std::size_t i = size(h * K_ + c);
          cell(c) = std::exp(-std::exp(-0.5) * sigmoid(w[i])) * cell(c) - kappa[size(c)] / std::sqrt(squares) * a[size(c)] * erased +
                    k[size(c)] * v[size(h * V_ + n)];
          o[size(n)] += r[i] * cell(c);
        }
        mean += o[size(n)] / static_cast<double>(V_);
      }
      for (const double z : o) variance += (z - mean) * (z - mean) / static_cast<double>(V_);
      for (std::int64_t n = 0; n < V_; ++n) {
        const std::size_t i = size(h * V_ + n);
        const double normed = (o[size(n)] - mean) / std::sqrt(variance + static_cast<double>(K_) * 1e-5);
        read[i] = (normed * weight("g_norm.weight")[i] + weight("g_norm.bias")[i] + bonus * v[i]) * g[i];
      }
    }
    return product("o_proj", read);
  }

  Editable& model_;
  std::int64_t D_, H_, K_, V_;
};

/// What goes beside the stream, and the values of layer 0.
class Beside final : public Observer {
 public:
  void residual(std::int64_t, ConstTensor) override {}
  void companion(ConstTensor x) override { companion_rows = values_of(x); }
  void channel(std::int64_t layer, std::string_view name, ConstTensor values) override {
    if (layer == 0 && name == "v") first_values = values_of(values.with_row({values.row_size()}));
  }
  std::vector<float> companion_rows, first_values;
};

}  // namespace

TEST_CASE("RWKV-7: values of another width than the stream, against double precision") {
  for (const std::int64_t width : {32, 64, 96, 192}) {
    CAPTURE(width);
    Editable model(rwkv_config("rwkv7", {{"value_dim", width}}));
    MixerRig rig(model, 1);
    const std::vector<float> x = rig.some_input(kTokens);
    CHECK(rig.input_width() == 64 + (width + 63) / 64 * 64);
    CHECK(difference(rig.read(x).y, Rwkv7Layer(model, 64, 4, width / 4).outputs(x, rig.input_width())) < 1e-5);
  }
}

TEST_CASE("RWKV-7: wide values of layer 0 go beside the stream, zeros behind them") {
  const std::shared_ptr<Model> model = Editable(rwkv_config("rwkv7", {{"value_dim", 96}})).model();
  CHECK(model->streams() == 3 + 1 + 2);
  const std::vector<std::int32_t> ids = some_ids(7);
  std::vector<float> hidden(7 * 64);
  ModelState state = model->start();
  Beside beside;
  model->forward(state, ids, {.prompt_length = 7, .rules = {}}, Tensor(hidden.data(), DType::f32, {7, 64}), &beside);
  REQUIRE(beside.companion_rows.size() == 7 * 128);
  REQUIRE(beside.first_values.size() == 7 * 96);
  for (std::size_t t = 0; t < 7; ++t) {
    for (std::size_t i = 0; i < 128; ++i) CHECK(beside.companion_rows[t * 128 + i] == (i < 96 ? beside.first_values[t * 96 + i] : 0));
  }
}

TEST_CASE("RWKV-6: a token reads before it writes, and itself through its bonus alone") {
  Editable edited(rwkv_config("rwkv6"));
  edited.fill("attn.bonus", 0).fill("attn.g_norm.bias", 0);
  MixerRig without(edited);
  const std::vector<float> x = without.some_input(2);
  const Pass silent = without.read(x);
  CHECK(std::ranges::all_of(silent["readout"].row(0), [](float read) { return read == 0; }));
  CHECK(std::ranges::any_of(silent["readout"].row(1), [](float read) { return read != 0; }));
  MixerRig itself(edited.fill("attn.bonus", 1));
  CHECK(std::ranges::any_of(itself.read(x)["readout"].row(0), [](float read) { return read != 0; }));
}

TEST_CASE("Zamba: where a layer takes nothing from the shared block, the block does not matter (spec §17.7)") {
  const std::vector<std::int32_t> ids = some_ids(20);
  for (const char* family : {"zamba", "zamba2"}) {
    INFO(family);
    Editable model(zamba_config(family));
    const std::vector<float> truth = logits_of(*model.model(), ids);
    model.fill("pre_ff_layernorm.weight", 0.5F);
    CHECK(logits_of(*model.model(), ids) != truth);
    model.fill(".linear.weight", 0);
    const std::vector<float> bare = logits_of(*model.model(), ids);
    model.fill("pre_ff_layernorm.weight", 2);
    CHECK(logits_of(*model.model(), ids) == bare);
  }
}

}  // namespace statescope::test::recurrent_test
