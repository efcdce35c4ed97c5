// The observables on what models really do: identities that hold for any weights, or for weights that make the answer known (spec §16).
#include <algorithm>

#include "engine/analysis/decay_analysis.h"
#include "engine/analysis/head_gate_analysis.h"
#include "engine/analysis/routing_analysis.h"
#include "engine/analysis/write_analysis.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::observables_test {

using Catch::Matchers::WithinAbs;

namespace {

constexpr std::int64_t kTokens = 40;

/// Reads the tokens in one call; every channel is kept.
Recording recorded(Model& model) {
  Recording seen(model.backend());
  ModelState state = model.start();
  read_logits(model, state, some_ids(kTokens), {.prompt_length = kTokens}, &seen);
  return seen;
}

}  // namespace

TEST_CASE("observables: a router without weights routes evenly") {
  for (const char* type : {"gla", "gdn"}) {
    const json config = sse_config(type, {{"num_writer", 2}, {"num_reader", 3}});
    const auto model = Editable(config).fill("e_proj.weight", 0).model();
    Recording seen = recorded(*model);
    const RoutedTokens writers{seen.floats(0, "partition_gate"), seen.integers(0, "partition_selected"), 4, 3, 2};
    CHECK(writers.tokens() == kTokens);
    CHECK_THAT(balance(writers).loss, WithinAbs(1, 1e-6));
    for (const TokenRouting& token : token_routing(writers)) {
      CHECK_THAT(token.entropy, WithinAbs(1, 1e-6));
      CHECK_THAT(token.selected_mass, WithinAbs(0.5, 1e-6));
      CHECK(token.margin == 0);
    }
  }
  const auto mom = Editable(small_config("mom", {{"head_dim", 16}})).fill("attn.gate.weight", 0).model();
  Recording seen = recorded(*mom);
  // Both layers' tokens one after another, as MoM's loss takes them.
  std::vector<float> gate = seen.floats(0, "partition_gate");
  std::vector<std::int32_t> selected = seen.integers(0, "partition_selected");
  gate.insert(gate.end(), seen.floats(1, "partition_gate").begin(), seen.floats(1, "partition_gate").end());
  selected.insert(selected.end(), seen.integers(1, "partition_selected").begin(), seen.integers(1, "partition_selected").end());
  CHECK_THAT(mom_loss({gate, selected, 4, 2, 2}), WithinAbs(2, 1e-6));
}

TEST_CASE("observables: head gates without weights are 1 / H") {
  for (const char* family : {"retnet", "gla"}) {
    const auto model = Editable(small_config(family, sla())).fill("sla_q_gate.weight", 0).fill("sla_k_gate.weight", 0).model();
    Recording seen = recorded(*model);
    const std::vector<float>& q = seen.floats(1, "head_gate_q");
    for (const HeadGate& gate : head_gates(q, 4)) CHECK_THAT(gate.entropy, WithinAbs(1, 1e-6));
    for (const float flow : own_information_flow(q, seen.floats(1, "head_gate_k"), 4)) CHECK_THAT(flow, WithinAbs(0.25, 1e-6));
  }
}

TEST_CASE("observables: row-sparse keys go to topk rows") {
  const auto model = Editable(small_config("gla", {{"expand_k", 1.0}, {"row_sparse", {{"topk", 4}}}})).model();
  Recording seen = recorded(*model);
  const std::vector<float>&k = seen.floats(0, "k"), log_decay = seen.floats(0, "log_decay");
  const std::int64_t H = 4, K = 16;
  REQUIRE(k.size() == static_cast<std::size_t>(kTokens * H * K));
  const RowBalance rows = row_balance(k, H, K, 4);
  for (std::int64_t h = 0; h < H; ++h) {
    double chosen = 0;
    for (std::int64_t r = 0; r < K; ++r) chosen += rows.frequency[static_cast<std::size_t>(h * K + r)];
    CHECK_THAT(chosen, WithinAbs(4, 1e-9));
  }
  for (const WriteSpread& write : write_spread(k, K, 0)) CHECK(write.ratio == 0.25);
  // A row that is never chosen never decays (spec §5).
  const std::vector<std::int32_t> every = all_tokens(kTokens);
  const std::vector<double> half = half_life({log_decay, every, H * K, 0, H * K, kTokens});
  for (std::size_t i = 0; i < half.size(); ++i) CHECK(std::isinf(half[i]) == (rows.frequency[i] == 0));
}

TEST_CASE("observables: a state changes at the tokens that are routed to it and at no others") {
  for (const SmallModel& small : {SmallModel{"sse gla", sse_config("gla")}, {"sse gdn", sse_config("gdn")}}) {
    INFO(small.name);
    const auto model = Editable(small.config).model();
    Recording seen(model->backend());
    ModelState state = model->start();
    const std::vector<std::int32_t> ids = some_ids(kTokens);
    const Tensor& memory = state.layers[0].memory[0];
    const std::int64_t slots = memory.shape[0], H = memory.shape[1], K = memory.shape[2], V = memory.shape[3];
    std::vector<float> before = host_copy(model->backend(), memory);
    std::vector<std::vector<double>> changes;
    for (std::size_t t = 0; t < kTokens; ++t) {
      read_logits(*model, state, std::span(ids).subspan(t, 1), {.prompt_length = kTokens}, &seen);
      const std::vector<float> after = host_copy(model->backend(), memory);
      changes.push_back(update_norms(after, before, K, V));
      before = after;
    }
    const RoutedTokens routed{seen.floats(0, "partition_gate"), seen.integers(0, "partition_selected"), slots - 1, 1, 1};
    for (std::int64_t n = 0; n < slots - 1; ++n) {
      const std::vector<std::int32_t> written = tokens_of(routed, n);
      for (std::int64_t t = 0; t < kTokens; ++t) {
        const double change = changes[static_cast<std::size_t>(t)][static_cast<std::size_t>((n + 1) * H)];
        CHECK((change > 0) == (age_of_last_write(written, t) == 0));
      }
    }
    for (const auto& change : changes) CHECK(change[0] > 0);  // the shared slot
  }
}

}  // namespace statescope::test::observables_test
