// Branches: an intervention leaves the past as it is, to the bit; what is left goes on; a tree of them.
#include "engine/run/branches.h"

#include "engine/error.h"
#include "tests/catch.h"
#include "tests/engine/run/branch_cases.h"
#include "tests/kernels/device_cases.h"

namespace statescope::test::branch_cases {

TEST_CASE("branches: what is left goes on as if nothing had left it, to the bit, keys and values too") {
  for (const char* name : {"transformer", "gla hybrid", "sse swa moba gdn", "qwen3_next", "sse gla n4k2, conv", "mamba2", "rwkv7", "zamba",
                           "hymba", "log_linear_mamba2"}) {
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

}  // namespace statescope::test::branch_cases
