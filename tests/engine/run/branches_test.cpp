// Branches: an intervention leaves the past as it is, to the bit, and makes the future that a fresh reading with the same change has.
#include "engine/run/branches.h"

#include <cmath>

#include "engine/analysis/memory_trace.h"
#include "engine/error.h"
#include "engine/run/sampling.h"
#include "tests/engine/model/golden.h"
#include "tests/engine/model/small_models.h"
#include "tests/kernels/device_cases.h"

namespace statescope::test::branches_test {
namespace {

constexpr std::int64_t kPrompt = 40, kTokens = 46, kAt = 21;

json config_of(const std::string& name) {
  for (const SmallModel& small : small_models()) {
    if (small.name == name) return small.config;
  }
  throw std::logic_error("no small model " + name);
}

std::shared_ptr<Model> load(const json& config) { return Model::load(random_checkpoint(Config(config), 5), make_cpu_backend(1)); }

/// A prompt, then what the model generates.
std::shared_ptr<Run> read_run(const std::shared_ptr<Model>& model, std::uint32_t seed = 7, RunOptions options = {.keyframe_interval = 16}) {
  auto run = std::make_shared<Run>(model, options);
  run->read(some_ids(kPrompt, model->vocab(), seed), kPrompt);
  while (run->tokens() < kTokens) {
    const std::int32_t id = most_probable_id(run->logits(run->tokens() - 1));
    run->read({&id, 1}, kPrompt);
  }
  return run;
}

bool near(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && (std::equal(a.begin(), a.end(), b.begin()) || relative_error(a, b) <= 2e-5);
}

/// All that a run has to show after a token.
struct Shown {
  std::vector<std::vector<float>> states, others;  // [layers]: the first memory; what else is kept, normalisers among it
  std::vector<float> logits;
  bool operator==(const Shown&) const = default;
};
std::vector<float> other_memories(Backend& backend, const MixerState& state) {
  std::vector<float> all;
  for (std::size_t m = 1; m < state.memory.size(); ++m) {
    const std::vector<float> values = host_copy(backend, state.memory[m]);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}
Shown shown(Run& run, std::int64_t token) {
  Shown all{{}, {}, run.logits(token)};
  for (std::int64_t layer = 0; layer < run.model().layers(); ++layer) {
    all.states.push_back(run.state(layer, token).values);
    all.others.push_back(other_memories(run.model().backend(), run.mixer_state(layer, token + 1)));
  }
  return all;
}
std::vector<Shown> shown(Run& run, std::int64_t from, std::int64_t to) {
  std::vector<Shown> all;
  for (std::int64_t token = from; token < to; ++token) all.push_back(shown(run, token));
  return all;
}

bool near(const Shown& a, const Shown& b) {
  bool agree = near(a.logits, b.logits);
  for (std::size_t l = 0; l < a.states.size(); ++l) agree = agree && near(a.states[l], b.states[l]) && near(a.others[l], b.others[l]);
  return agree;
}

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

/// Multiplies what an address names, number by number.
void scale_by_hand(MixerState& state, std::int64_t slot, std::int64_t head, std::int64_t row, float factor) {
  for (std::size_t m = 0; m < state.memory.size(); ++m) {
    const Tensor& memory = state.memory[m];
    const bool normaliser = memory.shape[3] == 1;
    if (m > 0 && row >= 0 && !normaliser) continue;
    for (std::int64_t s = 0; s < memory.shape[0]; ++s)
      for (std::int64_t h = 0; h < memory.shape[1]; ++h)
        for (std::int64_t r = 0; r < memory.shape[2]; ++r)
          for (std::int64_t c = 0; c < memory.shape[3]; ++c) {
            if ((slot >= 0 && s != slot) || (head >= 0 && h != head) || (row >= 0 && r != row)) continue;
            memory.f32()[((s * memory.shape[1] + h) * memory.shape[2] + r) * memory.shape[3] + c] *= factor;
          }
  }
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

TEST_CASE("branches: what is left goes on as if nothing had left it, to the bit, keys and values too") {
  for (const char* name : {"transformer", "gla hybrid", "sse swa moba gdn", "qwen3_next", "sse gla n4k2, conv", "mamba2"}) {
    INFO(name);
    const std::shared_ptr<Model> model = load(config_of(name));
    const std::shared_ptr<Run> root = read_run(model), untouched = read_run(model);
    Branches tree(root);
    tree.intervene({parse_intervention("replace token by 5 at 21")});
    tree.intervene({parse_intervention("replace token by 6 at 30")});
    const std::vector<std::int32_t> more = some_ids(6, 97, 12), others = some_ids(6, 97, 13);
    const auto read_on = [](Run& run, std::span<const std::int32_t> ids) {
      for (std::size_t t = 0; t < ids.size(); ++t) run.read(ids.subspan(t, 1), kPrompt);
    };
    const std::vector<Shown> first_branch = shown(*tree[1].run, 0, kTokens);
    read_on(*root, more);
    read_on(*tree[2].run, others);
    read_on(*untouched, more);
    CHECK(shown(*root, 0, kTokens + 6) == shown(*untouched, 0, kTokens + 6));
    CHECK(shown(*tree[1].run, 0, kTokens) == first_branch);
    // The branch between the two, too.
    read_on(*tree[1].run, others);
    const std::vector<std::int32_t> ids = tree[1].run->ids();
    ModelState state = model->start();
    const std::vector<float> logits = read_logits(*model, state, ids, {.prompt_length = kPrompt});
    CHECK(near(tree[1].run->logits(kTokens + 5), std::span(logits).last(static_cast<std::size_t>(model->vocab()))));
  }
}

TEST_CASE("branches: what changes nothing changes nothing, to the bit") {
  struct Neutral {
    const char *model, *text;
  };
  for (const Neutral& one : {Neutral{"sse gla n4k2, conv", "scale state by 1 at 21"}, Neutral{"mamba2", "scale decay by 1 from 21"},
                             Neutral{"gla sla", "sharpen gates by 1 from 21"}, Neutral{"sse gla n4k2, conv", "topk 2 from 21"},
                             Neutral{"sse gdn grouped, neg, w2 r3", "writers 2 readers 3 from 21"}, Neutral{"mom", "topk 2 from 21"},
                             Neutral{"sse gla n4k2, conv", "import run 0 at 21"}, Neutral{"gla hybrid", "import run 0 token 21 at 21"}}) {
    INFO(one.model << ": " << one.text);
    const std::shared_ptr<Run> root = read_run(load(config_of(one.model)));
    Branches tree(root);
    tree.intervene({parse_intervention(one.text)});
    CHECK(tree[1].run->first() == kTokens);
    CHECK(shown(*tree[1].run, 0, kTokens) == shown(*root, 0, kTokens));
    CHECK(tree[1].run->ids() == root->ids());
    const RunDifference difference = compare(*root, *tree[1].run, 0);
    CHECK((difference.kl == std::vector<double>(kTokens, 0.0) && !difference.changed));
  }
  // What is the branch's own may be another's where it is left earlier.
  Branches imports(read_run(load(small_config("gla"))));
  imports.intervene({parse_intervention("import run 0 at 21")});
  imports.intervene({parse_intervention("zero state at 10")});
  CHECK(shown(*imports[2].run, 20).states != shown(*imports[0].run, 20).states);
  CHECK(shown(*imports[2].run, 21).states == shown(*imports[0].run, 21).states);

  Branches tree(read_run(load(small_config("gla"))));
  tree.intervene({parse_intervention("replace token by " + std::to_string(tree[0].run->ids()[21]) + " at 21")});
  CHECK(tree[1].run->first() == kTokens);
}

TEST_CASE("branches: read again from where a pass began, undone by its opposite, a run is itself to the bit") {
  // Halved and doubled, states are what they were, and token 32 is the first of a pass.
  for (const char* name :
       {"gla hybrid", "sse gla n4k2, conv", "sse gdn", "mom", "mamba2", "gsa", "retnet sla", "linear_attn hedgehog", "qwen3_next"}) {
    INFO(name);
    const std::shared_ptr<Run> root = read_run(load(config_of(name)));
    Branches tree(root);
    tree.intervene({parse_intervention("scale state by 0.5 at 31"), parse_intervention("scale state by 2 at 31")});
    CHECK(tree[1].run->first() == 32);
    CHECK(shown(*tree[1].run, 0, kTokens) == shown(*root, 0, kTokens));
    CHECK(tree[1].run->ids() == root->ids());
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
  CHECK(error_of(tree, "import run 3 at 21") == "import run 3 at 21: there are runs 0 to 2");
  CHECK(error_of(tree, "import run 1 token 46 at 21") == "import run 1 token 46 at 21: run 1 has tokens 0 to 45");
  CHECK(tree.count() == 3);
  Branches other(read_run(hybrid));
  CHECK(error_of(other, "import run 0 token 5 at 21").find("layer 1 keeps keys and values of all tokens") != std::string::npos);
  CHECK_THROWS_AS(other.add(tree[0].run), Error);
}

TEST_CASE("branches: a tree: what holds in a branch holds in those that leave it, also where they leave it earlier") {
  const std::shared_ptr<Model> model = load(config_of("sse gla n4k2, conv"));
  Branches tree(read_run(model));
  tree.intervene({parse_intervention("freeze decay from 30")});       // 1
  tree.intervene({parse_intervention("scale head 0 by 0.5 at 20")});  // 2, of 1
  tree.intervene({parse_intervention("scale head 0 by 0.5 at 20")});  // 3, of 2: a quarter
  tree.intervene({parse_intervention("scale decay by 1 from 35")});   // 4, of 3: the thaw is no neutral one
  CHECK((tree[2].run->first() == 21 && tree[3].run->first() == 21 && tree[4].run->first() == 35));
  CHECK((tree[4].parent == 3 && tree.current() == 4));

  // The same in one go.
  Branches fresh(tree[0].run);
  fresh.intervene({parse_intervention("scale head 0 by 0.25 at 20"), parse_intervention("freeze decay from 30 until 34")});
  REQUIRE(fresh[1].run->ids() == tree[4].run->ids());
  for (std::int64_t token : {20, 21, 29, 30, 34, 35, 45}) CHECK(near(shown(*fresh[1].run, token), shown(*tree[4].run, token)));

  CHECK((tree.parting(0, 1) == 30 && tree.parting(4, 0) == 21 && tree.parting(3, 4) == 35 && tree.parting(2, 2) == kTokens));
  tree.undo();
  tree.undo();
  CHECK(tree.current() == 2);
  tree.intervene({parse_intervention("replace token by 5 at 43")});  // 5, of 2: among the tokens that were generated
  CHECK((tree[5].parent == 2 && tree[5].run->ids()[43] == 5 && tree.parting(5, 4) == 21));
  CHECK(std::equal(tree[5].run->ids().begin(), tree[5].run->ids().begin() + 43, tree[2].run->ids().begin()));
  tree.intervene({parse_intervention("zero head 1 at 38")});  // 6, of 5: the token stays replaced, what is around it is generated anew
  CHECK(tree[6].run->ids()[43] == 5);
  tree.undo();
  tree.undo();
  CHECK((tree.current() == 2 && tree.redo() && tree.current() == 5 && tree.redo() && tree.current() == 6));
  const RunDifference all = tree.compare(0, 6);
  CHECK((all.from == 21 && std::ssize(all.kl) == all.parted.value_or(kTokens) - 21));
}

TEST_CASE("branches: a difference is that of the next-token distributions and of the states") {
  const std::shared_ptr<Model> model = load(config_of("gla"));
  Branches tree(read_run(model));
  tree.intervene({parse_intervention("scale state of layer 1 by -20 at 21")});
  const RunDifference difference = tree.compare(0, 1);
  REQUIRE(difference.from == 22);
  std::optional<std::int64_t> changed, parted;
  const auto id = [&](std::int64_t run, std::int64_t t) { return tree[run].run->ids()[static_cast<std::size_t>(t)]; };
  for (std::int64_t t = kPrompt; t < kTokens && !parted; ++t) {
    if (id(0, t) != id(1, t)) parted = t;
  }
  REQUIRE(parted);
  CHECK(difference.parted == parted);
  CHECK(std::ssize(difference.kl) == *parted - 22);
  for (std::int64_t t = 22; t < *parted; ++t) {
    const std::vector<float> a = tree[0].run->logits(t), b = tree[1].run->logits(t);
    double kl = 0;
    float largest = 0;
    for (std::int32_t v = 0; v < 97; ++v) {
      const double p = probability_of(a, v), q = probability_of(b, v);
      kl += p * std::log(p / q);
      largest = std::max(largest, std::abs(a[static_cast<std::size_t>(v)] - b[static_cast<std::size_t>(v)]));
    }
    CHECK(difference.kl[static_cast<std::size_t>(t - 22)] == Approx(kl).epsilon(1e-3).margin(1e-7));
    CHECK(difference.logits[static_cast<std::size_t>(t - 22)] == Approx(largest).epsilon(1e-4));
    if (!changed && most_probable_id(a) != most_probable_id(b)) changed = t;
  }
  CHECK(difference.changed == changed);
  const StateDifference states = compare_states(*tree[0].run, *tree[1].run, 1, 21);
  CHECK((states.b == Approx(20 * states.a) && states.difference == Approx(21 * states.a) && states.relative() == Approx(21)));
  CHECK(compare_states(*tree[0].run, *tree[1].run, 0, 21).relative() == 0);
}

TEST_CASE("branches: of a recording that is mostly in a file; a cancelled one leaves the tree as it is") {
  const std::shared_ptr<Model> model = load(config_of("sse gla n4k2, conv"));
  const std::vector<std::int32_t> ids = some_ids(1500);
  auto root = std::make_shared<Run>(model, RunOptions{.tokens_at_once = 128, .keyframe_interval = 128, .memory_budget = 1});
  root->read(ids, 1500);
  CHECK(root->bytes_in_file() > 0);
  Branches tree(root);
  CHECK_THROWS_AS(tree.intervene({parse_intervention("zero head 0 at 300")}, [](std::int64_t) { return false; }), Error);
  CHECK((tree.count() == 1 && tree.current() == 0));
  tree.intervene({parse_intervention("zero head 0 at 300"), parse_intervention("scale state by 0.5 at 700")});
  Run& branch = *tree[1].run;
  CHECK(branch.bytes_in_file() > 0);
  ModelState state = model->start();
  std::int64_t read = 0;
  for (const std::int64_t end : {250, 301, 600, 701, 1000, 1500}) {
    read_logits(*model, state, std::span(ids).subspan(static_cast<std::size_t>(read), static_cast<std::size_t>(end - read)),
                {.prompt_length = 1500});
    read = end;
    for (std::int64_t layer = 0; layer < 2; ++layer) {
      MixerState& now = state.layers[static_cast<std::size_t>(layer)];
      if (end == 301) scale_by_hand(now, -1, 0, -1, 0);
      if (end == 701) scale_by_hand(now, -1, -1, -1, 0.5F);
      CHECK(near(branch.state(layer, end - 1).values, host_copy(model->backend(), now.memory[0])));
    }
  }
  const std::vector<float> across = branch.residual(1, 200, 400), left = root->residual(1, 200, 301);
  CHECK(std::equal(left.begin(), left.end(), across.begin()));
}

TEST_CASE("branches: on a CUDA device as on the CPU", "[device]") {
  const std::shared_ptr<Backend> cuda = testing::cuda_backend();
  if (!cuda) return;
  for (const char* name :
       {"sse gla n4k2, conv", "sse gdn n4k2, post_l2, conv", "mom", "gla sla", "retnet", "mamba2", "gsa", "gla hybrid"}) {
    const auto checkpoint = random_checkpoint(Config(config_of(name)), 5);
    const std::shared_ptr<Model> on_cpu = Model::load(checkpoint, make_cpu_backend(1)), on_gpu = Model::load(checkpoint, cuda);
    for (const char* text : {"zero head 1 of layer 0 at 21", "scale row 2 of head 0 of layer 0 by 0.5 at 21",
                             "freeze decay of layer 0 from 21", "scale decay of layer 0 by 2 from 21", "topk 1 of layer 0 from 21",
                             "topk 4 of layer 0 from 21", "route layer 0 to partition 3,1 from 21", "sharpen gates of layer 0 by 8 from 21",
                             "replace token by 5 at 21", "import run 1 at 21"}) {
      INFO(name << ": " << text);
      const auto branch = [&](const std::shared_ptr<Model>& model) {
        const auto prompt = [&](std::uint32_t seed) {
          auto run = std::make_shared<Run>(model, RunOptions{.tokens_at_once = 16});
          run->read(some_ids(kPrompt, 97, seed), kPrompt);
          return run;
        };
        Branches tree(prompt(7));
        tree.add(prompt(8));
        tree.intervene({parse_intervention(text)});
        return tree[2].run;
      };
      std::shared_ptr<Run> cpu;
      try {
        cpu = branch(on_cpu);
      } catch (const Error&) {
        continue;  // it has no meaning there
      }
      const std::shared_ptr<Run> gpu = branch(on_gpu);
      for (std::int64_t token : {15, 21, 22, 31, 39}) {
        const Shown a = shown(*cpu, token), b = shown(*gpu, token);
        CHECK(relative_error(b.logits, a.logits) < 1e-3);
        for (std::size_t l = 0; l < a.states.size(); ++l)
          if (!a.states[l].empty()) CHECK(relative_error(b.states[l], a.states[l]) < 1e-3);
      }
    }
  }
}

TEST_CASE("branches: on a CUDA device the past, and a future without a change, are the same to the bit", "[device]") {
  for (const Precision precision : {Precision::float32, Precision::bfloat16}) {
    const std::shared_ptr<Backend> cuda = testing::cuda_backend(precision);
    if (!cuda) return;
    for (const char* name : {"sse gla n4k2, conv", "sse gdn", "mom", "gated_deltanet", "mamba2", "gla hybrid"}) {
      INFO(name << (precision == Precision::float32 ? "" : ", bfloat16"));
      const auto model = Model::load(random_checkpoint(Config(config_of(name)), 5), cuda);
      const std::shared_ptr<Run> root = read_run(model, 7, {.tokens_at_once = 16});
      Branches tree(root);
      tree.intervene({parse_intervention("scale state by 0.5 at 31"), parse_intervention("scale state by 2 at 31")});
      CHECK(tree[1].run->first() == 32);
      CHECK(shown(*tree[1].run, 0, kTokens) == shown(*root, 0, kTokens));
      tree.intervene({parse_intervention("zero head 1 of layer 0 at 21")});
      CHECK(shown(*tree[2].run, 0, kAt) == shown(*root, 0, kAt));
      CHECK(tree[2].run->state(0, kAt).values != root->state(0, kAt).values);
    }
  }
}

}  // namespace statescope::test::branches_test
