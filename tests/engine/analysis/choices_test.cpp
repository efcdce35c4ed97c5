// What layers that choose attend to, as the question has it, against the channels and the weights of attention.
#include <algorithm>
#include <cmath>

#include "engine/answers/answers.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"

namespace statescope::test::choices_test {
namespace {

constexpr std::int64_t kTokens = 37;

/// No token has a weight that its choices do not allow, and every choice has one.
void check_against_attention(const json& config, std::int64_t layer, std::int64_t head) {
  SmallEvidence run(config, kTokens);
  const Choices all = answer(ChoicesQuestion{layer, head, 0, kTokens}, run.evidence);
  REQUIRE(std::ssize(all.begin) == kTokens + 1);
  const AttentionMap map = answer(AttentionQuestion{layer, head, {0, 1, kTokens}, {0, 1, kTokens}, -1}, run.evidence);
  for (std::int64_t t = 0; t < kTokens; ++t) {
    const auto first = all.chosen.begin() + all.begin[static_cast<std::size_t>(t)],
               last = all.chosen.begin() + all.begin[static_cast<std::size_t>(t + 1)];
    CHECK(std::is_sorted(first, last));
    for (std::int64_t s = 0; s <= t; ++s) {
      const bool chosen = std::find(first, last, static_cast<std::int32_t>(s / all.size)) != last;
      CAPTURE(t, s);
      CHECK((map.weight[static_cast<std::size_t>(t * kTokens + s)] > 0) == chosen);
    }
  }
}

}  // namespace

TEST_CASE("answers: what MoBA's and the indexer's tokens choose is what they have weights of") {
  const json moba = small_config("moba", {{"num_kv_heads", 2}, {"qk_norm", true}, {"moba_chunk_size", 8}, {"moba_topk", 2}});
  check_against_attention(moba, 0, 1);
  check_against_attention(moba, 1, 3);
  check_against_attention(indexed_config({{"mlp_layer_types", {"sparse", "dense"}}, {"n_group", 3}, {"topk_group", 1}}), 1, 0);
}

TEST_CASE("answers: NSA's choices are those of the head of keys, with the first block, the token's own and the one before") {
  SmallEvidence run(
      small_config("nsa", {{"num_kv_heads", 2}, {"head_dim", 12}, {"block_size", 4}, {"block_counts", 4}, {"window_size", 7}}), kTokens);
  const Choices last = answer(ChoicesQuestion{0, 3, 0, kTokens}, run.evidence),
                other = answer(ChoicesQuestion{0, 2, 0, kTokens}, run.evidence);
  CHECK(last.heads == 4);
  CHECK(last.chosen == other.chosen);  // both are of key head 1
  CHECK(last.size == 4);
  CHECK(last.score.size() == last.chosen.size());
  const auto* selected = run.evidence.channel(0, "nsa_selected");
  const auto begin = static_cast<std::size_t>(last.begin[kTokens - 1]);
  const std::vector<std::int32_t> of_last(last.chosen.begin() + static_cast<std::ptrdiff_t>(begin), last.chosen.end());
  REQUIRE(of_last.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(static_cast<float>(of_last[i]) == selected->values[((kTokens - 1) * 2 + 1) * 4 + i]);
  CHECK(of_last.front() == 0);
  CHECK(of_last.back() == (kTokens - 1) / 4);
  CHECK(of_last[2] == (kTokens - 1) / 4 - 1);
}

TEST_CASE("observables: what a token chooses, by which score, how much of what there is; and NSA's gates") {
  const json nsa = small_config("nsa", {{"num_kv_heads", 2}, {"head_dim", 12}, {"block_size", 4}, {"block_counts", 4}, {"window_size", 7}});
  const json moba = small_config("moba", {{"num_kv_heads", 2}, {"qk_norm", true}, {"moba_chunk_size", 8}, {"moba_topk", 2}});
  for (const json& config : {nsa, moba, indexed_config()}) {
    SmallEvidence run(config, kTokens);
    const Observables all = answer(ObservablesQuestion{1, 29, 31, {"choice", "choice_score", "choice_share", "branch_gate"}}, run.evidence);
    REQUIRE(all.quantities.size() == (config == nsa ? 4 : 3));
    const Observables::Quantity &chosen = all.quantities[0], &score = all.quantities[1], &share = all.quantities[2];
    const std::int64_t heads = chosen.shape[0], most = chosen.shape[1], head = heads - 1;
    const Choices choices = answer(ChoicesQuestion{1, head, 29, 31}, run.evidence);
    CHECK(heads == choices.heads);
    for (std::int64_t i = 0; i < choices.begin[2] - choices.begin[1]; ++i) {
      const auto at = static_cast<std::size_t>((heads + head) * most + i), j = static_cast<std::size_t>(choices.begin[1] + i);
      CHECK(chosen.values[at] == static_cast<float>(choices.chosen[j]));
      CHECK((choices.score.empty() ? std::isnan(score.values[at]) : score.values[at] == choices.score[j]));
    }
    const auto count = static_cast<float>(choices.begin[2] - choices.begin[1]);
    CHECK(share.values[static_cast<std::size_t>(heads + head)] == count / static_cast<float>(30 / choices.size + 1));
    if (config == nsa) CHECK(all.quantities[3].values[0] == run.evidence.channel(1, "nsa_gates")->values[29 * 4 * 3]);
  }
}

TEST_CASE("answers: layers that choose nothing have no choices; windows are checked") {
  SmallEvidence plain(small_config("transformer"), kTokens), gla(small_config("gla"), kTokens);
  CHECK(answer(ChoicesQuestion{0, 0, 0, kTokens}, plain.evidence).heads == 0);
  CHECK(answer(ChoicesQuestion{0, 0, 0, kTokens}, gla.evidence).heads == 0);
  CHECK_THROWS_WITH(answer(ChoicesQuestion{0, 0, 4, 40}, plain.evidence), "no window of tokens 4 to 40");
  CHECK_THROWS_WITH(answer(ChoicesQuestion{0, 4, 0, kTokens}, plain.evidence), "there is no head 4 (heads are 0 to 3)");
}

}  // namespace statescope::test::choices_test
