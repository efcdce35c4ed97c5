// Identities between models (spec §16): what must be equal whatever the weights.
#include "kernels/ops/decayed_outer_product.h"
#include "tests/mixers/mixer_rig.h"

namespace statescope::test::identities_test {
namespace {

using Numbers = std::vector<double>;

/// What one head's memory was given, token by token.
struct Head {
  std::vector<Numbers> q, k, v, log_decay;  // log_decay per row, or one number
  Numbers beta;                             // empty: decayed outer product
};

/// Head h of H at token t of a channel [T, heads, …] or, of a pair, [T, 2, heads, …].
Numbers numbers(const Channel& channel, std::int64_t t, std::int64_t h, std::int64_t H, int pair) {
  const int axis = pair < 0 ? 1 : 2;
  const std::int64_t heads = channel.shape[axis], n = channel.shape.rank() > axis + 1 ? channel.shape[axis + 1] : 1;
  const std::int64_t begin = (std::max(pair, 0) * heads + producer_head(h, heads, H)) * n;
  const std::span<const float> row = channel.row(t).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(n));
  return {row.begin(), row.end()};
}

Head head_of(const Pass& pass, std::int64_t T, std::int64_t h, std::int64_t H, int pair) {
  Head head;
  for (std::int64_t t = 0; t < T; ++t) {
    head.q.push_back(numbers(pass["q"], t, h, H, pair));
    head.k.push_back(numbers(pass["k"], t, h, H, pair));
    head.v.push_back(numbers(pass["v"], t, h, H, -1));
    head.log_decay.push_back(pass.channels.contains("log_decay") ? numbers(pass["log_decay"], t, h, H, pair) : Numbers{0});
    if (pass.channels.contains("beta")) head.beta.push_back(numbers(pass["beta"], t, h, H, pair)[0]);
    if (pass.channels.contains("erase")) {
      // β (v − c k S) = β c/α ((α/c) v − k α S)     (spec §17.13)
      const double ratio = std::exp(head.log_decay.back()[0]) / numbers(pass["erase"], t, h, H, -1)[0];
      head.beta.back() /= ratio;
      for (double& value : head.v.back()) value *= ratio;
    }
  }
  return head;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// o_t = Σ_s A_{t,s} v_s by the backward sweep of spec §12.8 over `written`, the tokens ≤ t that this memory took.
Numbers attended(const Head& head, const std::vector<std::int64_t>& written, std::int64_t t, double scale) {
  Numbers o(head.v[0].size()), rho = head.q[static_cast<std::size_t>(t)];
  for (double& r : rho) r *= scale;
  for (auto j = written.rbegin(); j != written.rend(); ++j) {
    const auto s = static_cast<std::size_t>(*j);
    const double x = dot(rho, head.k[s]), beta = head.beta.empty() ? 1 : head.beta[s];
    for (std::size_t c = 0; c < o.size(); ++c) o[c] += beta * x * head.v[s][c];
    for (std::size_t r = 0; r < rho.size(); ++r) {
      const double log_decay = head.log_decay[s][head.log_decay[s].size() > 1 ? r : 0];
      rho[r] = std::exp(log_decay) * (rho[r] - (head.beta.empty() ? 0 : beta * x * head.k[s][r]));
    }
  }
  return o;
}

/// scale · q S of one slot and head.
Numbers read_back(const Numbers& q, ConstTensor memory, std::int64_t slot, std::int64_t h, double scale) {
  const std::int64_t K = memory.shape[2], V = memory.shape[3];
  Numbers o(static_cast<std::size_t>(V));
  for (std::int64_t r = 0; r < K; ++r) {
    for (std::int64_t c = 0; c < V; ++c) {
      o[static_cast<std::size_t>(c)] += scale * q[static_cast<std::size_t>(r)] * memory.f32(slot)[(h * K + r) * V + c];
    }
  }
  return o;
}

struct Compared {
  double difference = 0, norm = 0;
  void operator()(const Numbers& a, const Numbers& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      difference += (a[i] - b[i]) * (a[i] - b[i]);
      norm += b[i] * b[i];
    }
  }
  double relative() const { return norm > 0 ? std::sqrt(difference / norm) : 1; }
};

void scale_by(Numbers& x, double factor) {
  for (double& value : x) value *= factor;
}

void l2_normalise(Numbers& x) { scale_by(x, 1 / std::sqrt(dot(x, x) + 1e-6)); }

constexpr std::int64_t kTokens = 20;

/// The first t + 1 tokens, so that the state of the pass is S_t.
Pass prefix(MixerRig& rig, const std::vector<float>& x, std::int64_t t) {
  return rig.read(std::span(x).first(static_cast<std::size_t>((t + 1) * rig.input_width())));
}

/// S_0 … S_{T−1}
std::vector<MixerState> states_of(MixerRig& rig, const std::vector<float>& x) {
  std::vector<MixerState> states;
  for (std::int64_t t = 0; t < kTokens; ++t) states.push_back(prefix(rig, x, t).state);
  return states;
}

double implicit_attention_error(MixerRig& rig, const Config& config) {
  const std::vector<float> x = rig.some_input(kTokens);
  const Pass whole = rig.read(x);
  const std::int64_t H = rig.layout.memory[0].shape[1];
  const bool unscaled = rig.row->name == "mamba2" || config.text("feature_map", "") == "performer";
  const double scale = unscaled ? 1 : 1 / std::sqrt(static_cast<double>(rig.layout.memory[0].shape[2]));
  const std::vector<MixerState> states = states_of(rig, x);
  Compared compared;
  for (std::int64_t h = 0; h < H; ++h) {
    const Head head = head_of(whole, kTokens, h, H, -1);
    std::vector<std::int64_t> written;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      written.push_back(t);
      const auto at = static_cast<std::size_t>(t);
      compared(attended(head, written, t, scale), read_back(head.q[at], states[at].memory[0], 0, h, scale));
    }
  }
  return compared.relative();
}

/// q and k of the sparse partitions, each token's gate of partition n in its place (spec §4.3).
Head sparse_head(Head head, const Pass& pass, std::int64_t n, const Config& config) {
  const bool delta_rule = !head.beta.empty(), v1 = config.text("sse_formulation", "iclr") == "v1";
  const bool after_l2 = config.text("sse_gdn_gate", "pre_l2") == "post_l2";
  for (std::size_t t = 0; t < head.q.size(); ++t) {
    const double e = pass["partition_gate"].row(static_cast<std::int64_t>(t))[static_cast<std::size_t>(n)];
    if (delta_rule && after_l2) l2_normalise(head.q[t]), l2_normalise(head.k[t]);
    scale_by(head.q[t], v1 || !config.boolean("emulq", true) ? 1 : e);
    scale_by(head.k[t], v1 ? 1.0 / static_cast<double>(config.integer("num_writer")) : config.boolean("emulk", true) ? e : 1);
    if (delta_rule && !after_l2) l2_normalise(head.q[t]), l2_normalise(head.k[t]);
  }
  return head;
}

double sse_implicit_attention_error(MixerRig& rig, const Config& config) {
  const std::vector<float> x = rig.some_input(kTokens);
  const Pass whole = rig.read(x);
  const std::int64_t H = rig.layout.memory[0].shape[1], N = rig.layout.partitions;
  const std::int64_t writers = config.integer("num_writer"), readers = config.integer("num_reader");
  const double scale = 1 / std::sqrt(static_cast<double>(rig.layout.memory[0].shape[2]));
  const Channel& selected = whole["partition_selected"];
  const std::vector<MixerState> states = states_of(rig, x);
  Compared compared;
  for (std::int64_t h = 0; h < H; ++h) {
    Head shared = head_of(whole, kTokens, h, H, 0);
    if (!shared.beta.empty()) {
      for (std::size_t t = 0; t < shared.q.size(); ++t) l2_normalise(shared.q[t]), l2_normalise(shared.k[t]);
    }
    for (std::int64_t n = 0; n < N; ++n) {
      const Head sparse = sparse_head(head_of(whole, kTokens, h, H, 1), whole, n, config);
      std::vector<std::int64_t> all, written;
      for (std::int64_t t = 0; t < kTokens; ++t) {
        const std::int32_t* chosen = selected.integers.data() + t * selected.shape.row_size();
        all.push_back(t);
        if (std::find(chosen, chosen + writers, n) != chosen + writers) written.push_back(t);
        const auto at = static_cast<std::size_t>(t);
        if (n == 0) compared(attended(shared, all, t, scale), read_back(shared.q[at], states[at].memory[0], 0, h, scale));
        if (std::find(chosen, chosen + readers, n) == chosen + readers) continue;
        compared(attended(sparse, written, t, scale), read_back(sparse.q[at], states[at].memory[0], 1 + n, h, scale));
      }
    }
  }
  return compared.relative();
}

}  // namespace

TEST_CASE("implicit attention: Σ_s A_ts v_s from the channels is what the state gives back (spec §12.8, §16.9)") {
  std::int64_t checked = 0;
  for (const SmallModel& model : small_models()) {
    const std::string family = model.config["model_type"];
    const Config config(model.config);
    if (family == "transformer" || family == "mom" || family == "gsa" || family == "sse_swa_moba") continue;
    if (config.boolean("v1_joint_softmax", false) || config.integer("num_householder", 1) > 1) continue;
    INFO(model.name);
    const bool softmax_first = model.name == "gla heterogeneous hybrid";
    MixerRig rig(random_checkpoint(config, 2), softmax_first ? 2 : 0);
    if (rig.layout.memory.empty() || rig.row->memory == "selective scan") continue;  // its channels each have attention of their own
    if (rig.row->memory == "WKV") continue;                                          // with other keys, or before it is written
    if (rig.row->memory == "log-linear attention" || rig.row->memory == "state space") continue;  // whose rows are not of single tokens
    CHECK((family == "sse" ? sse_implicit_attention_error(rig, config) : implicit_attention_error(rig, config)) < 1e-5);
    ++checked;
  }
  CHECK(checked > 30);
}

TEST_CASE("implicit attention of GSA: A_ts = Σ_m p_tm w_sm exp(Σ log f) (spec §12.8)") {
  MixerRig rig(Editable(small_config("gsa", {{"num_slots", 12}, {"num_kv_heads", 2}})));
  const std::vector<float> x = rig.some_input(kTokens);
  const Pass whole = rig.read(x);
  const std::int64_t H = 4;
  const std::vector<MixerState> states = states_of(rig, x);
  Compared values, slots;
  for (std::int64_t h = 0; h < H; ++h) {
    Head write;  // the second pass: p reads, w = 1 − f writes
    for (std::int64_t t = 0; t < kTokens; ++t) {
      write.q.push_back(numbers(whole["slot_read"], t, h, H, -1));
      write.log_decay.push_back(numbers(whole["log_decay"], t, h, H, -1));
      write.v.push_back(numbers(whole["v"], t, h, H, -1));
      write.k.push_back(write.log_decay.back());
      for (double& w : write.k.back()) w = -std::expm1(w);
    }
    std::vector<std::int64_t> written;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      written.push_back(t);
      const auto at = static_cast<std::size_t>(t);
      values(attended(write, written, t, 1), read_back(write.q[at], states[at].memory[0], 0, h, 1));
      // p_t = softmax(q_t Kt_t)
      Numbers p = read_back(numbers(whole["q"], t, h, H, -1), states[at].memory[1], 0, h, 1);
      double sum = 0;
      for (double& a : p) sum += a = std::exp(a);
      scale_by(p, 1 / sum);
      slots(write.q[at], p);
    }
  }
  CHECK(values.relative() < 1e-5);
  CHECK(slots.relative() < 1e-5);
}

TEST_CASE("GLA without decay is linear attention with the identity map (spec §16.2)") {
  Editable gla(small_config("gla", {{"expand_k", 1.0}, {"use_output_gate", false}}));
  gla.fill("gk_proj.1.bias", 1e4F);  // α = σ(10⁴)^(1/16) = 1
  Editable linear(*gla.checkpoint());
  linear.set({{"model_type", "linear_attn"}, {"feature_map", "identity"}, {"use_output_gate", nullptr}});
  linear.rename("g_norm.weight", "norm.weight").erase("gk_proj.0.weight").erase("gk_proj.1.weight").erase("gk_proj.1.bias");
  const std::vector<std::int32_t> ids = some_ids(70);
  CHECK(difference(logits_of(*gla.model(), ids), logits_of(*linear.model(), ids)) < 1e-5);
  gla.fill("gk_proj.1.bias", 0);
  CHECK(difference(logits_of(*gla.model(), ids), logits_of(*linear.model(), ids)) > 1e-2);
}

TEST_CASE("Gated DeltaProduct with one step a token is Gated DeltaNet (spec §17.12)") {
  Editable product(small_config("gated_deltaproduct", {{"head_dim", 16}, {"use_forget_gate", true}}));
  Editable net(*product.checkpoint());
  net.set({{"model_type", "gated_deltanet"}, {"use_forget_gate", nullptr}});
  const std::vector<std::int32_t> ids = some_ids(70);
  CHECK(difference(logits_of(*product.model(), ids), logits_of(*net.model(), ids)) < 1e-6);
}

TEST_CASE("HGRN2 is the same where all lower bounds are shifted together, and forgets more where there are none (spec §17.11)") {
  Editable bounded(small_config("hgrn2", {{"expand_ratio", 16}, {"num_hidden_layers", 3}}));
  const std::vector<std::int32_t> ids = some_ids(70);
  const std::vector<float> truth = logits_of(*bounded.model(), ids);
  Editable free(*bounded.checkpoint());
  free.set({{"use_lower_bound", false}}).erase("model.lower_bounds");
  CHECK(difference(logits_of(*free.model(), ids), truth) > 1e-2);
  bounded.each("lower_bounds", [](std::span<float> all) {
    for (float& bound : all) bound += 0.5F;
  });
  CHECK(difference(logits_of(*bounded.model(), ids), truth) < 1e-5);
}

TEST_CASE("a row-sparse token of MetaLA leaves the rows that it does not pick bitwise as they were (spec §17.15)") {
  MixerRig rig(Editable(small_config("metala", {{"expand_k", 1.0}, {"row_sparse", {{"topk", 3}}}})));
  const std::vector<float> x = rig.some_input(31);
  const Pass before = rig.read(std::span(x).first(static_cast<std::size_t>(30 * rig.input_width()))),
             after = rig.read(x, {{30, 64}, {1, 0}});
  const Channel& picked = after["row_selected"];
  const std::vector<float> was = values_of(before.state.memory[0]), is = values_of(after.state.memory[0]);
  std::size_t kept = 0;
  for (std::size_t row = 0; row < 4 * 16; ++row) {
    const auto* chosen = picked.integers.data() + 30 * 4 * 3 + row / 16 * 3;
    const bool same =
        std::equal(was.begin() + static_cast<std::ptrdiff_t>(row * 16), was.begin() + static_cast<std::ptrdiff_t>(row * 16 + 16),
                   is.begin() + static_cast<std::ptrdiff_t>(row * 16));
    CHECK(same == (std::find(chosen, chosen + 3, static_cast<std::int32_t>(row % 16)) == chosen + 3));
    kept += same;
  }
  CHECK(kept == 4 * 13);
}

TEST_CASE("GLA whose channels decay alike is the scalar-decay form (spec §16.2)") {
  Editable gla(small_config("gla", {{"expand_k", 1.0}}));
  const auto first_row_of_each_head = [](std::span<float> values, std::size_t width) {
    for (std::size_t row = 0; row < values.size() / width; ++row) {
      for (std::size_t i = 0; i < width; ++i) values[row * width + i] = values[row / 16 * 16 * width + i];
    }
  };
  gla.each("gk_proj.1.weight", [&](std::span<float> w) { first_row_of_each_head(w, 16); });
  gla.each("gk_proj.1.bias", [&](std::span<float> b) { first_row_of_each_head(b, 1); });
  MixerRig rig(gla);
  const std::int64_t T = 63;
  Pass pass = rig.read(rig.some_input(T));
  std::vector<float> log_decay, state(4 * 16 * 16, 0), o(static_cast<std::size_t>(T) * 64);
  for (std::size_t i = 0; i < pass["log_decay"].floats.size(); i += 16) log_decay.push_back(pass["log_decay"].floats[i]);
  auto heads = [&](const char* name) { return ConstTensor(pass[name].floats.data(), DType::f32, {T, 4, 16}); };
  const std::vector<std::int32_t> cu_seqlens{0, static_cast<std::int32_t>(T)};
  const Tensor memory(state.data(), DType::f32, {1, 4, 16, 16});
  decayed_outer_product_chunk({.q = heads("q"),
                               .k = heads("k"),
                               .v = heads("v"),
                               .log_decay = ConstTensor(log_decay.data(), DType::f32, {T, 4}),
                               .segments = {cu_seqlens, {}},
                               .initial_state = memory,
                               .final_state = memory,
                               .o = Tensor(o.data(), DType::f32, {T, 4, 16})},
                              64);
  CHECK(difference(values_of(pass.state.memory[0]), state) < 1e-5);
}

TEST_CASE("RetNet decays by 1 − 2^{−5−h}, and one token is remembered by γ^t") {
  MixerRig rig(Editable(small_config("retnet")));
  const Pass pass = rig.read(rig.some_input(3));
  for (std::int64_t t = 0; t < 3; ++t) {
    for (std::size_t h = 0; h < 4; ++h)
      CHECK(std::exp(pass["log_decay"].row(t)[h]) == Approx(1 - std::exp2(-5.0 - static_cast<double>(h))));
  }
}

TEST_CASE("Gated DeltaNet without decay is DeltaNet (spec §16.3)") {
  Editable gdn(small_config("gated_deltanet", {{"head_dim", 16}, {"expand_v", 1.0}, {"use_gate", false}}));
  gdn.fill("A_log", -100);  // log α = −e^{−100} softplus(…) = 0
  Editable delta(*gdn.checkpoint());
  delta.set({{"model_type", "delta_net"}, {"head_dim", nullptr}}).erase("a_proj.weight").erase("A_log").erase("dt_bias");
  const std::vector<std::int32_t> ids = some_ids(70);
  CHECK(difference(logits_of(*gdn.model(), ids), logits_of(*delta.model(), ids)) < 1e-5);
  gdn.fill("A_log", 0);
  CHECK(difference(logits_of(*gdn.model(), ids), logits_of(*delta.model(), ids)) > 1e-2);
}

TEST_CASE("Gated DeltaNet with β = 0 only decays (spec §16.3)") {
  Editable gdn(small_config("gated_deltanet", {{"head_dim", 16}}));
  // b_proj x = −10⁴ x_0: β is 1 where channel 0 is −1, and 0 where it is 1.
  gdn.fill(".b_proj.weight", 0).each(".b_proj.weight", [](std::span<float> w) {
    for (std::size_t h = 0; h < 4; ++h) w[h * 64] = -1e4F;
  });
  MixerRig rig(gdn);
  const std::int64_t T = 40, written = 15;
  std::vector<float> x = rig.some_input(T);
  for (std::int64_t t = 0; t < T; ++t) x[static_cast<std::size_t>(t * 64)] = t < written ? -1.0F : 1.0F;
  const Pass before = prefix(rig, x, written - 1), after = rig.read(x);
  std::vector<float> expected = values_of(before.state.memory[0]);
  for (std::size_t h = 0; h < 4; ++h) {
    double log_decay = 0;
    for (std::int64_t t = written; t < T; ++t) log_decay += after["log_decay"].row(t)[h];
    for (std::size_t i = 0; i < 16 * 32; ++i) expected[h * 16 * 32 + i] *= static_cast<float>(std::exp(log_decay));
  }
  CHECK(difference(values_of(after.state.memory[0]), expected) < 1e-5);
}

TEST_CASE("DeltaNet by hand: one-hot keys fill their rows, a repeated key replaces its value (spec §16.3, §16.4)") {
  Editable delta(small_config("delta_net", {{"use_short_conv", false}, {"qk_activation", "identity"}, {"use_beta", false}}));
  // In every head key channel j is input channel j.
  delta.fill(".k_proj.weight", 0).each(".k_proj.weight", [](std::span<float> w) {
    for (std::size_t row = 0; row < 64; ++row) w[row * 64 + row % 16] = 1;
  });
  MixerRig rig(delta);
  const std::vector<std::size_t> keys{0, 5, 9, 5};
  std::vector<float> x(keys.size() * 64);
  for (std::size_t t = 0; t < keys.size(); ++t) x[t * 64 + keys[t]] = 1, x[t * 64 + 20 + t] = 2;
  const Pass pass = rig.read(x);
  for (std::size_t h = 0; h < 4; ++h) {
    for (std::size_t row = 0; row < 16; ++row) {
      const std::span<const float> state(pass.state.memory[0].f32() + (h * 16 + row) * 16, 16);
      const auto last = std::find(keys.rbegin(), keys.rend(), row);
      for (std::size_t c = 0; c < 16; ++c) {
        INFO("head " << h << ", row " << row << ", column " << c);
        const auto t = keys.rend() - last - 1;
        const float expected = last == keys.rend() ? 0 : pass["v"].row(t)[h * 16 + c];
        CHECK(state[c] == Approx(expected).margin(1e-5));
      }
    }
  }
}

TEST_CASE("SSE: the names of the partitions do not matter (spec §16.5)") {
  for (const char* type : {"gla", "gdn"}) {
    for (const json& change :
         {json::object(), json{{"num_writer", 2}, {"num_reader", 3}}, json{{"sse_formulation", "v1"}, {"v1_joint_softmax", true}}}) {
      const Editable sse(sse_config(type, change));
      Editable renamed(*sse.checkpoint());
      renamed.each(".e_proj.weight", [](std::span<float> w) {
        const std::vector<float> old(w.begin(), w.end());
        const std::size_t from[] = {2, 0, 3, 1};
        for (std::size_t n = 0; n < 4; ++n)
          std::copy_n(old.begin() + static_cast<std::ptrdiff_t>(from[n] * 64), 64, w.begin() + static_cast<std::ptrdiff_t>(n * 64));
      });
      const std::vector<std::int32_t> ids = some_ids(70);
      INFO(type << " " << change.dump());
      CHECK(difference(logits_of(*renamed.model(), ids), logits_of(*sse.model(), ids)) < 1e-5);
    }
  }
}

TEST_CASE("SSE: a partition that no token chooses stays empty, however the tokens are cut") {
  for (const char* type : {"gla", "gdn"}) {
    Editable sse(sse_config(type, {{"num_writer", 2}, {"num_reader", 2}}));
    // Logits from channel 0 alone, which is always 1: partitions 0 and 2 win every time.
    sse.fill(".e_proj.weight", 0).each(".e_proj.weight", [](std::span<float> w) { w[0] = 5, w[2 * 64] = 4; });
    MixerRig rig(sse);
    std::vector<float> x = rig.some_input(63);
    for (std::size_t t = 0; t < 63; ++t) x[t * 64] = 1;
    const Pass whole = rig.read(x), stepped = rig.read(x, steps(63));
    CHECK(difference(whole.y, stepped.y) < 1e-4);
    for (std::int64_t slot = 0; slot < 5; ++slot) {
      const std::vector<float> state = values_of(whole.state.memory[0].slice(slot, 1));
      INFO(type << ", slot " << slot);
      CHECK(std::all_of(state.begin(), state.end(), [](float value) { return value == 0; }) == (slot == 2 || slot == 4));
    }
  }
}

TEST_CASE("SSE-GDN: before the L2 norm the gate cancels, after it it does not (spec §16.6)") {
  const std::vector<std::int32_t> ids = some_ids(70);
  auto logits = [&](const char* place, bool gated) {
    Editable sse(sse_config("gdn"));
    return logits_of(*sse.set({{"sse_gdn_gate", place}, {"emulq", gated}, {"emulk", gated}}).model(), ids);
  };
  CHECK(difference(logits("pre_l2", true), logits("pre_l2", false)) < 1e-5);
  CHECK(difference(logits("post_l2", true), logits("post_l2", false)) > 1e-3);
  CHECK(difference(logits("post_l2", false), logits("pre_l2", false)) < 1e-5);
}

TEST_CASE("row-sparse with all rows chosen is GLA with softmax keys (spec §16.7)") {
  Editable plain(small_config("gla", {{"expand_k", 1.0}}));
  Editable sparse(*plain.checkpoint());
  sparse.set({{"row_sparse", {{"topk", 16}}}});
  MixerRig plain_rig(plain), rig(sparse);
  const std::int64_t T = 50;
  const std::vector<float> x = rig.some_input(T);
  const Pass pass = rig.read(x), base = plain_rig.read(x);
  CHECK(pass["log_decay"].floats == base["log_decay"].floats);
  Compared keys, states;
  for (std::int64_t h = 0; h < 4; ++h) {
    std::vector<double> S(16 * 16);
    for (std::int64_t t = 0; t < T; ++t) {
      Numbers k = numbers(base["k"], t, h, 4, -1);
      double sum = 0;
      for (double& z : k) sum += z = std::exp(z);
      scale_by(k, 1 / sum);
      keys(numbers(pass["k"], t, h, 4, -1), k);
      const Numbers v = numbers(base["v"], t, h, 4, -1), log_decay = numbers(base["log_decay"], t, h, 4, -1);
      for (std::size_t r = 0; r < 16; ++r) {
        for (std::size_t c = 0; c < 16; ++c) S[r * 16 + c] = std::exp(log_decay[r]) * S[r * 16 + c] + k[r] * v[c];
      }
    }
    const float* state = pass.state.memory[0].f32() + h * 256;
    states(Numbers(state, state + 256), S);
  }
  CHECK(keys.relative() < 1e-6);
  CHECK(states.relative() < 1e-5);
}

}  // namespace statescope::test::identities_test
