// Provenance: what tokens wrote, followed back from states and read-outs, adds up to them, in every family.
#include "engine/analysis/memory_reading.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "engine/run/branches.h"
#include "tests/catch.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"

namespace statescope::test::memory_trace_test {
namespace {

constexpr std::int64_t kTokens = 37;

struct Traced {
  std::shared_ptr<const Checkpoint> checkpoint;
  std::shared_ptr<Model> model;
  Run run;
  MemoryTracer tracer;

  explicit Traced(const json& config)
      : checkpoint(random_checkpoint(Config(config), 5)),
        model(Model::load(checkpoint, make_cpu_backend(1))),
        run(model),
        tracer(checkpoint, 1) {
    run.read(some_ids(kTokens), kTokens);
  }
  std::vector<MemoryTrace> layer(std::int64_t l) {
    return tracer.trace(l, run.residual(l, 0, kTokens), kTokens, nullptr, {}, run.companion(l, 0, kTokens));
  }
};

/// One a token, for all of what it wrote.
bool has_coefficients(const MemoryTrace& trace) {
  return !trace.of_cells() && (trace.decay_axis == DecayAxis::rows || trace.decay_width <= 1);
}

/// Σ_j c_j v_j[column] of each column, whose coefficients are its own
template <class Coefficients>
std::vector<float> sum_of_columns(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, const Coefficients& of_column) {
  std::vector<float> result;
  for (std::int64_t c = 0; c < trace.V; ++c) {
    double total = 0;
    const std::vector<double> coefficient = of_column(c);
    for (std::int64_t j = 0; j < std::ssize(coefficient); ++j)
      total += coefficient[static_cast<std::size_t>(j)] *
               trace.slots[static_cast<std::size_t>(slot)].v[static_cast<std::size_t>((j * trace.H + head) * trace.V + c)];
    result.push_back(static_cast<float>(total));
  }
  return result;
}

/// Σ_j c_j v_j
std::vector<float> sum(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, const Contributions& c) {
  std::vector<double> total(static_cast<std::size_t>(trace.V));
  for (std::size_t j = 0; j < c.token.size(); ++j) {
    const float* v = trace.slots[static_cast<std::size_t>(slot)].v.data() + (static_cast<std::int64_t>(j) * trace.H + head) * trace.V;
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += c.coefficient[j] * v[i];
  }
  return {total.begin(), total.end()};
}

/// Every slot and head of a layer's first memory.
template <class Check>
void for_each_head(const MemoryTrace& trace, const Check& check) {
  for (std::int64_t slot = 0; slot < static_cast<std::int64_t>(trace.slots.size()); ++slot) {
    for (std::int64_t head = 0; head < trace.H; ++head) {
      INFO("slot " << slot << ", head " << head);
      check(slot, head);
    }
  }
}

double largest(std::span<const float> x) {
  double most = 0;
  for (const float number : x) most = std::max(most, std::abs(static_cast<double>(number)));
  return most;
}

bool near(std::span<const float> found, std::span<const float> expected) {
  return largest(expected) < 1e-12 ? largest(found) < 1e-9 : relative_error(found, expected) < 1e-4;
}

/// Of a head's state, as §16.9 measures a layer's reading: a row whose keys are nearly 0 is what rounding leaves of it. Of RWKV-7 with
/// wider values, layer 1, token 0, head 0: k_0 = −3e-4 out of a sum of numbers near 1, and 4e-4 of the row is 3e-8 of the state.
bool near_in(std::span<const float> state, std::span<const float> found, std::span<const float> expected) {
  double squares = 0, error = 0;
  for (const double x : state) squares += x * x;
  for (std::size_t i = 0; i < found.size(); ++i) error += std::pow(double{found[i]} - expected[i], 2);
  return std::sqrt(error) <= std::max(1e-9, 1e-5 * std::sqrt(squares));
}

/// Row `row` of a slot's state after `token`, from what tokens wrote.
std::vector<float> row_of_tokens(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t row, std::int64_t token) {
  if (!trace.of_cells()) return sum(trace, slot, head, row_provenance(trace, slot, head, row, token));
  const std::int64_t n = trace.slots[static_cast<std::size_t>(slot)].until(token);
  return sum_of_columns(trace, slot, head, [&](std::int64_t c) { return cell_provenance(trace, slot, head, row, c, n); });
}

/// What `token` read of a slot, from what tokens wrote.
std::vector<float> read_of_tokens(const MemoryTrace& trace, std::int64_t slot, std::int64_t head, std::int64_t token) {
  if (!trace.of_cells()) return sum(trace, slot, head, implicit_attention(trace, slot, head, token));
  return sum_of_columns(trace, slot, head, [&](std::int64_t c) { return channel_attention(trace, slot, head, c, token); });
}

}  // namespace

TEST_CASE("provenance: the signed list of tokens behind a row of a state adds up to the row, in every family") {
  int layers = 0;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    Traced traced(small.config);
    for (std::int64_t l = 0; l < traced.model->layers(); ++l) {
      const std::vector<MemoryTrace> memories = traced.layer(l);
      // What is written to levels moves between them, and a state space keeps no rows of single tokens.
      const std::string& mixer = traced.model->plan().layers[static_cast<std::size_t>(l)].mixer;
      const bool told = mixer != "log_linear_mamba2" && mixer != "s4";
      CHECK(memories.size() == (told ? traced.model->layout(l).memory.size() : 0));
      if (memories.empty() || !has_coefficients(memories[0])) continue;
      const MemoryTrace& trace = memories[0];
      ++layers;
      for (const std::int64_t token : {std::int64_t{0}, kTokens / 2, kTokens - 1}) {
        const LayerState state = traced.run.state(l, token);
        for_each_head(trace, [&](std::int64_t slot, std::int64_t head) {
          for (const std::int64_t row : {std::int64_t{0}, trace.K - 1}) {
            const Contributions c = row_provenance(trace, slot, head, row, token);
            const std::span<const float> expected(state.matrix(slot, head) + row * trace.V, static_cast<std::size_t>(trace.V));
            const std::span<const float> S(state.matrix(slot, head), static_cast<std::size_t>(trace.K * trace.V));
            CHECK(near_in(S, sum(trace, slot, head, c), expected));
          }
        });
      }
    }
  }
  CHECK(layers > 20);
}

TEST_CASE("provenance: of a selective scan the tokens behind a cell add up to it, and those behind a channel to what it reads") {
  for (const SmallModel& small : small_models()) {
    if (small.name.find("mamba") == small.name.npos || small.name.find("mamba2") != small.name.npos) continue;
    INFO(small.name);
    Traced traced(small.config);
    const std::vector<MemoryTrace> memories = traced.layer(1);
    REQUIRE(memories.size() == 1);
    const MemoryTrace& trace = memories[0];
    REQUIRE(trace.of_cells());
    const LayerState state = traced.run.state(1, kTokens - 1);
    for (std::int64_t row = 0; row < trace.K; ++row) {
      const std::span<const float> expected(state.matrix(0, 0) + row * trace.V, static_cast<std::size_t>(trace.V));
      CHECK(near(row_of_tokens(trace, 0, 0, row, kTokens - 1), expected));
    }
    CHECK(near(read_of_tokens(trace, 0, 0, kTokens - 1), std::span(trace.slots[0].o).last(static_cast<std::size_t>(trace.V))));
    CHECK_THROWS_AS(row_provenance(trace, 0, 0, 0, 3), std::invalid_argument);
    // What is left of some tokens, of all of them, and of their shares.
    const Survival all = survival(trace, 0, 0, 0, kTokens);
    const std::span S(state.matrix(0, 0), static_cast<std::size_t>(trace.K * trace.V));
    CHECK(all.kept.back() == Approx(std::sqrt(std::inner_product(S.begin(), S.end(), S.begin(), 0.0))).epsilon(1e-4));
    const double early = read_share(trace, 0, 0, kTokens - 1, 0, 12), late = read_share(trace, 0, 0, kTokens - 1, 12, kTokens);
    CHECK(std::abs(early + late - 1) < 1e-9);
  }
}

TEST_CASE("provenance: what memory tokens have written is that of none of the tokens") {
  Traced traced(hymba_config());
  for (std::int64_t l = 0; l < traced.model->layers(); ++l) {
    INFO("layer " << l);
    const std::vector<MemoryTrace> memories = traced.layer(l);
    REQUIRE(memories.size() == 1);
    const MemoryTrace& trace = memories[0];
    CHECK(trace.slots[0].token.front() == kMemoryTokens);
    CHECK(trace.slots[0].reading(kMemoryTokens) == -1);
    for (const std::int64_t token : {std::int64_t{0}, kTokens - 1}) {
      const LayerState state = traced.run.state(l, token);
      for (const std::int64_t row : {std::int64_t{0}, trace.K - 1}) {
        const std::span<const float> expected(state.matrix(0, 0) + row * trace.V, static_cast<std::size_t>(trace.V));
        CHECK(near(row_of_tokens(trace, 0, 0, row, token), expected));
      }
    }
    CHECK(std::abs(read_share(trace, 0, 0, kTokens - 1, kMemoryTokens, kTokens) - 1) < 1e-9);
  }
}

TEST_CASE("memory trace: who hears all channels of a layer hears what lies behind the memory too; the trace stays the same") {
  class Heard final : public ChannelSink {
   public:
    void channel(std::string_view name, ConstTensor values) override { rows[std::string(name)] += values.rows(); }
    bool wants_all() const override { return true; }
    std::map<std::string, std::int64_t> rows;
  } heard;
  Traced traced(small_config("gla", sla()));
  const std::vector<MemoryTrace> all = traced.tracer.trace(1, traced.run.residual(1, 0, kTokens), kTokens, &heard), plain = traced.layer(1);
  for (const char* name : {"q", "head_gate_q", "output_gate", "read_gate_effective", "readout", "mixer_out"}) {
    INFO(name);
    CHECK(heard.rows[name] == kTokens);
  }
  REQUIRE(all.size() == 1);
  CHECK(all[0].slots[0].q == plain[0].slots[0].q);
  CHECK(all[0].slots[0].o == plain[0].slots[0].o);
}

TEST_CASE("implicit attention: over the tokens of a slot it gives what was read there, and shares add up to 1") {
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    Traced traced(small.config);
    for (std::int64_t l = 0; l < traced.model->layers(); ++l) {
      const std::vector<MemoryTrace> memories = traced.layer(l);
      if (memories.empty() || !has_coefficients(memories[0])) continue;
      const MemoryTrace& trace = memories[0];
      for_each_head(trace, [&](std::int64_t slot, std::int64_t head) {
        const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
        for (std::int64_t j = 0; j < visits.count(); j += 9) {
          const std::int64_t token = visits.token[static_cast<std::size_t>(j)];
          const Contributions c = implicit_attention(trace, slot, head, token);
          CHECK(c.token.back() == token);
          const std::int64_t read = visits.reading(token);  // of a token's several steps the last
          const std::span<const float> o(visits.o.data() + (read * trace.H + head) * trace.V, static_cast<std::size_t>(trace.V));
          CHECK(near(sum(trace, slot, head, c), o));
          if (largest(o) == 0) continue;
          const double early = read_share(trace, slot, head, token, 0, token / 2);
          const double late = read_share(trace, slot, head, token, token / 2, token + 1);
          CHECK(std::abs(early + late - 1) < 1e-9);
        }
      });
    }
  }
}

TEST_CASE("implicit attention: Σ_s A_ts v_s is what was read, to 1e-5 of a layer's reading, in every family (spec §16.9)") {
  std::set<std::string> families;
  for (const SmallModel& small : small_models()) {
    INFO(small.name);
    Traced traced(small.config);
    for (std::int64_t l = 0; l < traced.model->layers(); ++l) {
      for (const MemoryTrace& trace : traced.layer(l)) {
        if (!has_coefficients(trace)) continue;
        std::vector<float> found, expected;
        for_each_head(trace, [&](std::int64_t slot, std::int64_t head) {
          const SlotVisits& visits = trace.slots[static_cast<std::size_t>(slot)];
          for (std::int64_t j = 0; j < visits.count(); ++j) {
            if (visits.reading(visits.token[static_cast<std::size_t>(j)]) != j) continue;
            const std::vector<float> o =
                sum(trace, slot, head, implicit_attention(trace, slot, head, visits.token[static_cast<std::size_t>(j)]));
            found.insert(found.end(), o.begin(), o.end());
            const auto first = visits.o.begin() + (j * trace.H + head) * trace.V;
            expected.insert(expected.end(), first, first + trace.V);
          }
        });
        CHECK(relative_error(found, expected) < 1e-5);
        families.insert(small.config["model_type"]);
      }
    }
  }
  for (const char* family : {"gla", "gated_deltanet", "mamba2", "gsa", "mom", "sse", "sse_swa_moba", "linear_attn", "retnet", "delta_net"})
    CHECK(families.contains(family));
}

namespace {

const json& config_of(const std::string& name) {
  static const std::vector<SmallModel> all = small_models();
  return std::ranges::find(all, name, &SmallModel::name)->config;
}

}  // namespace

TEST_CASE("provenance: in a branch too, after an intervention of every kind, the tokens behind a state add up to it") {
  const char *sse = "sse gla n4k2, conv", *gdn = "sse gdn n4k2, post_l2, conv";
  const std::vector<std::pair<const char*, const char*>> cases{{sse, "zero row 3 of head 1 of partition 2 of layer 0 at 12"},
                                                               {sse, "scale shared by 0.5 at 12"},
                                                               {gdn, "zero partition 1 at 12"},
                                                               {"retnet", "scale row 2 by 3 at 12"},
                                                               {"mamba2", "zero head 1 at 12"},
                                                               {"delta_net", "scale row 1 by 0.25 at 12"},
                                                               {"linear_attn hedgehog", "zero state at 12"},
                                                               {"gla", "scale state by -2 at 12"},
                                                               {"gla", "freeze decay from 12 until 20"},
                                                               {"gated_deltanet", "scale decay by 3 from 12"},
                                                               {"mom", "topk 1 from 12"},
                                                               {sse, "topk 3 from 12 until 25"},
                                                               {gdn, "route to partition 4,1 from 12"},
                                                               {"gla sla", "sharpen gates by 8 from 12"},
                                                               {"gated_deltanet sla", "sharpen gates by 0 from 12"},
                                                               {"gla", "replace token by 5 at 12"},
                                                               {sse, "import run 1 at 12"},
                                                               {"gated_deltanet", "import run 1 token 20 at 12"},
                                                               {"gsa", "import run 1 at 12"},
                                                               {"mamba", "scale row 2 by 3 at 12"},
                                                               {"mamba", "scale decay by 3 from 12"},
                                                               {"falcon_mamba", "import run 1 at 12"}};
  for (const auto& [name, text] : cases) {
    INFO(name << ": " << text);
    const auto checkpoint = random_checkpoint(Config(config_of(name)), 5);
    const std::shared_ptr<Model> model = Model::load(checkpoint, make_cpu_backend(1));
    const auto read = [&](std::int64_t tokens) {
      auto run = std::make_shared<Run>(model);
      const std::vector<std::int32_t> ids = some_ids(kTokens + 8);
      run->read(std::span(ids).last(static_cast<std::size_t>(tokens)), tokens);
      return run;
    };
    Branches tree(read(kTokens));
    tree.add(read(kTokens - 2));
    tree.intervene({parse_intervention(text)});
    // A branch of the branch keeps what was changed before, and changes more.
    tree.intervene({parse_intervention(std::string(name) == "gsa" ? "scale state by 2 at 27" : "scale row 0 by 2 at 27")});
    MemoryTracer tracer(checkpoint, 1);
    for (const std::int64_t branch : {std::int64_t{2}, std::int64_t{3}}) {
      Run& run = *tree[branch].run;
      for (std::int64_t l = 0; l < model->layers(); ++l) {
        const std::vector<MemoryTrace> memories = tracer.trace(l, run.residual(l, 0, kTokens), kTokens, nullptr, run.course(l, kTokens));
        CHECK(memories.size() == model->layout(l).memory.size());
        const auto found = std::ranges::find_if(memories, [](const auto& trace) { return has_coefficients(trace) || trace.of_cells(); });
        if (found == memories.end()) continue;
        const MemoryTrace& trace = *found;
        for (const std::int64_t token : {11, 12, 13, 26, 27, 36}) {
          const LayerState state = run.state(l, token);
          bool adds_up = true;
          for_each_head(trace, [&](std::int64_t slot, std::int64_t head) {
            for (const std::int64_t row : {0, 1, 2, 3}) {
              const std::span<const float> expected(state.matrix(slot, head) + row * trace.V, static_cast<std::size_t>(trace.V));
              adds_up = adds_up && near(row_of_tokens(trace, slot, head, row, token), expected);
            }
          });
          INFO("branch " << branch << ", layer " << l << ", after token " << token);
          CHECK(adds_up);
        }
        // What was read is read by the token itself, not by the intervention behind it.
        for_each_head(trace, [&](std::int64_t slot, std::int64_t head) {
          const std::int64_t j = trace.slots[static_cast<std::size_t>(slot)].reading(12);
          if (j < 0) return;
          const std::span<const float> o(
              &trace.slots[static_cast<std::size_t>(slot)].o[static_cast<std::size_t>((j * trace.H + head) * trace.V)],
              static_cast<std::size_t>(trace.V));
          CHECK(near(read_of_tokens(trace, slot, head, 12), o));
        });
      }
    }
  }
}

TEST_CASE("implicit attention: a token that did not visit a slot read nothing there") {
  Traced traced(sse_config("gla"));
  const MemoryTrace trace = traced.layer(0).at(0);
  std::int64_t absent = 0;
  for (std::int64_t token = 0; token < kTokens; ++token) {
    for (std::int64_t slot = 1; slot < static_cast<std::int64_t>(trace.slots.size()); ++slot) {
      const std::vector<std::int32_t>& visits = trace.slots[static_cast<std::size_t>(slot)].token;
      const bool visited = std::find(visits.begin(), visits.end(), token) != visits.end();
      CHECK(implicit_attention(trace, slot, 0, token).token.empty() == !visited);
      absent += visited ? 0 : 1;
    }
    CHECK(trace.slots[0].token[static_cast<std::size_t>(token)] == token);
  }
  CHECK(absent == 3 * kTokens);  // four partitions, one chosen
}

namespace {

/// One head of 2 rows and 1 column: key e_0 or e_1, decay ½ on all but the first visit.
MemoryTrace by_hand(MemoryRule rule) {
  MemoryTrace trace{.rule = rule, .H = 1, .K = 2, .V = 1, .decay_width = 1, .slots = std::vector<SlotVisits>(1)};
  SlotVisits& visits = trace.slots[0];
  visits.token = {2, 3, 7};
  visits.k = {1, 0, 0, 1, 1, 0};
  visits.q = {1, 0, 0, 1, 1, 1};
  visits.v = {8, 4, 2};
  const float half = std::log(0.5F);
  visits.log_decay = {0, half, half};
  visits.beta = rule == MemoryRule::delta ? std::vector<float>{1, 1, 0.5F} : std::vector<float>{};
  return trace;
}

}  // namespace

TEST_CASE("survival: what decay and the delta rule take, by hand") {
  // After the visits S = (8, 0), (4, 4), then decay to (2, 2); the last adds 2 to row 0, or β (2 − 2) = 0 under the delta rule.
  for (const MemoryRule rule : {MemoryRule::outer_product, MemoryRule::delta}) {
    const Survival s = survival(by_hand(rule), 0, 0, 0, 3);
    const bool delta = rule == MemoryRule::delta;
    CHECK(s.token == std::vector<std::int32_t>{2, 3, 7});
    const std::vector<std::vector<double>> expected{{8, 4, delta ? 1.0 : 2.0}, {0, 4, 2}, {0, 0, delta ? 1.0 : 0.0}, {8, 0, 0}};
    const std::vector<const std::vector<double>*> found{&s.kept, &s.decayed, &s.erased, &s.written};
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (std::size_t j = 0; j < 3; ++j) CHECK(std::abs((*found[i])[j] - expected[i][j]) < 1e-6);
    }
  }
  CHECK(survival(by_hand(MemoryRule::delta), 0, 0, 8, 9).token.empty());
  // A state that was scaled up has grown by its decay, and not by the rule.
  MemoryTrace grown = by_hand(MemoryRule::outer_product);
  grown.slots[0].log_decay[1] = std::log(3.0F);
  const Survival larger = survival(grown, 0, 0, 0, 3);
  CHECK((larger.decayed[1] == Approx(-16) && larger.erased[1] == 0 && larger.kept[1] == Approx(24)));
}

TEST_CASE("survival: what it kept at the end is what the needle's tokens contribute to the state") {
  for (const char* type : {"gla", "gdn"}) {
    Traced traced(sse_config(type));
    const MemoryTrace trace = traced.layer(1).at(0);
    for_each_head(trace, [&](std::int64_t slot, std::int64_t head) {
      const Survival s = survival(trace, slot, head, 5, 15);
      if (s.kept.empty()) return;
      double square = 0;
      for (std::int64_t row = 0; row < trace.K; ++row) {
        Contributions c = row_provenance(trace, slot, head, row, kTokens);
        for (std::size_t j = 0; j < c.token.size(); ++j) {
          if (c.token[j] < 5 || c.token[j] >= 15) c.coefficient[j] = 0;
        }
        for (const float x : sum(trace, slot, head, c)) square += static_cast<double>(x) * x;
      }
      CHECK(std::abs(s.kept.back() - std::sqrt(square)) <= 1e-5 * (1e-9 + std::sqrt(square)));
      for (std::size_t j = 1; j < s.kept.size(); ++j)
        CHECK(std::abs(s.kept[j - 1] - s.decayed[j] - s.erased[j] + s.written[j] - s.kept[j]) < 1e-9);
    });
  }
}

TEST_CASE("delta steps: prediction, error, erase and write by hand") {
  const std::vector<DeltaStep> steps = delta_steps(by_hand(MemoryRule::delta), 0, 0);
  REQUIRE(steps.size() == 3);
  CHECK((steps[0].prediction == 0 && steps[0].error == 8 && steps[0].cosine == 0 && steps[0].along_key == 0));
  // Before the last: S̄ = (2, 2), π = 2 = v.
  const DeltaStep& last = steps[2];
  CHECK(last.token == 7);
  CHECK(std::abs(last.prediction - 2) < 1e-6);
  CHECK(std::abs(last.error) < 1e-6);
  CHECK(std::abs(last.cosine - 1) < 1e-6);
  CHECK(std::abs(last.erase - 1) < 1e-6);
  CHECK(std::abs(last.write - 1) < 1e-6);
  CHECK(std::abs(last.update) < 1e-6);
  CHECK(std::abs(last.along_key - 0.25) < 1e-6);
  CHECK_THROWS_AS(delta_steps(by_hand(MemoryRule::outer_product), 0, 0), std::invalid_argument);
}

}  // namespace statescope::test::memory_trace_test
