// What a state space with HiPPO's matrix still says of its input (spec §17.17).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/analysis/legendre.h"
#include "engine/analysis/parts.h"
#include "engine/answers/answers.h"
#include "engine/answers/own_values.h"
#include "engine/error.h"

namespace statescope {

Remembered answer(const RememberedQuestion& question, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(question.layer);
  if (layer.memory != "state space" || layer.slots() != 1) return {};
  check_index("token", question.token, evidence.tokens());
  check_index("channel", question.channel, layer.columns);
  const std::int64_t N = layer.rows, n = question.to - question.from;
  if (n < 1 || n > 512 || question.from < 0 || question.to > evidence.tokens())
    throw Error(fmt::format("no window of tokens {} to {}", question.from, question.to));
  const std::vector<float> A = layer_tensor(question.layer, ".kernel.A", N * N, evidence),
                           B = layer_tensor(question.layer, ".kernel.B", N, evidence),
                           log_dt = layer_tensor(question.layer, ".kernel.log_dt", layer.columns, evidence);
  const ChannelRows* u = evidence.channel(question.layer, "v");
  if (log_dt.empty() || !u || !is_legendre(A, B))
    throw Error(
        fmt::format("the matrix of layer {} is not HiPPO's: its states are no coefficients of Legendre polynomials", question.layer));
  Remembered all{.entered = {}, .remembered = {}, .step = std::exp(double{log_dt[static_cast<std::size_t>(question.channel)]})};
  const LayerState state = evidence.state(question.layer, question.token);
  std::vector<double> X;
  for (std::int64_t r = 0; r < N; ++r) X.push_back(state.matrix(0, 0)[r * layer.columns + question.channel]);
  for (std::int64_t s = question.from; s < question.to; ++s) {
    all.entered.push_back(u->values[static_cast<std::size_t>(s * layer.columns + question.channel)]);
    // u_s was held for one step: its middle.
    const double ago = (static_cast<double>(question.token - s) + 0.5) * all.step;
    all.remembered.push_back(s > question.token ? std::nanf("") : static_cast<float>(legendre_signal(X, ago)));
  }
  return all;
}

}  // namespace statescope
