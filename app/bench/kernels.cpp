// The operations, each with the bytes it must move (operands once, states read and written) and the multiplications and additions of its
// chunk form (half a chunk of 64 scores on average). Operands are of the types that a model's pass over so many tokens has.
#include "app/bench/bench.h"
#include "kernels/backend.h"

namespace statescope {
namespace {

constexpr std::int64_t H = 8, D = 128, C = 64;  // heads, rows and columns of a state, chunk
constexpr std::int64_t kHidden = 2048;
constexpr double kFloat = sizeof(float), kState = static_cast<double>(D * D);
constexpr double kProductFlops = 4 * kState + 2 * D * C, kDeltaFlops = 6 * kState + 4 * D * C;  // of a token in a head

/// Of a number of such a pass.
double activation_bytes(const Bench& bench, std::int64_t T) { return static_cast<double>(size_of(bench.backend()->activation_type(T))); }

std::vector<std::int32_t> sequences(std::int64_t count, std::int64_t tokens) {
  std::vector<std::int32_t> cu_seqlens{0};
  for (std::int64_t s = 0; s < count; ++s) cu_seqlens.push_back(static_cast<std::int32_t>((s + 1) * tokens));
  return cu_seqlens;
}

/// `decay_width` of a token in a head: D: per channel, 1: per head, 0: none.
Work product_work(Operands& operands, Backend& backend, std::int64_t S, std::int64_t T, std::int64_t decay_width) {
  const std::int64_t rows = S * T;
  DecayedOuterProduct op{operands.activation({rows, H, D}, T), operands.activation({rows, H, D}, T), operands.activation({rows, H, D}, T)};
  if (decay_width == 1) op.log_decay = operands.uniform({rows, H}, -0.1F, 0);
  if (decay_width > 1) op.log_decay = operands.uniform({rows, H, D}, -0.1F, 0);
  op.segments.cu_seqlens = operands.indices(sequences(S, T));
  op.final_state = operands.uniform({S, H, D, D});
  op.initial_state = op.final_state;
  op.o = operands.empty_activation({rows, H, D}, T);
  return [&backend, op, T] { backend.decayed_outer_product(op, T == 1 ? 0 : C); };
}

Work delta_work(Operands& operands, Backend& backend, std::int64_t S, std::int64_t T) {
  const std::int64_t rows = S * T;
  const Tensor k = operands.activation({rows, H, D}, T);
  backend.l2_norm(k, k);
  GatedDeltaRule op{operands.activation({rows, H, D}, T), k, operands.activation({rows, H, D}, T)};
  op.log_decay = operands.uniform({rows, H}, -0.1F, 0);
  op.beta = operands.uniform({rows, H}, 0, 1);
  op.segments.cu_seqlens = operands.indices(sequences(S, T));
  op.final_state = operands.uniform({S, H, D, D});
  op.initial_state = op.final_state;
  op.o = operands.empty_activation({rows, H, D}, T);
  return [&backend, op, T] { backend.gated_delta_rule(op, T == 1 ? 0 : C); };
}

void bench_memories(const Bench& bench, std::int64_t T) {
  Backend& backend = *bench.backend();
  const double tokens = static_cast<double>(T * H), rows = 4 * D * activation_bytes(bench, T), state = 2 * H * kState * kFloat;
  const auto product = [&](const std::string& decay, std::int64_t width) {
    bench.row("decayed outer product, " + decay, tokens * (rows + static_cast<double>(width) * kFloat) + state, tokens * kProductFlops,
              [&](Operands& operands) { return product_work(operands, backend, 1, T, width); });
  };
  product("no decay", 0);
  product("decay per head", 1);
  product("decay per channel", D);
  bench.row("gated delta rule", tokens * (rows + 2 * kFloat) + state, tokens * kDeltaFlops,
            [&](Operands& operands) { return delta_work(operands, backend, 1, T); });

  constexpr std::int64_t S = 128;
  const double states = S * state, of_token = 4 * D * activation_bytes(bench, 1);
  bench.row("decayed outer product, one token of 128 sequences", S * H * (of_token + D * kFloat) + states, 5 * S * H * kState,
            [&](Operands& operands) { return product_work(operands, backend, S, 1, D); });
  bench.row("gated delta rule, one token of 128 sequences", S * H * (of_token + 2 * kFloat) + states, 7 * S * H * kState,
            [&](Operands& operands) { return delta_work(operands, backend, S, 1); });
}

/// The shared state and, of N partitions, one a token.
void bench_sparse_state(const Bench& bench, std::int64_t T, std::int64_t N) {
  Backend& backend = *bench.backend();
  const double tokens = static_cast<double>(T * H);
  const double bytes = tokens * D * (6 * activation_bytes(bench, T) + 2 * kFloat) + static_cast<double>(T * N) * kFloat +
                       2 * static_cast<double>((1 + N) * H) * kState * kFloat;
  bench.row("sparse state, decayed outer product, n" + std::to_string(N) + "k1", bytes, 2 * tokens * kProductFlops,
            [&](Operands& operands) {
              SparseState op{operands.activation({T, 2, H, D}, T), operands.activation({T, 2, H, D}, T), operands.activation({T, H, D}, T)};
              op.log_decay = operands.uniform({T, 2, H, D}, -0.1F, 0);
              const Tensor gate = operands.uniform({T, N}, 0, 1), selected = operands.empty({T, 1}, DType::i32);
              backend.top_k(selected, gate);
              op.gate = gate;
              op.selected = selected;
              op.cu_seqlens = operands.indices(sequences(1, T));
              op.final_state = operands.uniform({1 + N, H, D, D});
              op.initial_state = op.final_state;
              op.o = operands.empty_activation({T, H, D}, T);
              return [&backend, &operands, op] { backend.sparse_state(op, C, operands.workspace); };
            });
}

void bench_attention(const Bench& bench, std::int64_t T) {
  Backend& backend = *bench.backend();
  const auto attention = [&](const std::string& name, double visible, std::int64_t window) {
    const double tokens = static_cast<double>(T * H);
    bench.row("softmax attention, " + name, tokens * 4 * D * activation_bytes(bench, T), tokens * 4 * D * visible, [&](Operands& operands) {
      SoftmaxAttention op{operands.activation({T, H, D}, T), operands.activation({T, H, D}, T), operands.activation({T, H, D}, T)};
      op.scale = 0.1F;
      op.window = window;
      op.segments.cu_seqlens = op.cu_seqlens_k = operands.indices(sequences(1, T));
      op.o = operands.empty_activation({T, H, D}, T);
      return [&backend, op] { backend.softmax_attention(op, C); };
    });
  };
  attention("all tokens", static_cast<double>(T) / 2, 0);
  constexpr std::int64_t window = 512;
  attention("window of 512", window, window);
}

void bench_linear(const Bench& bench, std::int64_t T) {
  Backend& backend = *bench.backend();
  const auto linear = [&](std::int64_t rows, std::int64_t in, std::int64_t out, DType dtype) {
    const auto n = static_cast<double>(rows), x = static_cast<double>(in), y = static_cast<double>(out);
    const std::string name = "linear, " + std::to_string(rows) + (rows == 1 ? " row × [" : " rows × [") + std::to_string(out) + ", " +
                             std::to_string(in) + "] " + std::string(name_of(dtype));
    const double activations = n * (x + y) * activation_bytes(bench, rows);
    bench.row(name, x * y * static_cast<double>(size_of(dtype)) + activations, 2 * n * x * y, [&](Operands& operands) {
      return [&backend, weight = operands.weight(out, in, dtype), from = operands.activation({rows, in}, rows),
              to = operands.empty_activation({rows, out}, rows)] { backend.linear(to, from, weight); };
    });
  };
  for (const DType dtype : {DType::f32, DType::bf16}) {
    linear(1, kHidden, 32768, dtype);
    linear(T, kHidden, 2 * kHidden, dtype);
  }
  constexpr std::int64_t width = 5632;
  const auto swiglu = [&](std::int64_t rows) {
    const auto n = static_cast<double>(rows), numbers = 3.0 * kHidden * width;
    bench.row("swiglu, " + std::to_string(rows) + (rows == 1 ? " row" : " rows") + ", 2048 → 5632 → 2048 bfloat16",
              2 * numbers + 2 * n * kHidden * activation_bytes(bench, rows), 2 * n * numbers, [&](Operands& operands) {
                const ConstTensor gate = operands.weight(width, kHidden, DType::bf16), up = operands.weight(width, kHidden, DType::bf16),
                                  down = operands.weight(kHidden, width, DType::bf16);
                return [&backend, &operands, gate, up, down, x = operands.activation({rows, kHidden}, rows),
                        y = operands.empty_activation({rows, kHidden}, rows)] {
                  const Workspace::Mark mark(operands.workspace);
                  backend.swiglu(y, x, gate, up, down, operands.workspace);
                };
              });
  };
  swiglu(1);
  swiglu(T);
}

void bench_rows(const Bench& bench, std::int64_t T) {
  Backend& backend = *bench.backend();
  const Shape shape{T, kHidden}, heads{T, kHidden / D, D};
  const auto row = [&](const std::string& name, double activations, double floats, const std::function<Work(Operands&)>& prepare) {
    const auto numbers = static_cast<double>(shape.size());
    bench.row(name, numbers * (activations * activation_bytes(bench, T) + floats * kFloat), numbers * (activations + floats), prepare);
  };
  row("rms_norm", 1, 1, [&](Operands& operands) {
    return [&backend, x = operands.uniform(shape), y = operands.empty_activation(shape, T), weight = operands.uniform({kHidden})] {
      backend.rms_norm(y, x, weight, 1e-6F);
    };
  });
  row("add", 1, 2, [&](Operands& operands) {
    return [&backend, x = operands.uniform(shape), other = operands.activation(shape, T)] { backend.add(x, x, other); };
  });
  row("gate, silu", 3, 0, [&](Operands& operands) {
    return [&backend, x = operands.activation(shape, T), gate = operands.activation(shape, T), y = operands.empty_activation(shape, T)] {
      backend.gate(y, x, gate, Activation::silu);
    };
  });
  row("l2_norm of heads", 2, 0, [&](Operands& operands) {
    return [&backend, x = operands.activation(heads, T), y = operands.empty_activation(heads, T)] { backend.l2_norm(y, x); };
  });
  row("rope", 2, 0, [&](Operands& operands) {
    return [&backend, x = operands.activation(heads, T), y = operands.empty_activation(heads, T)] { backend.rope(y, x, 0, 10000, D); };
  });
  row("log_sigmoid_decay", 1, 1, [&](Operands& operands) {
    return [&backend, x = operands.activation(shape, T), y = operands.empty(shape)] { backend.log_sigmoid_decay(y, x, 16, -100); };
  });
  row("short convolution", 2, 0, [&](Operands& operands) {
    constexpr std::int64_t taps = 4;
    ShortConvolution op{operands.activation(shape, T), operands.uniform({kHidden, taps})};
    op.act = Activation::silu;
    op.segments.cu_seqlens = operands.indices(sequences(1, T));
    op.final_cache = operands.uniform({1, taps - 1, kHidden});
    op.initial_cache = op.final_cache;
    op.y = operands.empty_activation(shape, T);
    return [&backend, op] { backend.short_convolution(op); };
  });
  constexpr std::int64_t N = 64, k = 4;
  bench.row("top_k, 4 of 64", static_cast<double>(T * (N + k)) * kFloat, static_cast<double>(T * N), [&](Operands& operands) {
    return [&backend, scores = operands.uniform({T, N}), ids = operands.empty({T, k}, DType::i32)] { backend.top_k(ids, scores); };
  });
}

/// Of the states of many heads. Products of pairs, which are symmetric, count once; the arithmetic of singular values is that of ZᵀZ alone.
void bench_analysis(const Bench& bench, std::int64_t B) {
  Backend& backend = *bench.backend();
  constexpr std::int64_t R = 640;
  const auto b = static_cast<double>(B), r = static_cast<double>(R), v = static_cast<double>(D);
  const std::string states = " of " + std::to_string(B) + " states [640, 128]";
  bench.row("row cosine" + states, b * r * (r + v) * kFloat, b * r * (r + 1) * v, [&](Operands& operands) {
    return [&backend, z = operands.uniform({B, R, D}), cosine = operands.empty({B, R, R})] { backend.row_cosine(cosine, z); };
  });
  bench.row("singular values" + states, b * (r + 1) * v * kFloat, b * r * v * (v + 1), [&](Operands& operands) {
    return [&backend, &operands, z = operands.uniform({B, R, D}), sigma = operands.empty({B, D})] {
      const Workspace::Mark mark(operands.workspace);
      backend.singular_values(sigma, z, operands.workspace);
    };
  });
}

}  // namespace

void bench_kernels(const Bench& bench, std::int64_t tokens) {
  bench_memories(bench, tokens);
  for (const std::int64_t N : {4, 64}) bench_sparse_state(bench, tokens, N);
  bench_attention(bench, tokens);
  bench_linear(bench, tokens);
  bench_rows(bench, tokens);
  bench_analysis(bench, bench.on_device() ? 18 * 18 : 18);
}

}  // namespace statescope
