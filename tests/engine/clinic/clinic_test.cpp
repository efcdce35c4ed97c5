// Every illness is told by its own sign, an illness explains its layer, and what is no evidence says nothing.
#include "engine/clinic/clinic.h"

#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>

#include "tests/catch.h"

namespace statescope::test::clinic_test {
namespace {

StateSimilarity head_of_rank(double rank) {
  StateSimilarity head;
  head.stacked.rank = rank;
  head.partitions.emplace_back().rank = rank;
  return head;
}

/// A layer with nothing wrong: four heads, four partitions, one of which a token is written to.
LayerReport healthy_layer() {
  LayerReport layer{.mixer = "sse", .memory = "decayed outer product", .residual_norm = 3, .heads = {}, .slots = {}, .routing = {}};
  layer.heads = {head_of_rank(4), head_of_rank(1.1), head_of_rank(6), head_of_rank(3)};
  for (const char* name : {"shared", "1", "2", "3", "4"}) layer.slots.push_back({.name = name, .norm = 5});
  layer.routing.emplace().balance.load = {1.2, 0.6, 1, 1.2};
  layer.routing->balance.frequency = {0.3, 0.15, 0.25, 0.3};
  layer.read_effect = 0.1;
  layer.heads_read_effect = {0.02, 0.004, 0.05, 0.03};
  layer.heads_norm = {4, 5, 6, 5};
  layer.heads_likeness = {0.3, 0.2, 0.3, 0.25};
  layer.heads_same_reads = {0.8, 0.5, 0.8, 0.6};
  layer.likest_heads = 0.3;
  layer.likest = {0, 2};
  layer.longest_half_life = 1e5;
  layer.shortest_half_life = 3;
  layer.longest_median = 300;
  layer.shortest_median = 40;
  layer.writing = layer.reading = Competition{.entropy_of_mean = 0.7, .mean_entropy = 0.4, .winner = 1};
  for (std::int64_t eighth = 1; eighth <= 8; ++eighth)
    layer.moments.push_back({.tokens = 256 * eighth, .norm = std::sqrt(static_cast<double>(eighth))});
  return layer;
}

SequenceReport healthy() {
  SequenceReport report;
  report.tokens = 2048;
  report.predicting = {.nll = 2.5, .unigram = 4.4, .asked = 0.2, .entropy = 2, .uniform = 6.4};
  report.layers = {healthy_layer(), healthy_layer(), healthy_layer()};
  return report;
}

constexpr ReadOn kOwn{.trained_length = 1024, .own_nll = {}, .own_task = true};

/// What is found where layer 1 is changed.
std::vector<Illness> found(const std::function<void(LayerReport&)>& change) {
  SequenceReport report = healthy();
  change(report.layers[1]);
  std::vector<Illness> illnesses;
  for (const Diagnosis& diagnosis : judge({&report, 1}, kOwn).diagnoses) {
    CHECK(diagnosis.layers == std::vector<std::int64_t>{1});
    CHECK(diagnosis.evidence.front() == std::pair<std::string, double>{"layer", 1});
    CHECK(diagnosis.sentence.ends_with('.'));
    illnesses.push_back(diagnosis.illness);
  }
  return illnesses;
}

using Found = std::vector<Illness>;

}  // namespace

TEST_CASE("clinic: every illness is told by its own sign, and health by none") {
  CHECK(found([](LayerReport&) {}).empty());
  CHECK(found([](LayerReport& l) {
          for (SlotReport& slot : l.slots) slot.norm = 0;
          l.read_effect = 0;
          l.longest_median = 0.1;
        }) == Found{Illness::memory_unwritten});
  CHECK(found([](LayerReport& l) { l.longest_median = 2, l.longest_half_life = 50; }) == Found{Illness::forgets_at_once});
  CHECK(found([](LayerReport& l) { l.longest_median = 2, l.slots[0].receptive_field = 20; }) == Found{Illness::forgets_at_once});
  CHECK(found([](LayerReport& l) { l.longest_median = 2, l.slots[0].receptive_field = 40; }).empty());  // some channels remember
  CHECK(found([](LayerReport& l) { l.longest_median = 2, l.slots[0].receptive_field = 20, l.mixer = "hgrn2"; }).empty());  // its design
  CHECK(found([](LayerReport& l) { l.longest_median = 2, l.slots[0].receptive_field = 2, l.mixer = "hgrn2"; }) ==
        Found{Illness::forgets_at_once});
  CHECK(found([](LayerReport& l) { l.read_effect = 1e-5, l.likest_heads = 1; }) == Found{Illness::memory_unread});
  CHECK(found([](LayerReport& l) { l.heads_read_effect[2] = 1e-6; }) == Found{Illness::memory_unread});
  CHECK(found([](LayerReport& l) { l.heads_read_effect[2] = NAN; }).empty());  // it was not tried
  CHECK(found([](LayerReport& l) { l.heads_norm[3] = 0, l.heads_read_effect[3] = NAN; }) == Found{Illness::memory_unwritten});
  CHECK(found([](LayerReport& l) { l.heads_norm[3] = 1e-3, l.heads_read_effect[3] = 0; }) == Found{Illness::memory_unwritten});
  CHECK(found([](LayerReport& l) { l.heads_norm[3] = 1e-3; }).empty());  // small, but its read is scaled up
  CHECK(found([](LayerReport& l) { l.routing->balance.load = {3.7, 0.1, 0.1, 0.1}; }) == Found{Illness::routing_collapse});
  CHECK(found([](LayerReport& l) { l.routing->balance.load = {1.3, 1.35, 0.05, 1.3}; }) == Found{Illness::dead_partition});
  CHECK(found([](LayerReport& l) { l.writing->entropy_of_mean = 0.05; }) == Found{Illness::head_gate_collapse});
  CHECK(found([](LayerReport& l) { l.reading->mean_entropy = 0.001; }) == Found{Illness::head_gate_collapse});
  CHECK(found([](LayerReport& l) { l.reading->mean_entropy = 1; }) == Found{Illness::head_gate_collapse});
  CHECK(found([](LayerReport& l) { l.likest_heads = 0.96; }) == Found{Illness::duplicate_heads});
  CHECK(found([](LayerReport& l) { l.heads_same_reads[1] = l.heads_same_reads[2] = 0.999; }) == Found{Illness::duplicate_heads});
  CHECK(found([](LayerReport& l) { l.likest_heads = l.writing->mean_entropy = 1; }) == Found{Illness::duplicate_heads});
  CHECK(found([](LayerReport& l) { l.heads = {head_of_rank(1.2), head_of_rank(1.25)}; }) == Found{Illness::rank_collapse});
  CHECK(found([](LayerReport& l) { l.heads[2] = head_of_rank(1.001); }) == Found{Illness::rank_collapse});
  CHECK(found([](LayerReport& l) {
          l.heads = {head_of_rank(1.2), head_of_rank(1.2)}, l.likest_heads = 1;
        }) == Found{Illness::duplicate_heads});
  CHECK(found([](LayerReport& l) { l.shortest_half_life = 1e6; }) == Found{Illness::never_forgets});
  CHECK(found([](LayerReport& l) { l.shortest_median = 1e15; }) == Found{Illness::never_forgets});
  CHECK(found([](LayerReport& l) { l.shortest_half_life = 1e6, l.memory = "gated delta rule"; }).empty());
  CHECK(found([](LayerReport& l) { l.moments.back().norm = 10; }) == Found{Illness::length_drift});
  CHECK(found([](LayerReport& l) { l.moments.back() = {.tokens = 4096, .norm = 10}; }).empty());  // too far to be held against it
}

TEST_CASE("clinic: two of four partitions chosen by every token is a collapse where two are chosen, and none where four are") {
  CHECK(found([](LayerReport& l) {
          l.routing->balance.load = {2, 2, 0, 0};
          l.routing->balance.frequency = {1, 1, 0, 0};
        }) == Found{Illness::routing_collapse});
  CHECK(found([](LayerReport& l) { l.routing->balance.frequency = {1, 1, 1, 1}; }).empty());
}

TEST_CASE("clinic: predictions as flat as chance are of an untrained model, whatever else is seen") {
  SequenceReport report = healthy();
  report.predicting = {.nll = 6.37, .unigram = 4.4, .asked = 6.3, .entropy = 6.35, .uniform = 6.4};
  report.layers[0].read_effect = 0;
  const Judgement judgement = judge({&report, 1}, kOwn);
  REQUIRE(judgement.diagnoses.size() == 1);
  CHECK(judgement.diagnoses[0].illness == Illness::untrained);
  // Weights at random and large: sure of what is wrong.
  report.predicting = {.nll = 42, .unigram = 4.4, .asked = 34, .entropy = 0.4, .uniform = 6.4};
  CHECK(judge({&report, 1}, kOwn).diagnoses[0].illness == Illness::untrained);
  // Associative recall: all but what is asked for is noise.
  report = healthy();
  report.predicting = {.nll = 12, .unigram = 4.1, .asked = 0.5, .entropy = 3, .uniform = 6.4};
  CHECK(judge({&report, 1}, kOwn).diagnoses.empty());
  report.predicting.asked = 9;
  CHECK(judge({&report, 1}, kOwn).diagnoses[0].illness == Illness::untrained);
}

TEST_CASE("clinic: what a model was never made for, or is too short, is no evidence") {
  SequenceReport strange = healthy();
  strange.predicting.nll = 12;
  strange.layers[0].read_effect = 0;
  const ReadOn known{.trained_length = 1024, .own_nll = 2.5}, unknown{.trained_length = 0, .own_nll = {}};
  CHECK(judge({&strange, 1}, known).cannot_say.starts_with("the model was not made for such a prompt: 12.00 nat a token"));
  CHECK(judge({&strange, 1}, unknown).cannot_say.find("chance would reach 6.40") != std::string::npos);
  CHECK(judge({&strange, 1}, known).diagnoses.empty());
  const ReadOn recall{.trained_length = 1024, .own_nll = 14.8};
  CHECK(judge({&strange, 1}, recall).cannot_say.find("only what is asked for") != std::string::npos);
  SequenceReport brief = healthy();
  brief.tokens = 9;
  CHECK(judge({&brief, 1}, kOwn).cannot_say.find("9 tokens") != std::string::npos);
  CHECK_FALSE(judge({}, kOwn).cannot_say.empty());
  SequenceReport transformer = healthy();
  for (LayerReport& layer : transformer.layers) layer.heads.clear();
  CHECK(judge({&transformer, 1}, kOwn).cannot_say.find("no memory to judge") != std::string::npos);
  transformer.predicting = {.nll = 6.37, .unigram = 4.4, .asked = 6.3, .entropy = 6.35, .uniform = 6.4};
  CHECK(judge({&transformer, 1}, kOwn).diagnoses[0].illness == Illness::untrained);
}

TEST_CASE("clinic: what is far longer than the training is no evidence") {
  std::vector<SequenceReport> reports{healthy(), healthy()};
  reports[1].tokens = 40960;
  reports[1].layers[1].routing->balance.load = {3.7, 0.1, 0.1, 0.1};
  CHECK(judge(reports, kOwn).diagnoses.empty());
  CHECK(judge(reports, kOwn).cannot_say.empty());
  CHECK(judge(std::span(reports).subspan(1), kOwn).cannot_say ==
        "all that was read is more than 2.2 times as long as the 1024 tokens that the model was trained on");
  CHECK_FALSE(judge(reports, {.own_nll = {}, .own_task = true}).diagnoses.empty());  // of unknown length
}

TEST_CASE("clinic: the worst layer speaks, all of them are named, and JSON says so") {
  SequenceReport report = healthy();
  report.layers[0].likest_heads = 0.995;
  report.layers[2].likest_heads = 0.999;
  report.layers[2].likest = {1, 3};
  const Judgement judgement = judge({&report, 1}, kOwn);
  REQUIRE(judgement.diagnoses.size() == 1);
  CHECK(judgement.diagnoses[0].layers == std::vector<std::int64_t>{0, 2});
  CHECK(judgement.diagnoses[0].heads == std::vector<std::int64_t>{1, 3});
  CHECK(judgement.diagnoses[0].heads_by_layer == std::vector<std::vector<std::int64_t>>{{0, 2}, {1, 3}});
  const nlohmann::json json = to_json(judgement.diagnoses[0]);
  CHECK((json["id"] == "duplicate_heads" && json["status"] == "ill" && json["evidence"]["layer"] == 2));
  CHECK(json["sentence"] == "Heads 1 and 3 hold the same: |cosine| of their states 0.9990. This is layer 2, the worst.");
  report.layers[2].heads_likeness = {0.2, 0.99, 0.999, 0.999};
  CHECK(judge({&report, 1}, kOwn).diagnoses[0].heads == std::vector<std::int64_t>{1, 2, 3});
}

TEST_CASE("clinic: illnesses have their own ids, in the order of their numbers") {
  std::set<std::string_view> ids;
  for (const IllnessRow& row : illnesses()) {
    CHECK(&row_of(row.illness) == &row);
    ids.insert(row.id);
  }
  CHECK(ids.size() == 12);
}

}  // namespace statescope::test::clinic_test
