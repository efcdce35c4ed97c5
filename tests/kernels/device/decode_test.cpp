// Operations of one row that follow one another, on a CUDA device against the CPU: there they are one launch of a persistent kernel
// (kernels/cuda/common/decode_queue.h).
#include "tests/kernels/device_cases.h"
#include "tests/kernels/device_shapes.h"
#include "tests/kernels/memory_cases.h"

namespace statescope::device_decode_test {
using namespace statescope::testing;

namespace {

constexpr std::int64_t V = 128, rank = 16;

/// A layer's sizes.
struct Sizes {
  std::int64_t hidden, inner, K, H = 3;
  std::string name() const { return with("a layer", {{"hidden", hidden}, {"inner", inner}, {"K", K}, {"H", H}}); }
};

/// Weights of bf16: the upper halves of float32 numbers.
struct Weight {
  Shape shape;
  std::vector<std::uint16_t> words;

  Weight(Random& random, std::int64_t out, std::int64_t in) : shape{out, in} {
    const float scale = 1 / std::sqrt(static_cast<float>(in));
    for (const float x : random.uniform(shape).values)
      words.push_back(static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(scale * x) >> 16));
  }
  ConstTensor view() const { return {words.data(), DType::bf16, shape}; }
};

/// A layer of GLA, or of Gated DeltaNet without its convolutions.
struct Layer {
  Sizes sizes;
  bool delta_rule;
  Activation act = Activation::silu;  // of the gate
  Random random{1};
  std::int64_t H = sizes.H, keys = H * sizes.K, values = H * V;
  Numbers norm = random.uniform({sizes.hidden}), heads_norm = random.uniform({V}), bias = random.uniform({keys}),
          A_log = random.uniform({H}), dt_bias = random.uniform({H}), initial = random.uniform({1, H, sizes.K, V});
  Weight q{random, keys, sizes.hidden}, k{random, keys, sizes.hidden}, v{random, values, sizes.hidden}, g{random, values, sizes.hidden},
      features{random, rank, sizes.hidden}, decay{random, keys, rank}, a{random, H, sizes.hidden}, b{random, H, sizes.hidden},
      o{random, sizes.hidden, values}, gate{random, sizes.inner, sizes.hidden}, up{random, sizes.inner, sizes.hidden},
      down{random, sizes.hidden, sizes.inner};
};

/// What a layer has on one side: placed before its operations are asked for, so that nothing comes between them.
struct Placed {
  ConstTensor norm, heads_norm, bias, A_log, dt_bias, q, k, v, g, features, decay, a, b, o, gate, up, down;
  Tensor state, qs, ks, vs, gs, feature, decays, beta, out;

  Placed(Side& s, const Layer& l)
      : norm(s.whole(l.norm)),
        heads_norm(s.whole(l.heads_norm)),
        bias(s.whole(l.bias)),
        A_log(s.whole(l.A_log)),
        dt_bias(s.whole(l.dt_bias)),
        q(s.weight(l.q.view())),
        k(s.weight(l.k.view())),
        v(s.weight(l.v.view())),
        g(s.weight(l.g.view())),
        features(s.weight(l.features.view())),
        decay(s.weight(l.decay.view())),
        a(s.weight(l.a.view())),
        b(s.weight(l.b.view())),
        o(s.weight(l.o.view())),
        gate(s.weight(l.gate.view())),
        up(s.weight(l.up.view())),
        down(s.weight(l.down.view())),
        state(s.inout_whole(l.initial)),
        qs(s.out({1, l.H, l.sizes.K})),
        ks(s.out({1, l.H, l.sizes.K})),
        vs(s.out({1, l.H, V})),
        gs(s.out({1, l.values})),
        feature(s.out({1, rank})),
        decays(l.delta_rule ? s.out({1, l.H}) : s.out({1, l.H, l.sizes.K})),
        beta(l.delta_rule ? s.out({1, l.H}) : Tensor{}),
        out(s.out({1, l.H, V})) {}
};

Tensor as_row(Tensor x) {
  x.shape = {1, x.shape.size()};
  return x;
}

/// x = x + layer(x)
void run(Side& s, const Layer& l, const Placed& p, Tensor x, const Packed& one) {
  const InputNorm of{.group = l.sizes.hidden, .weight = p.norm, .eps = 1e-5F, .gate = {}};
  std::vector<Projection> all{{x, of, p.q, {}, as_row(p.qs), {}, {}},
                              {x, of, p.k, {}, as_row(p.ks), {}, {}},
                              {x, of, p.v, {}, as_row(p.vs), {}, {}},
                              {x, of, p.g, {}, p.gs, {}, {}}};
  if (l.delta_rule) {
    all.push_back({x, of, p.a, {}, as_row(p.decays), DeltaDecay{p.A_log, p.dt_bias}, {}});
    all.push_back({x, of, p.b, {}, as_row(p.beta), Activate{Activation::sigmoid, {}}, {}});
  } else {
    all.push_back({x, of, p.features, {}, p.feature, {}, {}});
    all.push_back({p.feature, {}, p.decay, p.bias, as_row(p.decays), ForgetGate{16, 0}, {}});
  }
  s->project(all, s.workspace());
  if (l.delta_rule) {
    GatedDeltaRule op;
    op.q = p.qs, op.k = p.ks, op.v = p.vs, op.log_decay = p.decays, op.beta = p.beta, op.scale = 0.5F;
    op.segments = one.view(), op.initial_state = p.state, op.final_state = p.state, op.o = p.out;
    s->unit_delta_rule(op, 64, s.workspace());
  } else {
    DecayedOuterProduct op;
    op.q = p.qs, op.k = p.ks, op.v = p.vs, op.log_decay = p.decays, op.scale = 0.5F;
    op.segments = one.view(), op.initial_state = p.state, op.final_state = p.state, op.o = p.out;
    s->decayed_outer_product(op, 64);
  }
  const InputNorm of_heads{.group = V, .weight = p.heads_norm, .eps = 1e-5F, .gate = p.gs, .act = l.act};
  const Projection readout{as_row(p.out), of_heads, p.o, {}, x, Activate{Activation::identity, x}, {}};
  s->project(std::span(&readout, 1), s.workspace());
  s->swiglu(x, x, p.gate, p.up, p.down, s.workspace(), of, x);
}

}  // namespace

TEST_CASE("device: layers that follow one another for one row", "[device]") {
  const Comparison both;
  if (!both) return;
  const Packed one(1);
  // Rows of one to four slices of weights, and of many; the longest that the persistent kernel takes, and longer ones; few outputs; K with
  // and without whole rows of threads, and more than there are threads; so many heads that a step's tasks are wide, with four and eight
  // rows a thread, and come in turns.
  for (const Sizes& sizes : {Sizes{32, 64, 60}, Sizes{288, 96, 16}, Sizes{2304, 2336, 64}, Sizes{2336, 6912, 128}, Sizes{4096, 6944, 256},
                             Sizes{544, 8192, 48}, Sizes{64, 8224, 16}, Sizes{320, 96, 392}, Sizes{96, 64, 100, 18}, Sizes{96, 64, 256, 18},
                             Sizes{5120, 96, 128}, Sizes{96, 17408, 16}, Sizes{64, 32768, 16}, Sizes{64, 32800, 16}, Sizes{6144, 64, 16},
                             Sizes{6176, 64, 16}, Sizes{96, 64, 128, 48}}) {
    // Rules of one kind are one launch, of two kinds several.
    for (const auto& [delta_rule, delta_rule_next] : {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
      const Layer first{sizes, delta_rule}, second{sizes, delta_rule_next, Activation::sigmoid};
      Random random(2);
      const Numbers x = random.uniform({1, sizes.hidden});
      both(
          sizes.name() + (delta_rule ? ", the delta rule" : ", the outer product") +
              (delta_rule_next ? ", the delta rule" : ", the outer product"),
          [&](Side& s) {
            const Placed a(s, first), b(s, second);
            const Tensor hidden = s.inout(x);
            for (int token = 0; token < 2; ++token) {
              run(s, first, a, hidden, one);
              run(s, second, b, hidden, one);
            }
          },
          2e-4);
    }
  }
}

TEST_CASE("device: sparse states behind products of one row", "[device]") {
  const Comparison both;
  if (!both) return;
  struct Case {
    std::int64_t H, K, V;
  };
  // The last ones have so many heads that tasks are wide, with four and eight rows a thread.
  for (const auto& [H, K, V] : {Case{3, 60, 36}, Case{2, 128, 128}, Case{18, 128, 128}, Case{10, 200, 256}}) {
    for (const bool delta_rule : {false, true}) {
      for (const bool softmax : {false, true}) {
        constexpr std::int64_t hidden = 96, N = 4, W = 2;
        Random random(5);
        const Weight shared(random, H * K, hidden), sparse(random, H * K, hidden), more(random, H * K, hidden), v(random, H * V, hidden),
            e(random, N, hidden);
        const Numbers x = random.uniform({1, hidden}, -2, 2), beta = random.uniform({1, 2, H}, 0, 1),
                      log_decay = delta_rule ? random.uniform({1, 2, H}, -0.5F, 0) : random.uniform({1, 2, H, K}, -0.5F, 0),
                      initial = random.uniform({1 + N, H, K, V});
        both(
            with("sparse states behind products", {{"H", H}, {"K", K}, {"V", V}, {"delta rule", delta_rule}, {"softmax", softmax}}),
            [&](Side& s) {
              const ConstTensor in = s.in(x);
              std::vector<Projection> all;
              const auto product = [&](const Weight& weight, Tensor y) {
                all.push_back({in, {}, s.weight(weight.view()), {}, as_row(y), {}, {}});
                return y;
              };
              const Tensor of_shared = product(shared, s.out({1, H * K})), of_sparse = product(sparse, s.out({1, H * K})),
                           of_more = product(more, s.out({1, H * K})), logits = product(e, s.out({1, N}));
              const SparseSources from{{s.out_whole({1, 2, H, K}), of_shared, of_sparse, of_more, Activation::silu, softmax},
                                       {s.out_whole({1, 2, H, K}), of_sparse, of_shared, of_more, Activation::silu, softmax},
                                       logits,
                                       s.out_whole({1, N}),
                                       s.out_i32({1, W}),
                                       false};
              const std::vector<std::int32_t> one{0, 1};
              const Tensor state = s.inout_whole(initial);
              SparseState op;
              op.q = from.q.pair, op.k = from.k.pair, op.v = product(v, s.out({1, H, V})), op.log_decay = s.in(log_decay);
              if (delta_rule) op.beta = s.in(beta);
              op.gate = from.gate, op.selected = from.selected, op.writers = 1, op.readers = W, op.cu_seqlens = one;
              op.initial_state = state, op.final_state = state, op.o = s.out({1, H, V});
              s->project(all, s.workspace());
              s->sparse_state(op, from, 0, s.workspace());
            },
            2e-4);
      }
    }
  }
}

TEST_CASE("device: a layer that is repeated, behind each token's embedding", "[device]") {
  // A backend of its own: where there is no other one its launches overlap.
  const std::shared_ptr<Backend> device = own_cuda_backend(), host = make_cpu_backend();
  if (!device) return;
  const Packed one(1);
  for (const Sizes& sizes : {Sizes{32, 64, 60}, Sizes{2304, 96, 64}, Sizes{4096, 96, 16}, Sizes{5120, 96, 16}}) {
    for (const DType dtype : weight_types) {
      INFO(sizes.name() + ", embeddings in " + std::string(name_of(dtype)));
      Random random(4);
      const Layer layer{sizes, false};
      const StoredWeight table(random, dtype, {5, sizes.hidden});
      const auto read = [&](Side& s) {
        const Placed p(s, layer);
        const ConstTensor embeddings = s.weight(table.view());
        const Tensor hidden = s.out({1, sizes.hidden});
        const std::unique_ptr<Repeated> repeated = s->repeated();  // none on the CPU
        const auto step = [&] { run(s, layer, p, hidden, one); };
        for (const std::int32_t id : {3, 0, 2, 4, 1, 4, 3, 0}) {
          s->embed(hidden, embeddings, &id);
          repeated ? repeated->run(step) : step();
        }
      };
      Side found(*device, 0), truth(*host, 0);
      read(found), read(truth);
      found.compare(truth, 2e-4);
    }
  }
}

TEST_CASE("device: what a layer makes for itself is read by others", "[device]") {
  const Comparison both;
  if (!both) return;
  const Packed one(1);
  const Layer layer{{288, 96, 64}, false};
  Random random(3);
  const Numbers x = random.uniform({1, layer.sizes.hidden});
  const auto each_token = [&](const std::string& name, Tensor Placed::*made, std::int64_t count) {
    const Weight reader(random, 8, count);
    both(
        name + ", of each token",
        [&](Side& s) {
          const Placed p(s, layer);
          const ConstTensor weight = s.weight(reader.view());
          const Tensor hidden = s.inout(x), y = s.out({2, 8});
          for (int token = 0; token < 2; ++token) {
            run(s, layer, p, hidden, one);
            const Projection read{as_row(p.*made), {}, weight, {}, y.slice(token, 1), {}, {}};
            s->project(std::span(&read, 1), s.workspace());
          }
        },
        2e-4);
  };
  each_token("decays that a step has made", &Placed::decays, layer.keys);
  each_token("a gate as it is before its activation", &Placed::gs, layer.values);
}

TEST_CASE("device: one row's products with weights of which some are unlike the others", "[device]") {
  const Comparison both;
  if (!both) return;
  // One, two, four and eight slices of a row, with whole groups of columns and half a group; rows that are never compact
  // (compact_weights.h).
  for (const std::int64_t in : {256, 768, 2304, 4096, 8192, 17408, 544}) {
    const auto product = [&](const std::string& name, const auto& change) {
      Random random(4);
      Weight weight(random, 300, in);
      Numbers x = random.uniform({1, in});
      // Where weights are changed x is large, so that a small difference shows.
      for (std::int64_t row = 0; row < 300; ++row) {
        const auto set = [&](std::int64_t column, std::uint16_t word) {
          weight.words[static_cast<std::size_t>(row * in + column)] = word;
          x[column] = 1000;
        };
        change(row, set);
      }
      both(
          name + ", rows of " + std::to_string(in),
          [&](Side& s) {
            const ConstTensor w = s.weight(weight.view()), numbers = s.in(x);
            const Tensor y = s.out({2, 300});
            for (int time = 0; time < 2; ++time) s->linear(y.slice(time, 1), numbers, w);
          },
          1e-5);
    };
    const auto exceptions = [in](std::uint16_t word, int count) {
      return [=](std::int64_t row, const auto& set) {
        for (int n = 0; n < count; ++n)
          set(n % 2 == 0 ? 3 * n : in - 1 - 5 * n, row % 2 == 0 ? word : static_cast<std::uint16_t>(word ^ 0x8000));
      };
    };
    product("no exceptions", [](std::int64_t, const auto&) {});
    product("zeros", exceptions(0, 7));
    product("more zeros than fit", exceptions(0, 16));
    product("numbers without a leading 1", exceptions(1, 3));
    product("large numbers", exceptions(0x4780, 5));       // 2^16
    product("very large numbers", exceptions(0x7A80, 1));  // 2^118
    if (in % 256 == 0 && in > 256)
      product("an infinity", exceptions(0x7F80, 1));  // else NaN: it is multiplied with each bf16 term of x (decode/consumer.h)
    product("NaN", exceptions(0x7FC0, 1));
    product("rows of zeros", [in](std::int64_t row, const auto& set) {
      if (row % 3 != 0) return;
      for (std::int64_t column = 0; column < in; ++column) set(column, 0);
    });
    for (const int exponent : {2, 17, 200}) {
      product("exponents of " + std::to_string(exponent), [in, exponent](std::int64_t row, const auto& set) {
        for (std::int64_t column = 0; column < in; ++column)
          set(column, static_cast<std::uint16_t>((exponent + (row + column) % 16) << 7 | (37 * column + row) % 128 |
                                                 (column % 3 == 0 ? 0x8000 : 0)));
      });
    }
  }
}

}  // namespace statescope::device_decode_test
