// What goes to another machine comes back as it was, and what is damaged on the way is refused.
#include "engine/remote/wire.h"

#include <bit>
#include <set>

#include "engine/answers/answers.h"
#include "engine/run/not_finite.h"
#include "tests/catch.h"
#include "tests/engine/analysis/evidence_of.h"
#include "tests/engine/remote/wire_cases.h"

namespace statescope::test::wire_test {
namespace {

using namespace statescope::remote;
using statescope::Failure;  // tests of sessions have another

constexpr std::int64_t kTokens = 14;

/// Every question of a layer, by the names of its fields.
template <class Q>
Q about(Evidence& evidence, std::int64_t layer) {
  Q q;
  if constexpr (requires { q.layer; }) q.layer = layer;
  if constexpr (requires { q.token; }) q.token = kTokens - 2;
  if constexpr (requires { q.to; }) q.from = 1, q.to = kTokens;
  if constexpr (requires { q.rows; }) q.rows = {2, 1, 5}, q.columns = {0, 2, 7};
  if constexpr (requires { q.ids; }) q.ids = {3, 5};
  if constexpr (requires { q.lambda; }) q.lambda = 2;
  if constexpr (requires { q.clustered; }) q.clustered = true;
  if constexpr (requires { q.names; }) q.names = {"residual_norm", "state_norm"}, q.since = 2;
  if constexpr (std::is_same_v<Q, NeedleQuestion>) q = {2, 5, kTokens - 1};
  if constexpr (std::is_same_v<Q, NeedleGridQuestion>) q = {2, 3, {100, 200}, {0, 50}};
  if constexpr (requires { q.other; }) q.other = std::make_shared<LayerState>(evidence.state(layer, 3));
  return q;
}

/// `see` of all of them.
template <class See>
void every_question(Evidence& evidence, std::int64_t layer, const See& see) {
  [&]<class... Q>(std::type_identity<std::variant<Q...>>) {
    (see(Question(about<Q>(evidence, layer))), ...);
  }(std::type_identity<Question>());
}

/// As a server finds it out.
Finding found(const Question& question, Evidence& evidence) {
  try {
    return {find_out(question, evidence), {}, 1};
  } catch (const Error& error) {
    return {nullptr, error.what(), 0.5};
  }
}

/// A second telling of an answer: where it is compared with what was packed, nothing packs twice the same mistake.
std::vector<float> matrix_of(const Question& question, const Finding& finding) {
  if (!finding.answer) return {};
  if (std::holds_alternative<SimilarityQuestion>(question)) {
    const Pyramid& cosine = static_cast<const Similarity*>(finding.answer.get())->cosine;
    return {static_cast<float>(cosine.rows()), static_cast<float>(cosine.finite().count), cosine.finite().least, cosine.finite().most};
  }
  if (std::holds_alternative<StateQuestion>(question)) return static_cast<const HeadState*>(finding.answer.get())->values;
  return {};
}

}  // namespace

TEST_CASE("wire: every question and what comes of it, in every layer of every small model") {
  std::set<std::size_t> answered;
  for (const SmallModel& small : small_models()) {
    SmallEvidence run(small.config, kTokens);
    CHECK(pack(unpack<RunInfo>(pack(run.evidence.info()))) == pack(run.evidence.info()));
    for (std::int64_t l = 0; l < run.model->layers(); ++l) {
      every_question(run.evidence, l, [&](const Question& question) {
        INFO(small.name << ", layer " << l << ", question " << question.index());
        const std::string asked = pack(question);
        const Question same = unpack<Question>(asked);
        CHECK(pack(same) == asked);
        if (!std::holds_alternative<CrossSimilarityQuestion>(question)) CHECK(same == question);

        const Finding finding = found(question, run.evidence);
        const std::string told = pack_finding(question, finding);
        const Finding heard = unpack_finding(same, told);
        CHECK(pack_finding(question, heard) == told);
        CHECK(heard.refused == finding.refused);
        CHECK(heard.progress == finding.progress);
        CHECK(bytes_of(question, heard) == bytes_of(question, finding));
        CHECK(matrix_of(question, heard) == matrix_of(question, finding));
        if (heard.answer) answered.insert(question.index());
      });
    }
  }
  // Those of branches and grids are below.
  CHECK(answered.size() == std::variant_size_v<Question> - 3);
}

TEST_CASE("wire: answers about branches and grids") {
  const auto check = [](const auto& question, const auto& answer) {
    const Finding finding{std::make_shared<std::decay_t<decltype(answer)>>(answer), "", 0.25};
    const std::string bytes = pack_finding(question, finding);
    CHECK(pack_finding(question, unpack_finding(question, bytes)) == bytes);
    check_damage(bytes, [&](std::string_view part) { return unpack_finding(question, part); });
    return std::static_pointer_cast<const std::decay_t<decltype(answer)>>(unpack_finding(question, bytes).answer);
  };
  CHECK(check(BranchPredictionsQuestion{}, BranchPredictions{3, {1, 2}, {4, 5}, 6, 7})->parted == 7);
  CHECK(check(BranchStatesQuestion{9}, BranchStates{{1}, {2}, {3}})->difference == std::vector<double>{3});
  const NeedleGrid grid{"words", "prose", true, {{1, 2, {{3, 4}}, ""}, {0, 0, {}, "too short"}}};
  CHECK(check(NeedleGridQuestion{1, 2, {3}, {4}}, grid)->cells[1].impossible == "too short");
}

TEST_CASE("wire: runs, branches, prompts, interventions, places and failures") {
  check_whole(run_info());
  CHECK(unpack<RunInfo>(pack(run_info())).model.layers[0].device == "cuda:1");

  PromptInput prompt{"text", {{SpanKind::question, 1, 3}}, {4, -5}, "expected", 6, true, {{"user", "said", {{SpanKind::needle, 0, 2}}}}};
  check_whole(prompt);
  CHECK(unpack<PromptInput>(pack(prompt)).turns[0].spans[0].end == 2);
  CHECK(unpack<PromptInput>(pack(prompt)).generate == 6);
  CHECK(!unpack<PromptInput>(pack(PromptInput{})).generate);

  const auto run = std::make_shared<const RunInfo>(run_info());
  const BranchTree tree{prompt, "/a/checkpoint", "", {run, nullptr}, 1, -1};
  check_whole(tree);
  const BranchTree same = unpack<BranchTree>(pack(tree));
  CHECK(same.checkpoint == tree.checkpoint);
  CHECK(same.runs[0]->tokens[1].text == "w2");
  CHECK(same.runs[1] == nullptr);

  std::vector<Intervention> interventions;
  for (const char* text : {"zero row 3 of head 1 of partition 2 of layer 0 at 30", "scale decay of layer 1 by 0.5 from 30 until 40",
                           "route layer 1 to partition 2,3 from 30"})
    interventions.push_back(parse_intervention(text));
  interventions.push_back({ImportState{2, 5}, 4, {}, {}});
  interventions.push_back({ReplaceToken{7}, 4, {}, {}});
  interventions.push_back({ChangeTopK{1, {}}, 4, 6, 0});
  interventions.push_back({SharpenGates{2.5f}, 4, {}, {}});
  check_whole(interventions);
  CHECK(unpack<std::vector<Intervention>>(pack(interventions)) == interventions);

  check_whole(RunPlace{1, 2, 3, "views"});
  check_whole(std::optional(NotFiniteWeight{"model.norm.weight", {0, 3}, 1.5F}));
  CHECK_FALSE(unpack<std::optional<NotFiniteWeight>>(pack(std::optional<NotFiniteWeight>())));
  for (const Failure& failure : {Failure(Error("it failed")), Failure(Cancelled()), Failure(UnknownWordError("no such word"))}) {
    check_whole(failure);
    CHECK(unpack<Failure>(pack(failure)).kind == failure.kind);
    CHECK(unpack<Failure>(pack(failure)).message == failure.message);
  }
}

TEST_CASE("wire: a snapshot comes to the bit, without its run, its routing and what lies on the device") {
  Snapshot snapshot;
  snapshot.run = std::make_shared<RunInfo>();
  snapshot.routing = std::make_shared<Routing>();
  snapshot.layer = 1, snapshot.head = 2, snapshot.token = 3;
  snapshot.state = {2, 4, 1, 2, {std::bit_cast<float>(0x7fa12345u), -0.0f, INFINITY, 1e-45f}};
  snapshot.before = {0, 4, 1, 2, {}};
  snapshot.predictions = {{5, "five", 0.5f}};
  snapshot.accuracy = kReplayed;
  check_whole(snapshot);
  const Snapshot same = unpack<Snapshot>(pack(snapshot));
  CHECK(!same.run);
  CHECK(!same.routing);
  CHECK(!same.state.on_device);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(std::bit_cast<std::uint32_t>(same.state.values[i]) == std::bit_cast<std::uint32_t>(snapshot.state.values[i]));
  CHECK(same.predictions[0].text == "five");
  CHECK(same.accuracy == kReplayed);
  check_whole(Routing{2, {0.25f, 0.75f}, {0, 1}});
}

TEST_CASE("wire: what does not fit together is refused by name") {
  const auto refusal = [](const auto& read) {
    try {
      read();
    } catch (const WireError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  CHECK(refusal([] { unpack<RunPlace>("\1"); }) == "a message ends too early: 1 bytes where 8 are needed");
  CHECK(refusal([] { unpack<RunPlace>(pack(RunPlace{}) + "xy"); }) == "a message goes on for 2 bytes behind its end");
  const std::string beyond{std::variant_size_v<Question>, '\0', '\0', '\0'};  // the number of a question that there is not
  CHECK(refusal([&] { unpack<Question>(beyond); }).starts_with("a message cannot be read: "));
  CHECK(refusal([] { unpack<Question>(std::string(4, '\xff')); }).starts_with("a message cannot be read: "));
  CHECK(refusal([] { unpack<Failure>("\3"); }) == "a message chooses 3 of 0 … 2");
  CHECK(refusal([] { unpack_finding(ModelMapQuestion{}, std::string(16, '\0') + '\2'); }) == "a message says 2 where 0 or 1 is meant");
  CHECK(refusal([] { unpack<std::vector<Intervention>>(std::string(7, '\0') + '\1'); }) ==
        "a message has a list of 72057594037927936 elements, for which 0 bytes are too few");
  Snapshot snapshot;
  snapshot.state = {2, 1, 3, 4, {1}};
  CHECK(refusal([&] { pack(snapshot); }) == "a message has a matrix of 1 numbers where 24 belong");
}

}  // namespace statescope::test::wire_test
