// What a state space with HiPPO's matrix still says of its input (spec §17.17).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "engine/analysis/legendre.h"
#include "engine/analysis/parts.h"
#include "engine/answers/answers.h"
#include "engine/answers/state_space.h"
#include "engine/error.h"

namespace statescope {

Remembered answer(const RememberedQuestion& question, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(question.layer);
  if (layer.memory != "state space" || layer.slots() != 1) return {};
  check_index("token", question.token, evidence.tokens());
  check_index("channel", question.channel, layer.columns);
  const std::int64_t n = question.to - question.from;
  if (n < 1 || n > 512 || question.from < 0 || question.to > evidence.tokens())
    throw Error(fmt::format("no window of tokens {} to {}", question.from, question.to));
  const StateSpaceParameters space = state_space_parameters(question.layer, evidence);
  const ChannelRows* u = evidence.channel(question.layer, "v");
  if (!u || !is_legendre(space.A, space.B))
    throw Error(
        fmt::format("The matrix of layer {} is up to {:.2g} % off HiPPO's. Only with HiPPO's own are states coefficients of Legendre "
                    "polynomials, which say the input again.",
                    question.layer, 100 * off_legendre(space.A, space.B)));
  Remembered all{.entered = {}, .remembered = {}, .step = space.step(question.channel)};
  const std::vector<double> X = states_of_channel(evidence.head_state(question.layer, 0, question.token), question.channel);
  for (std::int64_t s = question.from; s < question.to; ++s) {
    all.entered.push_back(u->values[static_cast<std::size_t>(s * layer.columns + question.channel)]);
    all.remembered.push_back(s > question.token ? std::nanf("") : static_cast<float>(remembered_input(X, all.step, question.token - s)));
  }
  return all;
}

}  // namespace statescope
