// A state space that is the same for every token (spec §17.17): the rule that each channel follows, and who wrote its states.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/analysis/evidence.h"
#include "engine/analysis/needle_fate.h"
#include "engine/analysis/state_space_parameters.h"
#include "engine/answers/state_edits.h"
#include "engine/findings/history.h"
#include "engine/findings/update.h"

namespace statescope {

StateSpaceParameters state_space_parameters(std::int64_t layer, const Evidence& evidence);

/// One channel in the float32 that the model computes with: X ← A X + B u, o = C X. Of complex states X [2, N] has real and imaginary
/// parts, and C is that of o = 2 Re(C X).
struct ChannelRule {
  ChannelRule(const StateSpaceParameters& space, std::int64_t channel);

  /// X ← A X
  void advance(std::vector<double>& X) const;
  /// [X, X] of `steps` steps; rows are contiguous.
  std::vector<double> advance_by(std::int64_t steps) const;

  bool diagonal;
  std::vector<double> A;     // [N, N]; diagonal [2, N]
  std::vector<double> B, C;  // [X]
};

/// A layer's run: what entered its channels, and what interventions did to its states.
class StateSpaceRun {
 public:
  /// Throws Error.
  StateSpaceRun(std::int64_t layer, Evidence& evidence);

  /// u of a token in a channel.
  double entered(std::int64_t token, std::int64_t channel) const {
    return u_->values[static_cast<std::size_t>(token * space.channels + channel)];
  }
  /// The last edit that replaced the states up to `token`, of those behind `token` itself only if `behind`; null: none.
  const StateEdit* last_replaced(std::int64_t token, bool behind) const;

  /// put(s, X, is_token) for s from `token` back to `from`: X is what an input of 1 at token s is in a channel's states at `token`; where
  /// the states were replaced, once and last what is left of those that were put in their place. `behind`: behind the edits that followed
  /// `token`.
  using Put = std::function<void(std::int64_t s, const std::vector<double>& X, bool is_token)>;
  void walk_back(const ChannelRule& rule, std::int64_t channel, std::int64_t token, bool behind, std::int64_t from, const Put& put) const;

  StateSpaceParameters space;
  std::vector<StateEdit> edits;

 private:
  const ChannelRows* u_;
};

/// Coefficients are those of the channel's input u: of a cell Ā^{t−s} B̄, of what token t reads the mean |C̄ Ā^{t−s} B̄| over the channels. A
/// complex state is read as one, whichever of its parts is asked about. Throws Error.
History history_of_state_space(const HistoryQuestion& question, Evidence& evidence);
/// Decayed is (Ā − I) X, by which complex states turn, too; the weight of a row is √Σ B̄² over the channels. Throws Error.
Update update_of_state_space(const UpdateQuestion& question, Evidence& evidence);

/// One place, or none where the needle wrote nothing. Interference is along what is left of the needle, which the rule has turned since.
/// Throws Error.
std::vector<NeedlePlace> needle_in_state_space(std::int64_t layer, TokenRange needle, std::int64_t question, std::size_t events,
                                               Evidence& evidence, const std::function<void(double fraction)>& tell);

/// The states X of one channel, behind a token.
std::vector<double> states_of_channel(const HeadState& state, std::int64_t channel);
/// û of the input so many tokens ago, where A is HiPPO's: it was held for one step, whose middle this is.
double remembered_input(std::span<const double> X, double step, std::int64_t ago);

}  // namespace statescope
