// What can be asked by name of Hymba's two branches, and of a state space that is the same for every token (spec §17.9, §17.17).
#include <cmath>
#include <complex>

#include "tests/engine/analysis/hippo.h"
#include "tests/engine/answers/observables_asked.h"

namespace statescope::test::observables_of_runs {
namespace {

/// Numbers of a tensor of layer 1 of a state space.
std::vector<double> parameters(const SmallEvidence& run, const std::string& name) {
  for (const StoredTensor& tensor : run.checkpoint->tensors) {
    if (tensor.name != "model.layers.1.s4." + name) continue;
    const std::span<const float> values = floats(tensor);
    return {values.begin(), values.end()};
  }
  throw std::logic_error("no tensor " + name);
}

Observables since(SmallEvidence& run, std::int64_t token, const std::string& name) {
  return answer(ObservablesQuestion{1, 0, kTokens, {name}, token}, run.evidence);
}

/// λ(A) n of channel c, from what is told of that of Ā.
std::complex<double> told(const Asked& asked, double dt, std::size_t n, std::size_t c) {
  const std::size_t at = n * 40 + c;
  return std::complex<double>(std::log(asked.number("eigenvalue_size", 7, at)), asked.number("eigenvalue_turn", 7, at)) / dt;
}

}  // namespace

TEST_CASE("observables by name: how much Hymba's attention and scan read, how alike, and what its memory tokens have of it") {
  SmallEvidence run(hymba_config(), kTokens);
  constexpr std::int64_t H = 4, kv_heads = 2, d = 12, M = 5;
  for (std::int64_t l = 0; l < 3; ++l) {
    const Asked asked(run.evidence, l, 0, kTokens);
    const ChannelRows &attention = *run.evidence.channel(l, "attention_readout"), &scan = *run.evidence.channel(l, "scan_readout"),
                      &q = *run.evidence.channel(l, "attention_q"), &k = *run.evidence.channel(l, "attention_k");
    const std::vector<float> memory = run.evidence.memory_keys(l);
    REQUIRE(std::ssize(memory) == M * kv_heads * d);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      INFO("layer " << l << ", token " << t);
      double aa = 0, bb = 0, ab = 0;
      for (std::size_t i = 0; i < row_of(attention, t).size(); ++i) {
        const double a = row_of(attention, t)[i], b = row_of(scan, t)[i];
        aa += a * a;
        bb += b * b;
        ab += a * b;
      }
      CHECK(same(asked.number("attention_norm", t), std::sqrt(aa)));
      CHECK(same(asked.number("scan_norm", t), std::sqrt(bb)));
      CHECK(same(asked.number("branch_cosine", t), ab / std::sqrt(aa * bb)));
      for (std::int64_t h = 0; h < H; ++h) {
        const auto weight = [&](const float* key) {
          double sum = 0;
          for (std::int64_t i = 0; i < d; ++i) sum += double{row_of(q, t)[static_cast<std::size_t>(h * d + i)]} * key[i];
          return std::exp(sum / std::sqrt(double{d}));
        };
        double of_memory = 0, all = 0;
        for (std::int64_t m = 0; m < M; ++m) of_memory += weight(memory.data() + (m * kv_heads + h / 2) * d);
        for (std::int64_t s = l == 0 ? 0 : std::max<std::int64_t>(0, t - 9); s <= t; ++s) all += weight(row_of(k, s).data() + h / 2 * d);
        CHECK(same(asked.number("memory_token_share", t, static_cast<std::size_t>(h)), of_memory / (of_memory + all)));
      }
    }
  }
  SmallEvidence without(hymba_config({{"num_memory_tokens", 0}}), kTokens);
  const Asked asked(without.evidence, 0, 0, kTokens);
  CHECK(asked.has("branch_cosine"));
  CHECK_FALSE(asked.has("memory_token_share"));
}

TEST_CASE("observables by name: with its kernel a state space reads what it reads, of every token before") {
  for (const char* mode : {"diag", "hippo"}) {
    INFO(mode);
    SmallEvidence run(s4_config(mode), kTokens);
    std::vector<std::vector<float>> kernels;
    for (std::int64_t s = 0; s < kTokens; ++s) kernels.push_back(since(run, s, "kernel_since").quantities.at(0).values);
    const std::vector<double> D = parameters(run, "D");
    const ChannelRows &u = *run.evidence.channel(1, "v"), &readout = *run.evidence.channel(1, "readout");
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (std::size_t c = 0; c < 40; ++c) {
        INFO("token " << t << ", channel " << c);
        double y = D[c] * row_of(u, t)[c];
        for (std::int64_t s = 0; s < kTokens; ++s) {
          const double K = kernels[static_cast<std::size_t>(s)][static_cast<std::size_t>(t) * 40 + c];
          REQUIRE(std::isnan(K) == (s > t));
          if (s <= t) y += K * row_of(u, s)[c];
        }
        CHECK(same(row_of(readout, t)[c], 0.5 * y * std::erfc(-y / std::sqrt(2.0))));
      }
    }
    // Tokens alone and among others
    const Observables one = answer(ObservablesQuestion{1, 20, 21, {"kernel_since"}, 3}, run.evidence);
    CHECK(std::ranges::equal(one.quantities.at(0).values, std::span(kernels[3]).subspan(20 * 40, 40)));
  }
}

TEST_CASE("observables by name: the kernel of a state space is the reference's") {
  for (const char* name : {"s4d", "s4_hippo"}) {
    INFO(name);
    const std::filesystem::path folder = golden_root() / name;
    SmallEvidence run(open_checkpoint(folder), 96);
    const SafetensorsFile io = open_safetensors(folder / "io.safetensors");
    std::int64_t layers = 0;
    for (const StoredTensor& tensor : io.tensors) {  // [D, 96]
      if (!tensor.name.ends_with(".kernel")) continue;
      const std::int64_t layer = tensor.name.at(7) - '0', D = tensor.shape.at(0);
      const Observables found = answer(ObservablesQuestion{layer, 0, 96, {"kernel_since"}, 0}, run.evidence);
      std::vector<float> kernel;
      for (std::int64_t i = 0; i < D * 96; ++i)
        kernel.push_back(found.quantities.at(0).values[static_cast<std::size_t>(i % 96 * D + i / 96)]);
      CHECK(relative_error(kernel, floats(tensor)) < 1e-5);
      ++layers;
    }
    CHECK(layers > 0);
  }
}

TEST_CASE("observables by name: eigenvalues and half-lives of state spaces, diagonal, dense and HiPPO's") {
  SmallEvidence diagonal(s4_config("diag"), kTokens), dense(s4_config("hippo"), kTokens), hippo(hippo_model().checkpoint(), kTokens);
  const auto step = [](const SmallEvidence& run, std::size_t c) { return std::exp(parameters(run, "kernel.log_dt")[c]); };
  const Asked pairs(diagonal.evidence, 1, 0, kTokens), full(dense.evidence, 1, 0, kTokens), legendre(hippo.evidence, 1, 0, kTokens);
  for (const std::size_t c : {0, 17, 39}) {
    INFO("channel " << c);
    for (std::size_t n = 0; n < 5; ++n) {
      const std::complex<double> A(-std::exp(parameters(diagonal, "kernel.log_A_real")[c * 5 + n]),
                                   parameters(diagonal, "kernel.A_imag")[c * 5 + n]);
      CHECK(std::abs(told(pairs, step(diagonal, c), n, c) - A) < 1e-5 * std::abs(A) / step(diagonal, c));
    }
    // Σ λ^p = tr A^p
    const std::vector<double> A = parameters(dense, "kernel.A");
    std::vector<double> power = A;
    for (int p = 1; p <= 10; ++p) {
      double trace = 0, size = 0;
      std::complex<double> sum = 0;
      for (std::size_t n = 0; n < 10; ++n) {
        trace += power[n * 11];
        sum += std::pow(told(full, step(dense, c), n, c), p);
        size += std::pow(std::abs(told(full, step(dense, c), n, c)), p);
      }
      CHECK(std::abs(sum - trace) < 1e-4 * size);
      std::vector<double> next(100);
      for (std::size_t i = 0; i < 1000; ++i)
        next[i / 100 * 10 + i % 10] += power[i / 100 * 10 + i / 10 % 10] * A[i / 10 % 10 * 10 + i % 10];
      power = next;
    }
    for (std::size_t n = 0; n < 10; ++n) {
      const std::size_t at = n * 40 + c;
      CHECK(same(legendre.number("eigenvalue_half_life", 7, at), std::log(2.0) / (step(hippo, c) * static_cast<double>(n + 1))));
      CHECK(legendre.number("eigenvalue_turn", 7, at) == 0);
      CHECK(same(std::pow(full.number("eigenvalue_size", 7, at), full.number("eigenvalue_half_life", 7, at)), 0.5, 1e-4));
      if (n > 0) CHECK(full.number("eigenvalue_size", 7, at) <= full.number("eigenvalue_size", 7, at - 40));
      CHECK(full.number("eigenvalue_size", 30, at) == full.number("eigenvalue_size", 7, at));
    }
  }
  Editable grows(s4_config("hippo"));
  std::ranges::fill(grows.floats("model.layers.1.s4.kernel.A"), 0.0F);
  SmallEvidence still(grows.checkpoint(), kTokens);
  CHECK(std::isinf(Asked(still.evidence, 1, 0, kTokens).number("eigenvalue_half_life", 7)));
}

TEST_CASE("observables by name: what HiPPO's states say of a token's input is the answer's, and of other matrices there is none") {
  SmallEvidence hippo(hippo_model().checkpoint(), kTokens), dense(s4_config("hippo"), kTokens), diagonal(s4_config("diag"), kTokens);
  for (const std::int64_t s : {0, 3, 20}) {
    const Observables::Quantity signal = since(hippo, s, "remembered_since").quantities.at(0);
    for (const std::int64_t t : {0, 3, 19, 20, 32}) {
      for (const std::int64_t c : {0, 25}) {
        const float found = signal.values[static_cast<std::size_t>(t * 40 + c)];
        const Remembered all = answer(RememberedQuestion{.layer = 1, .channel = c, .token = t, .from = s, .to = s + 1}, hippo.evidence);
        CHECK(same(found, all.remembered.at(0)));
        CHECK(std::isnan(found) == (s > t));
      }
    }
  }
  CHECK(since(dense, 3, "remembered_since").quantities.empty());
  CHECK(since(diagonal, 3, "remembered_since").quantities.empty());
}

}  // namespace statescope::test::observables_of_runs
