// Implicit attention of a run: Σ_s A_{t,s} v_s is what token t read, in every family (spec §12.8, §16.9).
#include <algorithm>
#include <cmath>

#include "engine/analysis/answers.h"
#include "engine/analysis/attention_map.h"
#include "engine/analysis/memory_reading.h"
#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/evidence_of.h"

namespace statescope::test {
namespace {

constexpr std::int64_t kTokens = 37, kFrom = 9, kTo = 31;

double at(const AttentionMap& map, std::int64_t t, std::int64_t s) {
  return map.weight[static_cast<std::size_t>((t - map.from) * (map.to - map.from) + s - map.from)];
}

/// One slot's window is what single read-outs say, each swept on its own.
void check_window(Evidence& evidence, std::int64_t layer, const MemoryTrace& trace, std::int64_t slot, std::int64_t head) {
  const AttentionMap map = answer(AttentionQuestion{layer, head, kFrom, kTo, slot}, evidence);
  for (std::int64_t t = kFrom; t < kTo; ++t) {
    const Contributions expected = implicit_attention(trace, slot, head, t);
    std::vector<double> row(kTokens);
    double most = 0, before = 0;
    for (std::size_t i = 0; i < expected.token.size(); ++i) {
      row[static_cast<std::size_t>(expected.token[i])] = expected.coefficient[i];
      most = std::max(most, std::abs(expected.coefficient[i]));
      if (expected.token[i] < kFrom) before += std::abs(expected.coefficient[i]);
    }
    for (std::int64_t s = kFrom; s < kTo; ++s) REQUIRE(std::abs(at(map, t, s) - row[static_cast<std::size_t>(s)]) <= 1e-6 * most);
    REQUIRE(std::abs(map.before[static_cast<std::size_t>(t - kFrom)] - before) <= 1e-6 * (before + most));
  }
}

bool normalised(const Evidence& evidence, std::int64_t layer, std::size_t memories) {
  return evidence.layer(layer).mixer == "linear_attn" && memories == 2;
}

/// Token by token Σ_s A_{t,s} v_s of [T, H, V] values against `o` of the same shape.
void check_sums(const AttentionMap& map, std::int64_t head, const std::vector<float>& v, std::int64_t v_heads, const std::vector<float>& o,
                std::int64_t heads) {
  const std::int64_t V = std::ssize(v) / (kTokens * v_heads);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    std::vector<float> sum(static_cast<std::size_t>(V));
    for (std::int64_t s = 0; s <= t; ++s) {
      for (std::int64_t c = 0; c < V; ++c)
        sum[static_cast<std::size_t>(c)] +=
            static_cast<float>(at(map, t, s)) * v[static_cast<std::size_t>((s * v_heads + head * v_heads / heads) * V + c)];
    }
    REQUIRE(relative_error(sum, {o.data() + (t * heads + head) * V, static_cast<std::size_t>(V)}) < 1e-4);
  }
}

}  // namespace

TEST_CASE("answers: a window of the attention map is the read-outs of its tokens, in every slot of every family") {
  int layers = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    for (std::int64_t l = 0; l < run.model->layers(); ++l) {
      const MemoryTrace* trace = run.evidence.trace(l);
      if (!trace || normalised(run.evidence, l, run.evidence.traces(l).size())) continue;
      ++layers;
      for (std::int64_t slot = 0; slot < std::ssize(trace->slots); ++slot) check_window(run.evidence, l, *trace, slot, trace->H - 1);
    }
  }
  CHECK(layers > 20);
}

TEST_CASE("answers: the whole attention map times the values is what was read") {
  for (const SmallModel& small : {SmallModel{"gla", small_config("gla")},
                                  {"gated_deltanet", small_config("gated_deltanet", {{"head_dim", 16}, {"num_v_heads", 8}})},
                                  {"gsa", small_config("gsa", {{"num_slots", 12}})},
                                  {"linear_attn, normalised", small_config("linear_attn", {{"norm_feature_map", true}})},
                                  {"mamba2", small_config("mamba2", {{"head_dim", 16}, {"state_size", 12}, {"n_groups", 2}})}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    const MemoryTrace& trace = *run.evidence.trace(1);
    const std::vector<MemoryTrace>& all = run.evidence.traces(1);
    std::vector<float> o = trace.slots[0].o;
    if (normalised(run.evidence, 1, all.size())) {
      for (std::size_t i = 0; i < o.size(); ++i) o[i] /= all[1].slots[0].o[i / static_cast<std::size_t>(trace.V)];
    }
    for (std::int64_t head = 0; head < trace.H; ++head)
      check_sums(answer(AttentionQuestion{1, head, 0, kTokens}, run.evidence), head, trace.slots[0].v, trace.H, o, trace.H);
  }
}

TEST_CASE("answers: all slots together are their sum; in MoM weighed as the model weighs its memories") {
  for (const SmallModel& small : {SmallModel{"sse gla", sse_config("gla", {{"num_writer", 2}, {"num_reader", 2}})},
                                  {"sse gdn", sse_config("gdn")},
                                  {"mom", small_config("mom", {{"head_dim", 16}})}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    const std::int64_t slots = run.evidence.layer(0).slots();
    const AttentionMap all = answer(AttentionQuestion{0, 0, kFrom, kTo}, run.evidence);
    const auto routing = run.evidence.routing(0);
    std::vector<AttentionMap> each;
    for (std::int64_t slot = 0; slot < slots; ++slot) each.push_back(answer(AttentionQuestion{0, 0, kFrom, kTo, slot}, run.evidence));
    for (std::int64_t t = kFrom; t < kTo; ++t) {
      double chosen = 0;
      for (std::int64_t n = 0; n + 1 < slots; ++n) chosen += routing->selected_at(t, n) ? routing->gate_at(t, n) : 0;
      for (std::int64_t s = kFrom; s <= t; ++s) {
        double sum = at(each[0], t, s);
        for (std::int64_t n = 0; n + 1 < slots; ++n)
          sum += (small.name == "mom" ? routing->gate_at(t, n) / chosen : 1) * at(each[static_cast<std::size_t>(n + 1)], t, s);
        REQUIRE(std::abs(at(all, t, s) - sum) < 1e-6);
      }
    }
  }
}

TEST_CASE("answers: softmax layers show their weights, through windows and chosen blocks") {
  const json moba{{"layers", {1}},          {"num_heads", 4},       {"num_kv_heads", 2}, {"qk_norm", true},
                  {"window_size", nullptr}, {"moba_chunk_size", 8}, {"moba_topk", 3}};
  for (const SmallModel& small : {SmallModel{"plain, grouped", small_config("transformer", {{"num_kv_heads", 2}})},
                                  {"window", small_config("transformer", {{"window_size", 9}})},
                                  {"blocks", small_config("gla", {{"attn", moba}})}}) {
    INFO(small.name);
    SmallEvidence run(small.config, kTokens);
    Recording seen(run.model->backend());
    ModelState state = run.model->start();
    read_logits(*run.model, state, some_ids(kTokens), {.prompt_length = kTokens}, &seen);
    const std::vector<float>&v = seen.floats(1, "v"), &o = seen.floats(1, "readout");
    for (std::int64_t head = 0; head < 4; ++head) {
      const AttentionMap map = answer(AttentionQuestion{1, head, 0, kTokens}, run.evidence);
      CHECK(map.heads == 4);
      check_sums(map, head, v, std::ssize(v) * 4 / std::ssize(o), o, 4);
      const AttentionMap window = answer(AttentionQuestion{1, head, kFrom, kTo}, run.evidence);
      for (std::int64_t t = kFrom; t < kTo; ++t) {
        double sum = window.before[static_cast<std::size_t>(t - kFrom)];
        for (std::int64_t s = kFrom; s <= t; ++s) sum += at(window, t, s);
        CHECK(std::abs(sum - 1) < 1e-5);
      }
    }
  }
}

TEST_CASE("answers: no attention map where columns decay, of too many tokens, or of what does not exist") {
  SmallEvidence gsa(small_config("gsa", {{"num_slots", 12}}), kTokens);
  CHECK_THROWS_AS(memory_attention(gsa.evidence.traces(0)[0], 0, 0, 0, 5), std::invalid_argument);
  SmallEvidence gla(small_config("gla"), kTokens);
  CHECK_THROWS_AS(answer(AttentionQuestion{0, 0, 0, kTokens + 1}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(AttentionQuestion{0, 0, 5, 5}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(AttentionQuestion{0, 4, 0, 5}, gla.evidence), Error);
  CHECK_THROWS_AS(answer(AttentionQuestion{0, 0, 0, 5, 1}, gla.evidence), Error);
}

}  // namespace statescope::test
