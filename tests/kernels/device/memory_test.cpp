// The memories on a CUDA device against the CPU, over awkward shapes: from segment to segment, and what sparse states are made of.
#include "tests/kernels/device_shapes.h"

namespace statescope::device_memory_test {
using namespace statescope::testing;

namespace {

constexpr double memory_tolerance = 1e-4;

/// How strong a decay is: drawn from [low, high]; in a `broken` one every fifth entry is −1100, and every eleventh −∞.
struct Strength {
  const char* name;
  float low, high;
  bool broken;
};
constexpr Strength mild{"mild", -0.2F, 0, false}, strong{"strong", -6, -4, false}, broken{"broken", -0.2F, 0, true};

Numbers decays(Random& random, const Shape& shape, Strength strength) {
  Numbers x = random.uniform(shape, strength.low, strength.high);
  for (std::size_t i = 0; strength.broken && i < x.values.size(); ++i) {
    if (i % 5 == 2) x.values[i] = -1100;
    if (i % 11 == 7) x.values[i] = -std::numeric_limits<float>::infinity();
  }
  return x;
}

/// The step form where it is possible, for it is what the CPU takes for a token.
std::int64_t chunk_size(const Packed& segments) { return segments.rows() <= 3 && segments.cu_seqlens.size() > 2 ? 0 : 64; }

/// run(Side&, initial, final): with a state of its own for the result, then in place.
template <class Run>
void compare_memory(const Comparison& both, const std::string& name, const Numbers& initial, const Run& run) {
  both(
      name,
      [&](Side& s) {
        const ConstTensor before = s.whole(initial);
        run(s, before, s.out_whole(initial.shape));
      },
      memory_tolerance);
  both(
      name + ", in place",
      [&](Side& s) {
        const Tensor state = s.inout_whole(initial);
        run(s, state, state);
      },
      memory_tolerance);
}

enum class Kind { absent, per_head, per_channel, per_column };
constexpr const char* kind_names[] = {"absent", "per head", "per channel", "per column"};

struct Heads {
  std::int64_t state, q, k, v, decay;
};
Heads same(std::int64_t H) { return {H, H, H, H, H}; }

std::string memory_name(const char* memory, const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V) {
  return with(memory, {{"rows", segments.rows()},
                       {"segments", segments.view().count()},
                       {"H", heads.state},
                       {"Hq", heads.q},
                       {"Hk", heads.k},
                       {"Hv", heads.v},
                       {"Hd", heads.decay},
                       {"K", K},
                       {"V", V}});
}

void compare_outer_product(const Comparison& both, const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V, Kind kind,
                           Strength strength) {
  Random random(1);
  const std::int64_t T = segments.rows();
  const Numbers q = random.uniform({T, heads.q, K}), k = random.uniform({T, heads.k, K}), v = random.uniform({T, heads.v, V}),
                initial = random.uniform({segments.slots, heads.state, K, V});
  Shape shape{T, heads.decay};
  if (kind == Kind::per_channel) shape.push_back(K);
  if (kind == Kind::per_column) shape.push_back(V);
  const Numbers log_decay = decays(random, shape, strength);
  const std::string name = memory_name("decayed_outer_product", segments, heads, K, V) + ", decay " +
                           kind_names[static_cast<std::size_t>(kind)] + ", " + strength.name;
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    DecayedOuterProduct op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v);
    if (kind != Kind::absent) op.log_decay = s.in(log_decay);
    if (kind == Kind::per_column) op.decay_axis = DecayAxis::columns;
    op.scale = 0.5F, op.segments = segments.view();
    op.initial_state = before, op.final_state = after, op.o = s.out({T, heads.state, V});
    s->decayed_outer_product(op, chunk_size(segments));
  });
}

void compare_delta_rule(const Comparison& both, const Packed& segments, const Heads& heads, std::int64_t K, std::int64_t V,
                        const Strength* strength, bool has_beta = true, bool unit = false, bool channels = false) {
  Random random(1);
  const std::int64_t T = segments.rows();
  const Numbers q = random.uniform({T, heads.q, K}), k = l2_normalized(random.uniform({T, heads.k, K}), K),
                v = random.uniform({T, heads.v, V}), beta = random.uniform({T, heads.v}, 0, 2),
                initial = random.uniform({segments.slots, heads.state, K, V}),
                log_decay = decays(random, channels ? Shape{T, heads.decay, K} : Shape{T, heads.decay}, strength ? *strength : mild);
  const std::string name = memory_name("gated_delta_rule", segments, heads, K, V) + ", decay " + (strength ? strength->name : "absent") +
                           (has_beta ? "" : ", without beta") + (unit ? ", of unit length" : "") + (channels ? ", per channel" : "");
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    GatedDeltaRule op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v);
    if (strength) op.log_decay = s.in(log_decay);
    if (has_beta) op.beta = s.in(beta);
    op.scale = 0.5F, op.segments = segments.view();
    op.initial_state = before, op.final_state = after, op.o = s.out({T, heads.state, V});
    unit ? s->unit_delta_rule(op, chunk_size(segments), s.workspace()) : s->gated_delta_rule(op, chunk_size(segments));
  });
}

}  // namespace

TEST_CASE("device: decayed outer product", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const Kind kind : {Kind::absent, Kind::per_head, Kind::per_channel, Kind::per_column}) {
    for (const std::int64_t T : token_counts) {
      for (const std::int64_t K : widths) {
        for (const std::int64_t H : head_counts) compare_outer_product(both, Packed(T), same(H), K, K, kind, mild);
      }
      for (const Strength& strength : {strong, broken}) {
        if (kind != Kind::absent) compare_outer_product(both, Packed(T), same(3), 60, 60, kind, strength);
      }
    }
    for (const auto& [K, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {128, 20}, {100, 256}, {256, 256}, {300, 36}}) {
      for (const std::int64_t T : {1, 65}) compare_outer_product(both, Packed(T), same(3), K, V, kind, mild);
    }
    for (const Heads& heads : {Heads{4, 2, 4, 1, 2}, Heads{6, 3, 2, 6, 1}})
      compare_outer_product(both, Packed(1), heads, 60, 20, kind, mild);
    for (const Heads& heads : {Heads{4, 2, 4, 1, 2}, Heads{4, 4, 1, 2, 4}, Heads{6, 3, 2, 6, 1}}) {
      for (const Packed* segments : {&mixed_segments, &single_row_segments, &empty_segments}) {
        for (const Strength& strength : {mild, strong, broken}) compare_outer_product(both, *segments, heads, 60, 20, kind, strength);
      }
    }
  }
}

TEST_CASE("device: decayed outer product with one decay for all rows", "[device]") {
  const Comparison both;
  if (!both) return;
  Random random(1);
  const std::int64_t T = 65, H = 3, K = 16, V = 60;
  const Numbers q = random.uniform({T, H, K}), k = random.uniform({T, H, K}), v = random.uniform({T, H, V}),
                log_decay = random.uniform({1, H}, -0.2F, 0), initial = random.uniform({1, H, K, V});
  const Packed segments(T);
  compare_memory(both, "decayed_outer_product, decay repeated", initial, [&](Side& s, ConstTensor before, Tensor after) {
    DecayedOuterProduct op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v), op.log_decay = s.repeated(log_decay, T);
    op.segments = segments.view(), op.initial_state = before, op.final_state = after, op.o = s.out({T, H, V});
    s->decayed_outer_product(op, 64);
  });
}

TEST_CASE("device: gated delta rule", "[device]") {
  const Comparison both;
  if (!both) return;
  const std::vector<const Strength*> strengths = {nullptr, &mild, &strong, &broken};
  for (const Strength* strength : strengths) {
    for (const std::int64_t T : token_counts) {
      for (const std::int64_t K : widths) {
        for (const std::int64_t H : head_counts) compare_delta_rule(both, Packed(T), same(H), K, K, strength);
      }
    }
    for (const auto& [K, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {128, 20}, {100, 256}, {256, 256}, {300, 36}}) {
      for (const std::int64_t T : {1, 65}) compare_delta_rule(both, Packed(T), same(3), K, V, strength);
      compare_delta_rule(both, Packed(1), same(3), K, V, strength, true, true);
    }
    compare_delta_rule(both, Packed(1), Heads{6, 3, 3, 2, 6}, 60, 20, strength);
    for (const Heads& heads : {Heads{4, 2, 2, 4, 4}, Heads{4, 4, 4, 2, 1}, Heads{6, 3, 3, 2, 6}}) {
      for (const Packed* segments : {&mixed_segments, &single_row_segments, &empty_segments}) {
        compare_delta_rule(both, *segments, heads, 60, 20, strength);
        compare_delta_rule(both, *segments, heads, 60, 20, strength, false);
        compare_delta_rule(both, *segments, heads, 60, 20, strength, true, true);
      }
    }
  }
}

TEST_CASE("device: gated delta rule with a decay per channel", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const Strength* strength : {&mild, &strong, &broken}) {
    for (const std::int64_t T : {1, 63, 130}) {
      for (const auto& [K, V] : {std::pair{60, 60}, {1, 60}, {16, 128}, {128, 128}, {128, 20}, {256, 256}, {300, 36}}) {
        for (const bool unit : {false, true}) compare_delta_rule(both, Packed(T), same(3), K, V, strength, true, unit, true);
      }
    }
    for (const Heads& heads : {Heads{4, 2, 2, 4, 4}, Heads{4, 4, 4, 2, 1}, Heads{6, 3, 3, 2, 6}}) {
      for (const Packed* segments : {&mixed_segments, &single_row_segments, &empty_segments}) {
        for (const bool has_beta : {false, true}) compare_delta_rule(both, *segments, heads, 60, 20, strength, has_beta, false, true);
      }
    }
  }
}

namespace {

struct Attention {
  std::vector<std::int32_t> queries, keys;  // of each segment
  std::int64_t H, Hkv, d, V;
  std::int64_t window = 0;
  BlockTopK blocks = {};
  float least_value = -1;  // of v, whose largest is 1
};

/// With and without the choice of blocks as a result.
void compare_attention(const Comparison& both, const Attention& a) {
  Random random(1);
  const Packed queries(a.queries, {}, 0), keys(a.keys, {}, 0);
  const Numbers q = random.uniform({queries.rows(), a.H, a.d}), k = random.uniform({keys.rows(), a.Hkv, a.d}),
                v = random.uniform({keys.rows(), a.Hkv, a.V}, a.least_value, 1);
  const bool step = *std::max_element(a.queries.begin(), a.queries.end()) <= 1;
  const std::string name = with("softmax_attention", {{"queries", queries.rows()},
                                                      {"keys", keys.rows()},
                                                      {"segments", queries.view().count()},
                                                      {"H", a.H},
                                                      {"Hkv", a.Hkv},
                                                      {"d", a.d},
                                                      {"V", a.V},
                                                      {"window", a.window},
                                                      {"block size", a.blocks.block_size},
                                                      {"topk", a.blocks.topk},
                                                      {"until", a.blocks.until}});
  for (const bool selected : {false, true}) {
    if (selected && a.blocks.topk <= 1) continue;
    both(name + (selected ? ", selected blocks" : ""), [&](Side& s) {
      SoftmaxAttention op;
      op.q = s.in(q), op.k = s.in(k), op.v = s.in(v);
      op.scale = 0.4F, op.window = a.window, op.blocks = a.blocks;
      op.segments = queries.view(), op.cu_seqlens_k = keys.cu_seqlens;
      op.o = s.out({queries.rows(), a.H, a.V});
      if (selected) op.selected_blocks = s.out_i32({queries.rows(), a.H, a.blocks.topk - 1});
      s->softmax_attention(op, step ? 0 : 64);
    });
  }
}

}  // namespace

TEST_CASE("device: softmax attention, full and with a window", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : token_counts) {
    const auto n = static_cast<std::int32_t>(T);
    for (const std::int64_t d : widths) {
      for (const std::int64_t H : head_counts) compare_attention(both, {{n}, {n}, H, 1, d, d});
    }
    for (const std::int64_t window : {1, 5, 64, 1000}) compare_attention(both, {{n}, {n}, 3, 3, 60, 60, window});
    for (const auto& [d, V] : {std::pair{60, 1}, {1, 60}, {16, 128}, {256, 256}, {20, 300}}) {
      compare_attention(both, {{n}, {n + 100}, 4, 2, d, V});
    }
  }
  for (const std::int64_t Hkv : {1, 3, 6}) {
    for (const std::int64_t window : {0, 30}) {
      compare_attention(both, {{5, 0, 1, 70, 0, 17}, {5, 9, 200, 70, 0, 150}, 6, Hkv, 20, 12, window});
      compare_attention(both, {{1, 0, 1, 1, 1}, {300, 9, 1, 64, 1025}, 6, Hkv, 60, 60, window});
      compare_attention(both, {{8, 3, 0}, {300, 3, 0}, 6, Hkv, 128, 257, window});
      compare_attention(both, {{0, 0}, {3, 0}, 6, Hkv, 16, 16, window});
    }
  }
}

// So many keys that a query's are cut into parts, of more than one length.
TEST_CASE("device: softmax attention of few queries, many keys", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const auto& [H, Hkv] : {std::pair{2, 2}, {4, 2}, {3, 1}, {24, 4}, {12, 1}}) {
    for (const std::int64_t window : {0, 1500}) {
      compare_attention(both, {{1, 0, 1, 1}, {4096, 9, 127, 129}, H, Hkv, 60, 60, window});
      compare_attention(both, {{8, 1}, {700, 300}, H, Hkv, 128, 33, window});
    }
    // The mean of so many values of both signs would be a small difference of large sums.
    compare_attention(both, {{1}, {17000}, H, Hkv, 256, 256, 0, {}, 0.5F});
    compare_attention(both, {{2, 1}, {520, 1}, H, Hkv, 576, 512});
  }
  // So many heads of a key head that its keys go through shared memory.
  for (const auto& [H, Hkv] : {std::pair{32, 1}, {33, 1}, {72, 2}, {80, 1}}) {
    compare_attention(both, {{1, 0, 1, 1}, {4096, 9, 127, 129}, H, Hkv, 60, 64});
    compare_attention(both, {{8, 1}, {700, 300}, H, Hkv, 128, 36, 500});
    compare_attention(both, {{2, 1}, {520, 1}, H, Hkv, 320, 300, 0, {}, 0.5F});
    compare_attention(both, {{1}, {3000}, H, Hkv, 62, 33});  // rows that 16 bytes do not divide
  }
}

TEST_CASE("device: softmax attention over chosen blocks", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const BlockTopK& blocks : {BlockTopK{16, 3, 1000}, BlockTopK{16, 3, 100}, BlockTopK{7, 5, 133}, BlockTopK{150, 2, 299},
                                  BlockTopK{1, 4, 1000}, BlockTopK{16, 100, 1000}, BlockTopK{1, 290, 1000}, BlockTopK{64, 2, 64},
                                  BlockTopK{4, 1, 1000}, BlockTopK{0, 3, 1000}, BlockTopK{4, 3, 0}, BlockTopK{512, 3, 1000}}) {
    compare_attention(both, {{300, 0, 1, 47}, {300, 9, 200, 150}, 4, 2, 16, 12, 0, blocks});
    compare_attention(both, {{65}, {333}, 3, 1, 60, 130, 0, blocks});
    compare_attention(both, {{1, 0, 1, 1}, {300, 9, 1, 64}, 4, 2, 60, 60, 0, blocks});
    compare_attention(both, {{7}, {290}, 3, 3, 128, 257, 0, blocks});
    compare_attention(both, {{1, 3}, {300, 1600}, 4, 2, 60, 60, 0, blocks});
  }
}

TEST_CASE("device: equal scores choose the same blocks", "[device]") {
  const Comparison both;
  if (!both) return;
  const std::vector<std::int32_t> cu_seqlens{0, 100};
  for (const std::int32_t queries : {100, 5}) {
    const std::vector<std::int32_t> cu_seqlens_q{0, queries};
    const Numbers q({queries, 2, 16}), k = Random(1).uniform({100, 1, 16}), v = Random(2).uniform({100, 1, 16});
    both(with("softmax_attention, ties", {{"queries", queries}}), [&](Side& s) {
      SoftmaxAttention op;
      op.q = s.in(q), op.k = s.in(k), op.v = s.in(v), op.blocks = {8, 4, 1000};
      op.segments = {cu_seqlens_q, {}}, op.cu_seqlens_k = cu_seqlens;
      op.o = s.out({queries, 2, 16}), op.selected_blocks = s.out_i32({queries, 2, 3});
      s->softmax_attention(op, 64);
    });
  }
}

namespace {

struct Sparse {
  std::vector<std::int32_t> cu_seqlens;
  bool delta_rule;
  std::int64_t N, writers, readers;
  GatePlace place = GatePlace::before_l2;
  bool gate_q = true, gate_k = true;
};

void compare_sparse_state(const Comparison& both, const Sparse& c, std::int64_t H, std::int64_t K, std::int64_t V) {
  Random random(1);
  const std::int64_t T = c.cu_seqlens.back(), S = static_cast<std::int64_t>(c.cu_seqlens.size()) - 1, W = std::max(c.writers, c.readers);
  const Numbers q = random.uniform({T, 2, H, K}), k = random.uniform({T, 2, H, K}), v = random.uniform({T, H, V}),
                log_decay = c.delta_rule ? random.uniform({T, 2, H}, -0.5F, 0) : random.uniform({T, 2, H, K}, -0.5F, 0),
                beta = random.uniform({T, 2, H}, 0, 1), gate = random.uniform({T, c.N}, 0.05F, 1),
                initial = random.uniform({S * (1 + c.N), H, K, V});
  std::vector<std::int32_t> selected(static_cast<std::size_t>(T * W));
  make_cpu_backend()->top_k(Tensor(selected.data(), DType::i32, {T, W}), gate.view());
  const std::string name = with("sparse_state", {{"T", T},
                                                 {"sequences", S},
                                                 {"delta rule", c.delta_rule},
                                                 {"N", c.N},
                                                 {"writers", c.writers},
                                                 {"readers", c.readers},
                                                 {"after L2", c.place == GatePlace::after_l2},
                                                 {"gates", c.gate_q},
                                                 {"H", H},
                                                 {"K", K},
                                                 {"V", V}});
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    SparseState op;
    op.q = s.in(q), op.k = s.in(k), op.v = s.in(v), op.log_decay = s.in(log_decay), op.gate = s.in(gate);
    if (c.delta_rule) op.beta = s.in(beta);
    op.selected = s.in(selected, Shape{T, W});
    op.writers = c.writers, op.readers = c.readers, op.gate_q = c.gate_q, op.gate_k = c.gate_k, op.gate_place = c.place;
    op.write_scale = 0.5F, op.scale = 0.5F, op.cu_seqlens = c.cu_seqlens;
    op.initial_state = before, op.final_state = after, op.o = s.out({T, H, V});
    s->sparse_state(op, T == S ? 0 : 64, s.workspace());
  });
}

/// Pairs and routing made on the way into the states.
void compare_routed_state(const Comparison& both, std::int64_t T, bool delta_rule, bool softmax, bool by_logits, std::int64_t N) {
  Random random(1);
  constexpr std::int64_t H = 3, K = 40, V = 36, writers = 2, readers = 3;
  const Numbers v = random.uniform({T, H, V}), beta = random.uniform({T, 2, H}, 0, 1), logits = random.uniform({T, N}, -3, 3),
                log_decay = delta_rule ? random.uniform({T, 2, H}, -0.5F, 0) : random.uniform({T, 2, H, K}, -0.5F, 0),
                initial = random.uniform({1 + N, H, K, V});
  const std::vector<Numbers> rows{random.uniform({T, H * K}, -2, 2), random.uniform({T, H * K}, -2, 2), random.uniform({T, H * K}, -2, 2)};
  const std::string name = with("sparse state and its sources",
                                {{"T", T}, {"delta rule", delta_rule}, {"softmax", softmax}, {"by logits", by_logits}, {"N", N}});
  compare_memory(both, name, initial, [&](Side& s, ConstTensor before, Tensor after) {
    const auto pair = [&](int first, bool softmax_too) {
      return SparsePair{s.out_whole({T, 2, H, K}), s.in(rows[0]), s.in(rows[static_cast<std::size_t>(first)]), s.in(rows[2]),
                        Activation::silu,          softmax_too};
    };
    const SparseSources from{pair(1, false), pair(0, softmax), s.in(logits), s.out_whole({T, N}), s.out_i32({T, 3}), by_logits};
    const std::vector<std::int32_t> all{0, static_cast<std::int32_t>(T)};
    SparseState op;
    op.q = from.q.pair, op.k = from.k.pair, op.v = s.in(v), op.log_decay = s.in(log_decay), op.gate = from.gate;
    if (delta_rule) op.beta = s.in(beta);
    op.selected = from.selected, op.writers = writers, op.readers = readers, op.cu_seqlens = all;
    op.initial_state = before, op.final_state = after, op.o = s.out({T, H, V});
    s->sparse_state(op, from, T == 1 ? 0 : 64, s.workspace());
  });
}

}  // namespace

TEST_CASE("device: sparse state and what it is made of", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const std::int64_t T : {1, 7}) {
    for (const bool delta_rule : {false, true}) {
      for (const bool softmax : {false, true}) {
        for (const bool by_logits : {false, true}) {
          for (const std::int64_t N : {4, 70, 300}) compare_routed_state(both, T, delta_rule, softmax, by_logits, N);
        }
      }
    }
  }
}

TEST_CASE("device: sparse state", "[device]") {
  const Comparison both;
  if (!both) return;
  for (const bool delta_rule : {false, true}) {
    for (const std::int64_t T : token_counts) {
      const auto n = static_cast<std::int32_t>(T);
      for (const GatePlace place : {GatePlace::before_l2, GatePlace::after_l2}) {
        compare_sparse_state(both, {{0, n}, delta_rule, 4, 1, 1, place}, 3, 60, 60);
        compare_sparse_state(both, {{0, n, n, n + 5}, delta_rule, 4, 2, 2, place}, 1, 16, 64);
      }
    }
    for (const auto& [writers, readers] : {std::pair{1, 3}, {3, 1}, {0, 2}, {2, 0}}) {
      compare_sparse_state(both, {{0, 1}, delta_rule, 9, writers, readers}, 2, 64, 128);
      compare_sparse_state(both, {{0, 1}, delta_rule, 9, writers, readers, GatePlace::after_l2, false, false}, 2, 150, 36);
      compare_sparse_state(both, {{0, 30, 41}, delta_rule, 9, writers, readers}, 2, 64, 128);
      compare_sparse_state(both, {{0, 30, 41}, delta_rule, 9, writers, readers, GatePlace::after_l2, false, false}, 2, 64, 128);
    }
    compare_sparse_state(both, {{0, 1, 2, 3}, delta_rule, 4, 2, 2}, 3, 60, 60);
    compare_sparse_state(both, {{0, 1300, 2500}, delta_rule, 4, 2, 3}, 1, 16, 16);
    // More runs than a block has threads, and more than the device sorts.
    for (const std::int32_t sequences : {300, 1000}) {
      std::vector<std::int32_t> cu_seqlens{0};
      for (std::int32_t a = 0; a < sequences; ++a) cu_seqlens.push_back(cu_seqlens.back() + a % 4);
      compare_sparse_state(both, {cu_seqlens, delta_rule, 9, 2, 2}, 1, 16, 16);
    }
  }
}

}  // namespace statescope::device_memory_test
