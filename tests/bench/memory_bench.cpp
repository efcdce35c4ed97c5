// The memories on this machine: spans in chunks of 64 against the arithmetic they need, steps against the memory they move.

#include <cstdio>

#include "kernels/cpu/parallel.h"
#include "kernels/ops/decayed_outer_product.h"
#include "kernels/ops/gated_delta_rule.h"
#include "kernels/ops/linear.h"
#include "kernels/ops/softmax_attention.h"
#include "tests/bench/bench.h"
#include "tests/kernels/random_tensors.h"

namespace {

using namespace statescope;
using bench::median_seconds;
using testing::Numbers;

constexpr std::int64_t H = 8, K = 128, V = 128, C = 64;

/// `seconds` for `tokens` tokens, with the arithmetic and the memory of one token in one head.
void report(const char* name, int threads, std::int64_t tokens, double seconds, double flops, double bytes) {
  const double all = static_cast<double>(tokens * H);
  std::printf("%-44s %d threads %9.3f ms %9.0f tokens/s %8.0f ns/token/head %7.1f GFLOP/s %6.1f GB/s\n", name, threads, 1e3 * seconds,
              static_cast<double>(tokens) / seconds, 1e9 * seconds / all, 1e-9 * flops * all / seconds, 1e-9 * bytes * all / seconds);
}

/// S sequences of T tokens, with every operand that a recurrent memory may want.
struct Operands {
  std::vector<std::int32_t> cu_seqlens{0};
  Numbers q, k, v, per_channel, per_head, beta, state, o;

  Operands(std::int64_t S, std::int64_t T, float weakest) {
    testing::Random random(1);
    for (std::int64_t s = 1; s <= S; ++s) cu_seqlens.push_back(static_cast<std::int32_t>(s * T));
    q = random.uniform({S * T, H, K});
    k = testing::l2_normalized(random.uniform({S * T, H, K}), K);
    v = random.uniform({S * T, H, V});
    per_channel = random.uniform({S * T, H, K}, weakest, 0);
    per_head = random.uniform({S * T, H}, weakest, 0);
    beta = random.uniform({S * T, H}, 0, 1);
    state = random.uniform({S, H, K, V});
    o = Numbers({S * T, H, V});
  }

  DecayedOuterProduct product(ConstTensor log_decay, DecayAxis axis = DecayAxis::rows) {
    return {q.view(), k.view(), v.view(), log_decay, axis, 1, {cu_seqlens, {}}, state.view(), state.view(), o.view()};
  }
  GatedDeltaRule delta() {
    return {q.view(), k.view(), v.view(), per_head.view(), beta.view(), 1, {cu_seqlens, {}}, state.view(), state.view(), o.view()};
  }
};

// Multiplications and additions per token and head: reading and writing the state, scores and their use over half a chunk on average.
constexpr double product_flops = 4.0 * K * V + C * (K + V), delta_flops = 6.0 * K * V + 2.0 * C * (K + V);
constexpr double row_bytes = 4.0 * (2 * K + 2 * V), state_bytes = 4.0 * 2 * K * V;

void bench_chunks(int threads) {
  const std::int64_t T = 4096;
  Operands operands(1, T, -0.1F), strong(1, T, -10);
  const auto product = [&](const char* name, const DecayedOuterProduct& op, double bytes) {
    report(name, threads, T, median_seconds([&] { decayed_outer_product_chunk(op, C); }), product_flops, row_bytes + bytes);
  };
  product("chunk, no decay", operands.product({}), 0);
  product("chunk, decay per head", operands.product(operands.per_head.view()), 4);
  product("chunk, decay per channel (GLA)", operands.product(operands.per_channel.view()), 4 * K);
  product("chunk, decay per channel, strong", strong.product(strong.per_channel.view()), 4 * K);
  product("chunk, decay per column (GSA)", operands.product(operands.per_channel.view(), DecayAxis::columns), 4 * V);
  const auto delta = [&] { gated_delta_rule_chunk(operands.delta(), C); };
  report("chunk, gated delta rule (GDN)", threads, T, median_seconds(delta), delta_flops, row_bytes + 8);
}

void bench_steps(int threads, std::int64_t S) {
  Operands operands(S, 1, -0.1F);
  char name[64];
  std::snprintf(name, sizeof(name), "step, decay per channel, %lld states", static_cast<long long>(S * H));
  const auto product = [&] { decayed_outer_product_step(operands.product(operands.per_channel.view())); };
  report(name, threads, S, median_seconds(product), 5.0 * K * V, state_bytes);
  std::snprintf(name, sizeof(name), "step, gated delta rule, %lld states", static_cast<long long>(S * H));
  const auto delta = [&] { gated_delta_rule_step(operands.delta()); };
  report(name, threads, S, median_seconds(delta), 7.0 * K * V, state_bytes);
}

void bench_attention(int threads) {
  const std::int64_t T = 4096;
  testing::Random random(1);
  const Numbers q = random.uniform({T, H, K}), k = random.uniform({T, H, K}), v = random.uniform({T, H, V});
  Numbers o({T, H, V});
  const std::vector<std::int32_t> keys{0, T}, one{0, 1};
  SoftmaxAttention op{
      .q = q.view(), .k = k.view(), .v = v.view(), .scale = 0.1F, .segments = {keys, {}}, .cu_seqlens_k = keys, .o = o.view()};
  const auto chunk = [&](const char* name, double visible) {
    report(name, threads, T, median_seconds([&] { softmax_attention_chunk(op, C); }), 2 * visible * (K + V), row_bytes);
  };
  chunk("chunk, attention to 4096 keys", T / 2.0);
  op.window = 512;
  chunk("chunk, attention in a window of 512", 512);
  op.window = 0;
  op.blocks = {256, 4, T};
  chunk("chunk, attention to 4 blocks of 256", 896);
  op.blocks = {};
  op.q = op.q.slice(0, 1);
  op.o = op.o.slice(0, 1);
  op.segments = {one, {}};
  report("step, attention to 4096 keys", threads, 1, median_seconds([&] { softmax_attention_step(op); }), 2.0 * T * (K + V),
         4.0 * T * (K + V));
}

}  // namespace

int main() {
  std::printf("%s; H = %lld, K = V = %lld, chunks of %lld, T = 4096\n", instruction_set(), static_cast<long long>(H),
              static_cast<long long>(K), static_cast<long long>(C));
  const int all = thread_count();
  for (int threads : {1, all}) {
    const ThreadLimit limit(threads);
    bench_chunks(threads);
    for (const std::int64_t S : {1, 5, 32}) bench_steps(threads, S);
    bench_attention(threads);
  }
}
