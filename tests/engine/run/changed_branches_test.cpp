// What an intervention makes of the future: that of a fresh reading with the same change, made by hand or by definition.
#include <cmath>

#include "engine/analysis/memory_trace.h"
#include "engine/error.h"
#include "engine/run/branches.h"
#include "tests/catch.h"
#include "tests/engine/run/branch_cases.h"

namespace statescope::test::branch_cases {
namespace {

/// A change as this test makes it, by hand: rules from kAt on, numbers of the states after it.
struct ByHand {
  std::vector<Rules> rules;
  std::function<void(ModelState&)> edit;
};

/// What a fresh reading of the same tokens shows, which stops at each token from `from` on.
std::vector<Shown> read_by_hand(Model& model, std::span<const std::int32_t> ids, const ByHand& hand, std::int64_t from) {
  std::vector<Shown> all;
  ModelState state = model.start();
  std::int64_t read = 0;
  const auto read_to = [&](std::int64_t end) {
    if (end == read) return std::vector<float>{};
    const bool ruled = read >= kAt && !hand.rules.empty();
    const std::vector<float> logits =
        read_logits(model, state, ids.subspan(static_cast<std::size_t>(read), static_cast<std::size_t>(end - read)),
                    {.prompt_length = kPrompt, .rules = ruled ? std::span<const Rules>(hand.rules) : std::span<const Rules>()});
    read = end;
    return std::vector<float>(logits.end() - model.vocab(), logits.end());
  };
  read_to(kAt);
  for (std::int64_t token = kAt; token < std::ssize(ids); ++token) {
    Shown now{{}, {}, read_to(token + 1)};
    if (token == kAt && hand.edit) hand.edit(state);
    for (const MixerState& layer : state.layers) {
      now.states.push_back(layer.memory.empty() ? std::vector<float>{} : host_copy(model.backend(), layer.memory[0]));
      now.others.push_back(other_memories(model.backend(), layer));
    }
    if (token >= from) all.push_back(std::move(now));
  }
  return all;
}

ByHand edited(std::int64_t layer, std::int64_t slot, std::int64_t head, std::int64_t row, float factor) {
  return {{}, [=](ModelState& state) { scale_by_hand(state.layers[static_cast<std::size_t>(layer)], slot, head, row, factor); }};
}
ByHand ruled(std::int64_t layer, const Rules& rules) {
  ByHand hand{std::vector<Rules>(2), {}};
  hand.rules[static_cast<std::size_t>(layer)] = rules;
  return hand;
}

struct Case {
  std::string model, text;
  ByHand hand;
};

/// Every kind on the families where it has a meaning. All models have two layers.
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* model : {"linear_attn hedgehog", "linear_attn elu, norms", "retnet", "gla", "gla row-sparse", "delta_net",
                            "gated_deltanet", "gsa", "mamba2", "qwen3_next", "gla hybrid", "sse gla", "sse gdn", "mom"}) {
    all.push_back({model, "zero row 2 of head 1 of layer 0 at 21", edited(0, -1, 1, 2, 0)});
    all.push_back({model, "scale head 0 of layer 0 by -3 at 21", edited(0, -1, 0, -1, -3)});
    all.push_back({model, "zero state of layer 0 at 21", edited(0, -1, -1, -1, 0)});
  }
  for (const char* model : {"sse gla n4k2, conv", "sse gdn n4k2, post_l2, conv", "sse v1", "sse swa moba gdn", "mom, one projection"}) {
    all.push_back({model, "zero partition 2 of layer 0 at 21", edited(0, 2, -1, -1, 0)});
    all.push_back({model, "scale shared of layer 0 by 0.25 at 21", edited(0, 0, -1, -1, 0.25F)});
    all.push_back({model, "scale row 1 of head 0 of partition 4 of layer 0 by 2 at 21", edited(0, 4, 0, 1, 2)});
    all.push_back({model, "topk 1 of layer 0 from 21", ruled(0, {.writers = 1, .readers = 1})});
    all.push_back({model, "topk 4 of layer 0 from 21", ruled(0, {.writers = 4, .readers = 4})});
    all.push_back({model, "route layer 0 to partition 3,1 from 21", ruled(0, {.route = {2, 0}})});
  }
  all.push_back({"mom, no shared memory", "zero partition 2 of layer 0 at 21", edited(0, 1, -1, -1, 0)});
  for (const char* model : {"sse gla", "sse gdn grouped, neg, w2 r3", "sse v1 joint"}) {
    all.push_back({model, "writers 3 of layer 1 from 21", ruled(1, {.writers = 3})});
    all.push_back({model, "readers 4 of layer 0 from 21", ruled(0, {.readers = 4})});
  }
  for (const char* model :
       {"retnet", "gla", "gla row-sparse", "gated_deltanet", "gsa", "mamba2", "qwen3_next", "sse gla", "sse gdn", "mom"}) {
    all.push_back({model, "freeze decay of layer 0 from 21", ruled(0, {.decay = 0})});
    all.push_back({model, "scale decay of layer 0 by 3 from 21", ruled(0, {.decay = 3})});
  }
  for (const char* model : {"retnet sla", "gla sla x", "gla sla concat, phi", "gated_deltanet sla"}) {
    all.push_back({model, "sharpen gates of layer 0 by 8 from 21", ruled(0, {.sharpness = 8})});
    all.push_back({model, "sharpen gates of layer 1 by 0 from 21", ruled(1, {.sharpness = 0})});
  }
  for (const char* model : {"transformer", "gla hybrid", "sse gla", "mamba2"}) all.push_back({model, "replace token by 5 at 21", {}});
  return all;
}

}  // namespace

TEST_CASE("branches: every kind leaves the past to the bit, and makes the future of a fresh reading with the same change") {
  for (const Case& one : cases()) {
    INFO(one.model << ": " << one.text);
    const std::shared_ptr<Model> model = load(config_of(one.model));
    const std::shared_ptr<Run> root = read_run(model);
    const std::vector<Shown> before = shown(*root, 0, kTokens);
    Branches tree(root);
    const Intervention intervention = parse_intervention(one.text);
    REQUIRE(tree.intervene({intervention}) == 1);
    Run& branch = *tree[1].run;
    const std::int64_t from = kAt + (edits_state(intervention) ? 1 : 0);
    CHECK(branch.first() == from);
    CHECK((branch.tokens() == kTokens && branch.prompt_length() == kPrompt));

    // The past, and what the run was.
    CHECK(shown(branch, 0, kAt) == std::vector<Shown>(before.begin(), before.begin() + kAt));
    // The future.
    const std::vector<Shown> expected = read_by_hand(*model, branch.ids(), one.hand, kAt);
    bool agree = true, changed = false;
    for (std::int64_t token : {45, 21, 30, 22, 31, 32, 39, 40, 33}) {
      const Shown now = shown(branch, token);
      const auto [left, right] = std::pair(branch.states_around(0, token).first, branch.states_around(0, token).second);
      agree = agree && near(now, expected[static_cast<std::size_t>(token - kAt)]);
      agree = agree && near(right.values, now.states[0]) && (token == 0 || near(left.values, branch.state(0, token - 1).values));
      changed = changed || !near(now, before[static_cast<std::size_t>(token)]);
    }
    CHECK(agree);
    CHECK(changed);
    // Generated anew.
    for (std::int64_t t = kPrompt; t < kTokens; ++t)
      CHECK(branch.ids()[static_cast<std::size_t>(t)] == most_probable_id(branch.logits(t - 1)));

    REQUIRE(tree.undo());
    CHECK((tree.current() == 0 && !tree.undo()));
    CHECK(shown(*tree[0].run, 0, kTokens) == before);
    REQUIRE(tree.redo());
    CHECK((tree.current() == 1 && !tree.redo()));
  }
}

TEST_CASE("branches: a state without decay from a token on, by the definition in double precision") {
  for (const char* name : {"gla", "retnet", "mamba2", "gated_deltanet"}) {
    INFO(name);
    const auto checkpoint = random_checkpoint(Config(config_of(name)), 5);
    const std::shared_ptr<Run> root = read_run(Model::load(checkpoint, make_cpu_backend(1)));
    Branches tree(root);
    tree.intervene({parse_intervention("freeze decay of layer 0 from 21")});
    MemoryTracer tracer(checkpoint, 1);
    // What enters the first layer is the same in both, as long as the tokens are.
    const MemoryTrace trace = tracer.trace(0, root->residual(0, 0, kPrompt), kPrompt).at(0);
    const SlotVisits& visits = trace.slots[0];
    const LayerState found = tree[1].run->state(0, kPrompt - 1);
    std::vector<float> expected;
    for (std::int64_t h = 0; h < trace.H; ++h) {
      std::vector<double> S(static_cast<std::size_t>(trace.K * trace.V), 0.0);
      for (std::int64_t t = 0; t < kPrompt; ++t) {
        const auto at = [&](const std::vector<float>& x, std::int64_t width, std::int64_t i) {
          return static_cast<double>(x[static_cast<std::size_t>((t * trace.H + h) * width + i)]);
        };
        const double beta = trace.rule == MemoryRule::delta ? at(visits.beta, 1, 0) : 1;
        // S̄ = α S;  S = S̄ + kᵀ β (v − k S̄), or S̄ + kᵀ v
        for (std::int64_t c = 0; c < trace.V; ++c) {
          double predicted = 0;
          for (std::int64_t r = 0; r < trace.K; ++r) {
            double& s = S[static_cast<std::size_t>(r * trace.V + c)];
            if (t < kAt) s *= std::exp(at(visits.log_decay, trace.decay_width, trace.decay_width == 1 ? 0 : r));
            if (trace.rule == MemoryRule::delta) predicted += at(visits.k, trace.K, r) * s;
          }
          for (std::int64_t r = 0; r < trace.K; ++r)
            S[static_cast<std::size_t>(r * trace.V + c)] += at(visits.k, trace.K, r) * beta * (at(visits.v, trace.V, c) - predicted);
        }
      }
      expected.insert(expected.end(), S.begin(), S.end());
    }
    CHECK(relative_error(found.values, expected) < 1e-5);
    CHECK(relative_error(root->state(0, kPrompt - 1).values, expected) > 1e-3);
  }
}

TEST_CASE("branches: where tokens go under a rule shows in the routing, and ends with it") {
  for (const char* name : {"sse gla n4k2, conv", "sse gdn n4k2, post_l2, conv", "mom"}) {
    INFO(name);
    const std::shared_ptr<Run> root = read_run(load(config_of(name)));
    const std::shared_ptr<const Routing> own = root->routing(0);
    Branches tree(root);
    tree.intervene({parse_intervention("route layer 0 to partition 4 from 21 until 24"),
                    parse_intervention("topk 3 of layer 0 from 30 until 35"), parse_intervention("topk 1 of layer 0 from 33")});
    const std::shared_ptr<const Routing> routing = tree[1].run->routing(0);
    REQUIRE(routing->tokens() == kTokens);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      INFO("token " << t);
      std::vector<bool> now, before;
      for (std::int64_t n = 0; n < routing->partitions; ++n) {
        now.push_back(routing->selected_at(t, n));
        before.push_back(own->selected_at(t, n));
      }
      if (t >= 21 && t <= 24) {
        CHECK(now == std::vector<bool>{false, false, false, true});
      } else {
        CHECK(std::ranges::count(now, true) == (t < 30 ? 2 : t < 33 ? 3 : 1));
        if (t < 30) CHECK(now == before);
      }
    }
    CHECK(root->routing(0) == own);
  }
}

TEST_CASE("branches: states of another run come in its place as if it had read on here") {
  for (const char* name :
       {"gla hybrid", "sse gla n4k2, conv", "sse swa moba gdn", "mom", "mamba2", "gsa", "retnet", "transformer", "qwen3_next"}) {
    INFO(name);
    const std::shared_ptr<Model> model = load(config_of(name));
    const std::shared_ptr<Run> root = read_run(model), other = read_run(model, 8);
    Branches tree(root);
    REQUIRE(tree.add(other) == 1);
    tree.intervene({parse_intervention("import run 1 at 21")});
    Run& branch = *tree[2].run;
    CHECK(shown(branch, 0, kAt) == shown(*root, 0, kAt));
    CHECK(shown(branch, kAt).states == shown(*other, kAt).states);
    std::vector<std::int32_t> ids(other->ids().begin(), other->ids().begin() + kAt + 1);
    ids.insert(ids.end(), branch.ids().begin() + kAt + 1, branch.ids().end());
    const std::vector<Shown> expected = read_by_hand(*model, ids, {}, kAt);
    for (std::int64_t token : {22, 30, 31, 40, 45}) CHECK(near(shown(branch, token), expected[static_cast<std::size_t>(token - kAt)]));

    // A branch that leaves before and inherits the import, and one of that which leaves between the two.
    tree.intervene({parse_intervention("replace token by 3 at 10")});
    tree.intervene({parse_intervention("replace token by 4 at 15")});
    CHECK(tree[4].run->ids()[10] == 3);
    CHECK(shown(*tree[4].run, kAt).states == shown(*other, kAt).states);
    CHECK(shown(*tree[4].run, 10, 15) == shown(*tree[3].run, 10, 15));
    for (std::int64_t token : {22, 31, 39}) CHECK(near(shown(*tree[4].run, token), shown(branch, token)));
    std::vector<std::int32_t> replaced = root->ids();
    replaced[10] = 3;
    replaced[15] = 4;
    ModelState state = model->start();
    const std::vector<float> logits = read_logits(*model, state, std::span(replaced).first(20), {.prompt_length = kPrompt});
    CHECK(near(tree[4].run->logits(19), std::span(logits).last(static_cast<std::size_t>(model->vocab()))));
  }
}

TEST_CASE("branches: states from another token, where a layer keeps no keys and values; and what cannot be imported") {
  const std::shared_ptr<Model> model = load(config_of("sse gla n4k2, conv")), hybrid = load(config_of("gla hybrid"));
  Branches tree(read_run(model));
  tree.add(read_run(model, 8));
  tree.intervene({parse_intervention("import run 1 token 45 of layer 1 at 21")});
  CHECK(tree[2].run->state(1, 21).values == tree[1].run->state(1, 45).values);
  CHECK(tree[2].run->state(0, 21).values == tree[0].run->state(0, 21).values);
  const auto error_of = [](Branches& branches, const char* text) {
    try {
      branches.intervene({parse_intervention(text)});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(error_of(tree, "import run 3 at 21") == "import run 3 at 21: there is no run 3 (runs are 0 to 2)");
  CHECK(error_of(tree, "import run 1 token 46 at 21") == "import run 1 token 46 at 21: in run 1 there is no token 46 (tokens are 0 to 45)");
  CHECK(tree.count() == 3);
  Branches other(read_run(hybrid));
  CHECK(error_of(other, "import run 0 token 5 at 21").find("layer 1 keeps keys and values of all tokens") != std::string::npos);
  CHECK_THROWS_AS(other.add(tree[0].run), Error);
}

}  // namespace statescope::test::branch_cases
