// Implicit attention of a run: Σ_s A_{t,s} v_s is what token t read, in every family (spec §12.8, §16.9).
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "engine/analysis/attention_map.h"
#include "engine/analysis/memory_reading.h"
#include "engine/analysis/state_space_parameters.h"
#include "engine/answers/answers.h"
#include "engine/answers/own_values.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::answers_attention_test {
namespace {

constexpr std::int64_t kTokens = 37, kFrom = 9, kTo = 31;

/// The square map of the tokens [from, to).
struct Window {
  Window(Evidence& evidence, std::int64_t layer, std::int64_t head, std::int64_t from_, std::int64_t to_, std::int64_t slot = -1)
      : from(from_),
        to(to_),
        map(answer(AttentionQuestion{layer, head, {from_, 1, to_ - from_}, {from_, 1, to_ - from_}, slot}, evidence)) {}
  double at(std::int64_t t, std::int64_t s) const { return map.weight[static_cast<std::size_t>((t - from) * (to - from) + s - from)]; }
  double before(std::int64_t t) const { return map.before[static_cast<std::size_t>(t - from)]; }

  std::int64_t from, to;
  AttentionMap map;
};

/// What a token's value was multiplied with before it was written, [T].
std::vector<float> gates_of(Evidence& evidence, std::int64_t layer, std::int64_t head, const MemoryTrace& trace) {
  const std::vector<float> gates = value_gate(layer, head, trace, evidence);
  return gates.empty() ? std::vector<float>(kTokens, 1) : gates;
}

/// One slot's window is what single read-outs say, each swept on its own.
void check_window(Evidence& evidence, std::int64_t layer, const MemoryTrace& trace, std::int64_t slot, std::int64_t head) {
  const Window window(evidence, layer, head, kFrom, kTo, slot);
  const std::vector<float> gates = gates_of(evidence, layer, head, trace), skips = skip_weights(layer, head, trace, evidence);
  for (std::int64_t t = kFrom; t < kTo; ++t) {
    const Contributions expected = implicit_attention(trace, slot, head, t);
    std::vector<double> row(kTokens);
    double most = 0, before = 0;
    for (std::size_t i = 0; i < expected.token.size(); ++i) {
      const auto s = static_cast<std::size_t>(expected.token[i]);
      row[s] = gates[s] * expected.coefficient[i];
      most = std::max(most, std::abs(row[s]));
      if (expected.token[i] < kFrom) before += std::abs(row[s]);
    }
    if (!skips.empty()) row[static_cast<std::size_t>(t)] += skips[static_cast<std::size_t>(t)];
    for (std::int64_t s = kFrom; s < kTo; ++s) REQUIRE(std::abs(window.at(t, s) - row[static_cast<std::size_t>(s)]) <= 1e-6 * most);
    REQUIRE(std::abs(window.before(t) - before) <= 1e-6 * (before + most));
  }
}

/// Every channel of a scan has an A of its own: the map is the mean of their sizes.
void check_scan(Evidence& evidence, std::int64_t layer, const MemoryTrace& trace) {
  const std::vector<float>& dt = evidence.channel(layer, "dt")->values;
  const std::vector<float> D = layer_tensor(layer, ".D", trace.H * trace.V, evidence.checkpoint());
  REQUIRE(!D.empty());
  const std::int64_t head = trace.H - 1, t = kTo - 1;
  const Window window(evidence, layer, head, kFrom, kTo);
  std::vector<double> expected(static_cast<std::size_t>(t + 1));
  double before = 0;
  for (std::int64_t channel = head * trace.V; channel < (head + 1) * trace.V; ++channel) {
    const std::vector<double> a = channel_attention(trace, 0, head, channel - head * trace.V, t);
    for (std::size_t j = 0; j < a.size(); ++j) {
      const std::int64_t s = trace.slots[0].token[j];
      const double gate = s < 0 ? 1 : dt[static_cast<std::size_t>(s * trace.H * trace.V + channel)];
      const double size = std::abs(gate * a[j] + (s == t ? D[static_cast<std::size_t>(channel)] : 0)) / static_cast<double>(trace.V);
      (s < kFrom ? before : expected[static_cast<std::size_t>(s)]) += size;
    }
  }
  CHECK(window.before(t) == Approx(before));
  for (std::int64_t s = kFrom; s <= t; ++s) REQUIRE(window.at(t, s) == Approx(expected[static_cast<std::size_t>(s)]));
}

bool normalised(const Evidence& evidence, std::int64_t layer, std::size_t memories) {
  return evidence.layer(layer).mixer == "linear_attn" && memories == 2;
}

/// Token by token Σ_s A_{t,s} v_s of [T, H, V] values against `o` of the same shape.
void check_sums(const Window& map, std::int64_t head, const std::vector<float>& v, std::int64_t v_heads, const std::vector<float>& o,
                std::int64_t heads) {
  const std::int64_t V = std::ssize(v) / (kTokens * v_heads);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    std::vector<float> sum(static_cast<std::size_t>(V));
    for (std::int64_t s = 0; s <= t; ++s) {
      for (std::int64_t c = 0; c < V; ++c)
        sum[static_cast<std::size_t>(c)] +=
            static_cast<float>(map.at(t, s)) * v[static_cast<std::size_t>((s * v_heads + head * v_heads / heads) * V + c)];
    }
    REQUIRE(relative_error(sum, {o.data() + (t * heads + head) * V, static_cast<std::size_t>(V)}) < 1e-4);
  }
}

}  // namespace

TEST_CASE("answers: a window of the attention map is the read-outs of its tokens, in every slot of every family") {
  int layers = 0, scans = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t l = 0; l < run.model->layers(); ++l) {
      const MemoryTrace* trace = run.evidence.trace(l);
      if (!trace || normalised(run.evidence, l, run.evidence.traces(l).size()) || run.model->layout(l).steps > 1) continue;
      if (trace->of_cells()) {
        check_scan(run.evidence, l, *trace);
        ++scans;
        continue;
      }
      ++layers;
      for (std::int64_t slot = 0; slot < std::ssize(trace->slots); ++slot) check_window(run.evidence, l, *trace, slot, trace->H - 1);
    }
  }
  CHECK(layers > 20);
  CHECK(scans >= 5);
}

TEST_CASE("answers: the whole attention map times the values is what was read") {
  for (const SmallModel& small :
       {SmallModel{"gla", small_config("gla")},
        {"gated_deltanet", small_config("gated_deltanet", {{"head_dim", 16}, {"num_v_heads", 8}})},
        {"gsa", small_config("gsa", {{"num_slots", 12}})},
        {"linear_attn, normalised", small_config("linear_attn", {{"norm_feature_map", true}})},
        {"gated_deltanet sla", small_config("gated_deltanet", with(sla(), {{"head_dim", 16}, {"num_v_heads", 8}}))},
        {"metala", small_config("metala")},
        {"comba", small_config("comba", {{"head_dim", 16}, {"num_v_heads", 8}})},
        {"mamba2", small_config("mamba2", {{"head_dim", 16}, {"state_size", 12}, {"n_groups", 2}})}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    const MemoryTrace& trace = *run.evidence.trace(1);
    const std::vector<MemoryTrace>& all = run.evidence.traces(1);
    std::vector<float> o = trace.slots[0].o, v = trace.slots[0].v;
    // Values as they were before a gate, x of Mamba-2, which is read with D beside the memory.
    for (std::int64_t head = 0; head < trace.H; ++head) {
      const std::vector<float> gates = gates_of(run.evidence, 1, head, trace), skips = skip_weights(1, head, trace, run.evidence);
      CHECK(skips.empty() == (small.name != "mamba2" && small.name != "metala"));
      for (std::int64_t i = 0; i < kTokens * trace.V; ++i) {
        const auto at = static_cast<std::size_t>((i / trace.V * trace.H + head) * trace.V + i % trace.V);
        v[at] /= gates[static_cast<std::size_t>(i / trace.V)];
        if (!skips.empty()) o[at] += skips[static_cast<std::size_t>(i / trace.V)] * v[at];
      }
    }
    if (normalised(run.evidence, 1, all.size())) {
      for (std::size_t i = 0; i < o.size(); ++i) o[i] /= all[1].slots[0].o[i / static_cast<std::size_t>(trace.V)];
    }
    for (std::int64_t head = 0; head < trace.H; ++head) check_sums(Window(run.evidence, 1, head, 0, kTokens), head, v, trace.H, o, trace.H);
  }
}

TEST_CASE("answers: attention beside a memory is softmax(q kᵀ) of its own channels, and reads what the layer says that it reads") {
  std::set<std::string> mixers;
  for (const SmallModel& small : small_models()) {
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t l = 0; l < run.model->layers(); ++l) {
      INFO(small.name << ", layer " << l);
      const LayerInfo& layer = run.evidence.layer(l);
      const ChannelRows *q = run.evidence.channel(l, "attention_q"), *k = run.evidence.channel(l, "attention_k");
      REQUIRE(layer.attends_beside() == (q != nullptr));
      if (!q) {
        CHECK_THROWS_WITH(Window(run.evidence, l, 0, 0, kTokens, AttentionQuestion::kBeside),
                          Catch::Matchers::ContainsSubstring("has no attention beside its memory"));
        continue;
      }
      mixers.insert(layer.mixer);
      const ChannelRows &v = *run.evidence.channel(l, "attention_v"), &o = *run.evidence.channel(l, "attention_readout");
      const std::int64_t H = q->shape[0], d = q->shape[1], kv_heads = k->shape[0], head = H - 1, own = head * kv_heads / H;
      const Window map(run.evidence, l, head, 0, kTokens, AttentionQuestion::kBeside);
      CHECK(map.map.heads == H);
      CHECK(layer.attention_heads == H);
      CHECK_THROWS_WITH(Window(run.evidence, l, H, 0, kTokens, AttentionQuestion::kBeside),
                        Catch::Matchers::StartsWith(fmt::format("there is no head {}", H)));
      const std::int64_t memory_tokens = run.model->plan().memory_token_count;
      std::int64_t seen_by_last = 0;
      for (std::int64_t t = 0; t < kTokens; ++t) {
        std::vector<double> weight(static_cast<std::size_t>(t + 1));
        double sum = 0;
        for (std::int64_t s = 0; s <= t; ++s) {
          if (map.at(t, s) == 0) continue;  // out of the window
          double product = 0;
          for (std::int64_t c = 0; c < d; ++c)
            product += double{q->values[static_cast<std::size_t>((t * H + head) * d + c)]} *
                       k->values[static_cast<std::size_t>((s * kv_heads + own) * d + c)];
          sum += weight[static_cast<std::size_t>(s)] = std::exp(product / std::sqrt(static_cast<double>(d)));
          seen_by_last += t == kTokens - 1;
        }
        CHECK((map.before(t) > 0) == (memory_tokens > 0));
        for (std::int64_t s = 0; s <= t; ++s)
          REQUIRE(map.at(t, s) == Approx(weight[static_cast<std::size_t>(s)] / sum * (1 - map.before(t))).margin(1e-5));
      }
      CHECK(seen_by_last > 1);
      if (memory_tokens == 0) check_sums(map, head, v.values, kv_heads, o.values, H);
    }
  }
  CHECK((mixers == std::set<std::string>{"falcon_h1", "hymba", "sse_swa", "zamba2_hybrid", "zamba_hybrid"}));
}

TEST_CASE("answers: levels of states are read token by token, each level by itself, and their decays are told") {
  SmallEvidence run(log_linear_config({{"n_groups", 2}}), kTokens);
  const std::int64_t H = 4, K = 6, V = 12, L = 15;
  const std::vector<float> dt = run.evidence.channel(1, "dt")->values, q = run.evidence.channel(1, "q")->values,
                           scale = run.evidence.channel(1, "level_scale")->values;
  std::vector<float> x = run.evidence.channel(1, "v")->values;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] /= dt[i / static_cast<std::size_t>(V)];
  const auto read = [&](std::int64_t level) {  // [T, H, V] λ_ℓ C S^ℓ
    std::vector<float> o;
    for (std::int64_t t = 0; t < kTokens; ++t) {
      const LayerState state = run.evidence.state(1, t);
      for (std::int64_t i = 0; i < H * V; ++i) {
        double sum = 0;
        for (std::int64_t r = 0; r < K; ++r)
          sum += double{q[static_cast<std::size_t>((t * 2 + i / V / 2) * K + r)]} * state.matrix(level, i / V)[r * V + i % V];
        o.push_back(static_cast<float>(sum * scale[static_cast<std::size_t>((t * H + i / V) * L + level)]));
      }
    }
    return o;
  };
  std::vector<float> all(x.size());
  for (std::int64_t level = 0; level < 7; ++level) {
    const std::vector<float> o = read(level);
    std::transform(o.begin(), o.end(), all.begin(), all.begin(), std::plus<>());
    for (std::int64_t head = 0; head < H; ++head) {
      const Window map(run.evidence, 1, head, 0, kTokens, level);
      for (std::int64_t t = 0; t < kTokens; ++t) {
        for (std::int64_t c = 0; c < V; ++c) {
          double sum = 0;
          for (std::int64_t s = 0; s <= t; ++s) sum += map.at(t, s) * x[static_cast<std::size_t>((s * H + head) * V + c)];
          REQUIRE(std::abs(sum - o[static_cast<std::size_t>((t * H + head) * V + c)]) < 1e-4);
        }
      }
    }
  }
  for (std::int64_t head = 0; head < H; ++head) {
    const std::vector<float> skips = skip_weights(1, head, {.H = H}, run.evidence);
    REQUIRE(std::ssize(skips) == kTokens);
    for (std::int64_t i = 0; i < kTokens * V; ++i) {
      const auto at = static_cast<std::size_t>((i / V * H + head) * V + i % V);
      all[at] += skips[static_cast<std::size_t>(i / V)] * x[at];
    }
  }
  for (std::int64_t head = 0; head < H; ++head) {
    const Window whole(run.evidence, 1, head, 0, kTokens), window(run.evidence, 1, head, kFrom, kTo);
    check_sums(whole, head, x, H, all, H);
    for (std::int64_t t = kFrom; t < kTo; ++t) {
      double before = 0;
      for (std::int64_t s = 0; s < kFrom; ++s) before += std::abs(whole.at(t, s));
      CHECK(window.before(t) == Approx(before).epsilon(1e-4));
    }
  }
  const Decay decay = answer(DecayQuestion{.layer = 1, .slot = 3, .from = 0, .to = kTokens}, run.evidence);
  CHECK(decay.channels == H);
  CHECK(decay.log_decay.front() == run.evidence.channel(1, "log_decay")->values.front());
  SmallEvidence same(s4_config("diag"), kTokens);
  CHECK_THROWS_WITH(Window(same.evidence, 1, 0, kFrom, kTo),
                    Catch::Matchers::ContainsSubstring("No single weight leads from a token to what this memory reads."));
}

TEST_CASE("answers: all slots together are their sum; in MoM weighed as the model weighs its memories") {
  for (const SmallModel& small : {SmallModel{"sse gla", sse_config("gla", {{"num_writer", 2}, {"num_reader", 2}})},
                                  {"sse gdn", sse_config("gdn")},
                                  {"mom", small_config("mom", {{"head_dim", 16}})}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    const std::int64_t slots = run.evidence.layer(0).slots();
    const Window all(run.evidence, 0, 0, kFrom, kTo);
    const auto routing = run.evidence.routing(0);
    std::vector<Window> each;
    for (std::int64_t slot = 0; slot < slots; ++slot) each.emplace_back(run.evidence, 0, 0, kFrom, kTo, slot);
    for (std::int64_t t = kFrom; t < kTo; ++t) {
      double chosen = 0;
      for (std::int64_t n = 0; n + 1 < slots; ++n) chosen += routing->selected_at(t, n) ? routing->gate_at(t, n) : 0;
      for (std::int64_t s = kFrom; s <= t; ++s) {
        double sum = each[0].at(t, s);
        for (std::int64_t n = 0; n + 1 < slots; ++n)
          sum += (small.name == "mom" ? routing->gate_at(t, n) / chosen : 1) * each[static_cast<std::size_t>(n + 1)].at(t, s);
        REQUIRE(std::abs(all.at(t, s) - sum) < 1e-6);
      }
    }
  }
}

TEST_CASE("answers: softmax layers show their weights, through windows and chosen blocks") {
  const json moba{{"layers", {1}},          {"num_heads", 4},       {"num_kv_heads", 2}, {"qk_norm", true},
                  {"window_size", nullptr}, {"moba_chunk_size", 8}, {"moba_topk", 3}};
  for (const SmallModel& small :
       {SmallModel{"plain, grouped", small_config("transformer", {{"num_kv_heads", 2}})},
        {"window", small_config("transformer", {{"window_size", 9}})},
        {"pattern",
         small_config("transformer", pattern("bigbird", {{"block_size", 4}, {"window_blocks", 2}, {"random_blocks", random_blocks()}}))},
        {"blocks", small_config("sse_swa_moba", {{"head_dim", 16}, {"attn", moba}})}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    Recording seen(run.model->backend());
    ModelState state = run.model->start();
    read_logits(*run.model, state, some_ids(kTokens), {.prompt_length = kTokens}, &seen);
    const std::vector<float>&v = seen.floats(1, "v"), &o = seen.floats(1, "readout");
    for (std::int64_t head = 0; head < 4; ++head) {
      const Window map(run.evidence, 1, head, 0, kTokens);
      CHECK(map.map.heads == 4);
      check_sums(map, head, v, std::ssize(v) * 4 / std::ssize(o), o, 4);
      const Window window(run.evidence, 1, head, kFrom, kTo);
      for (std::int64_t t = kFrom; t < kTo; ++t) {
        double sum = window.before(t);
        for (std::int64_t s = kFrom; s <= t; ++s) sum += window.at(t, s);
        CHECK(std::abs(sum - 1) < 1e-5);
        CHECK(std::abs(window.map.all[static_cast<std::size_t>(t - kFrom)] - 1) < 1e-5);
      }
    }
  }
}

TEST_CASE("answers: layers that choose tokens or blocks show the weights of what they read") {
  const json blocks{{"num_kv_heads", 2}, {"head_dim", 12}, {"block_size", 4}, {"block_counts", 4}, {"window_size", 7}};
  for (const auto& [small, heads, v_heads] : {std::tuple{SmallModel{"tokens", indexed_config()}, std::int64_t{2}, std::int64_t{2}},
                                              {SmallModel{"blocks", small_config("nsa", blocks)}, 4, 2}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    Recording seen(run.model->backend());
    ModelState state = run.model->start();
    read_logits(*run.model, state, some_ids(kTokens), {.prompt_length = kTokens}, &seen);
    for (std::int64_t head = 0; head < heads; ++head) {
      const Window whole(run.evidence, 1, head, 0, kTokens), window(run.evidence, 1, head, kFrom, kTo);
      check_sums(whole, head, seen.floats(1, "v"), v_heads, seen.floats(1, "readout"), heads);
      for (std::int64_t t = kFrom; t < kTo; ++t) {
        double before = 0;
        for (std::int64_t s = 0; s < kFrom; ++s) before += whole.at(t, s);
        CHECK(std::abs(window.before(t) - before) < 1e-5);
        for (std::int64_t s = kFrom; s <= t; ++s) CHECK(std::abs(window.at(t, s) - whole.at(t, s)) < 1e-6);
      }
    }
  }
}

TEST_CASE("answers: of an attention map some rows, whose columns stand for several tokens, are those of the whole map") {
  for (const SmallModel& small : {SmallModel{"sse gdn", sse_config("gdn")}, {"transformer", small_config("transformer")}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    const Window whole(run.evidence, 0, 1, 0, kTokens);
    const TokenSteps rows{kFrom, 4, 6}, columns{0, 4, 9};  // tokens 9, 13, … 29; 0 to 35
    const AttentionMap some = answer(AttentionQuestion{0, 1, rows, columns}, run.evidence);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      const std::int64_t t = rows.from + r * rows.step;
      double all = 0;
      for (std::int64_t s = 0; s <= t; ++s) all += std::abs(whole.at(t, s));
      CHECK(some.all[static_cast<std::size_t>(r)] == Approx(all));
      for (std::int64_t c = 0; c < columns.count; ++c) {
        double most = 0;
        for (std::int64_t s = columns.from + 4 * c; s < columns.from + 4 * c + 4; ++s)
          if (std::abs(whole.at(t, s)) > std::abs(most)) most = whole.at(t, s);
        CHECK(some.weight[static_cast<std::size_t>(r * columns.count + c)] == Approx(most));
      }
    }
  }
}

TEST_CASE("answers: no attention map where columns decay, of too many tokens, or of what does not exist") {
  SmallEvidence gsa(small_config("gsa", {{"num_slots", 12}}), kTokens);
  CHECK_THROWS_AS(memory_attention(gsa.evidence.traces(0)[0], 0, 0, {{0, 1, 5}, 0, 5}), std::invalid_argument);
  SmallEvidence gla(small_config("gla"), kTokens);
  const TokenSteps five{0, 1, 5};
  for (const AttentionQuestion& wrong : {AttentionQuestion{0, 0, {0, 1, 5}, {0, 1, kTokens + 1}},
                                         {0, 0, {0, 1, kTokens + 1}, {0, 1, kTokens}},
                                         {0, 0, {5, 1, 0}, five},
                                         {0, 0, {3, 1, 3}, five},
                                         {0, 0, {0, 0, 2}, five},
                                         {0, 4, five, five},
                                         {0, 0, five, five, 1}})
    CHECK_THROWS_AS(answer(wrong, gla.evidence), Error);
}

}  // namespace statescope::test::answers_attention_test
