// Who wrote the states of a state space that is the same for every token, and what a token reads of them (spec §17.17).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/analysis/parts.h"
#include "engine/answers/state_space.h"
#include "engine/error.h"

namespace statescope {
namespace {

/// States [first, last) of X.
struct StatesAsked {
  std::size_t first = 0, last = 0;

  bool is_one() const { return last - first == 1; }
  /// Of one state itself, of several √Σ X².
  double of(std::span<const double> X) const {
    if (is_one()) return X[first];
    double squares = 0;
    for (std::size_t i = first; i < last; ++i) squares += X[i] * X[i];
    return std::sqrt(squares);
  }
};

double dot(std::span<const double> a, std::span<const double> b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

/// The writers of token `token`'s states, whose numbers channels add to: tokens, before them an edit that replaced what stood there.
class Writers {
 public:
  Writers(const StateSpaceRun& run, std::int64_t token, bool behind) : run_(run), token_(token), behind_(behind) {
    const StateEdit* edit = run.last_replaced(token, behind);
    first_ = edit ? edit->token : 0;
    for (std::vector<double>* all : {&coefficient_, &written_, &contribution_}) all->resize(static_cast<std::size_t>(token - first_ + 1));
  }

  /// Of a channel's states X: contribution = direction·X u; `coefficient` and `written` take what they have of other channels, and X.
  template <class Coefficient, class Written>
  void add(const ChannelRule& rule, std::int64_t channel, const std::vector<double>& direction, const Coefficient& coefficient,
           const Written& written) {
    run_.walk_back(rule, channel, token_, behind_, 0, [&](std::int64_t s, const std::vector<double>& X, bool is_token) {
      const auto at = static_cast<std::size_t>(s - first_);
      contribution_[at] += dot(direction, X) * (is_token ? run_.entered(s, channel) : 1);
      coefficient_[at] = coefficient(coefficient_[at], X);
      written_[at] = written(written_[at], is_token ? rule.B : X);
    });
  }
  History history(double shown) const {
    History history{.token = std::vector<std::int32_t>(coefficient_.size()),
                    .coefficient = {coefficient_.begin(), coefficient_.end()},
                    .written = {written_.begin(), written_.end()},
                    .contribution = {contribution_.begin(), contribution_.end()},
                    .sum = std::accumulate(contribution_.begin(), contribution_.end(), 0.0),
                    .shown = shown};
    std::iota(history.token.begin(), history.token.end(), static_cast<std::int32_t>(first_));
    return history;
  }

 private:
  const StateSpaceRun& run_;
  std::int64_t token_, first_ = 0;
  bool behind_;
  std::vector<double> coefficient_, written_, contribution_;
};

/// Rows [from, to) of one part of the states, in a single column or in all.
History written_history(const HistoryQuestion& question, const StateSpaceRun& run, Evidence& evidence) {
  const std::int64_t N = run.space.states, channels = run.space.channels;
  const std::int64_t from = std::max<std::int64_t>(question.row, 0), to = question.row < 0 ? N : question.row + 1;
  const std::int64_t column = std::max<std::int64_t>(question.column, 0), end = question.column < 0 ? channels : question.column + 1;
  const HeadState state = evidence.head_state(question.layer, question.head, question.token);
  const float* const S = state.matrix(question.slot);
  const bool one_cell = question.column >= 0;
  const double shown =
      one_cell ? double{S[from * channels + column]} : norm({S + from * channels, static_cast<std::size_t>((to - from) * channels)});
  const StatesAsked asked{static_cast<std::size_t>(question.slot * N + from), static_cast<std::size_t>(question.slot * N + to)};
  const auto of_cells = [&](double before, std::span<const double> X) { return one_cell ? asked.of(X) : std::hypot(before, asked.of(X)); };
  Writers writers(run, question.token, true);
  for (std::int64_t c = column; c < end; ++c) {
    const ChannelRule rule(run.space, c);
    std::vector<double> direction(rule.B.size());
    for (std::int64_t r = from; r < to; ++r) {
      const double part_of_norm = shown > 0 ? S[r * channels + c] / shown : 0;
      direction[static_cast<std::size_t>(question.slot * N + r)] = one_cell ? 1 : part_of_norm;
    }
    writers.add(rule, c, direction, of_cells, of_cells);
    evidence.tell(static_cast<double>(c + 1 - column) / static_cast<double>(end - column));
  }
  return writers.history(shown);
}

/// C, of complex states only that of one part: together they are what is read.
std::vector<double> reader_of(const ChannelRule& rule, std::int64_t slot, std::int64_t N) {
  std::vector<double> C(rule.C.size());
  std::copy_n(rule.C.begin() + slot * N, N, C.begin() + slot * N);
  return C;
}

/// o [channels], what the token reads of the slot's states before it and of its own input.
std::vector<float> read_by(const HistoryQuestion& question, const StateSpaceRun& run, Evidence& evidence) {
  HeadState before;
  if (question.token > 0) before = evidence.head_state(question.layer, question.head, question.token - 1);
  std::vector<float> o;
  for (std::int64_t c = 0; c < run.space.channels; ++c) {
    const ChannelRule rule(run.space, c);
    std::vector<double> X = before.values.empty() ? std::vector<double>(rule.B.size()) : states_of_channel(before, c);
    rule.advance(X);
    const std::vector<double> C = reader_of(rule, question.slot, run.space.states);
    o.push_back(static_cast<float>(dot(C, X) + dot(C, rule.B) * run.entered(question.token, c)));
  }
  return o;
}

History read_history(const HistoryQuestion& question, const StateSpaceRun& run, Evidence& evidence) {
  const std::vector<float> o = read_by(question, run, evidence);
  const double shown = norm(o);
  Writers writers(run, question.token, false);
  for (std::int64_t c = 0; c < run.space.channels; ++c) {
    const ChannelRule rule(run.space, c);
    const std::vector<double> C = reader_of(rule, question.slot, run.space.states);
    std::vector<double> direction = C;
    for (double& x : direction) x *= shown > 0 ? o[static_cast<std::size_t>(c)] / shown : 0;
    const auto mean = [&](double before, std::span<const double> X) {
      return before + std::abs(dot(C, X)) / static_cast<double>(run.space.channels);
    };
    const StatesAsked asked{static_cast<std::size_t>(question.slot * run.space.states),
                            static_cast<std::size_t>((question.slot + 1) * run.space.states)};
    const auto all = [&](double before, std::span<const double> X) { return std::hypot(before, asked.of(X)); };
    writers.add(rule, c, direction, mean, all);
    evidence.tell(static_cast<double>(c + 1) / static_cast<double>(run.space.channels));
  }
  return writers.history(shown);
}

}  // namespace

History history_of_state_space(const HistoryQuestion& question, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(question.layer);
  check_index("slot", question.slot, layer.slots());
  check_index("head", question.head, layer.heads);
  check_index("token", question.token, evidence.tokens());
  if (!question.read && question.row >= 0) check_index("row", question.row, layer.rows);
  if (!question.read && question.column >= 0) check_index("column", question.column, layer.columns);
  if (!question.read && question.row < 0 && question.column >= 0) throw Error("a column without a row has no history");
  const StateSpaceRun run(question.layer, evidence);
  return question.read ? read_history(question, run, evidence) : written_history(question, run, evidence);
}

Update update_of_state_space(const UpdateQuestion& question, Evidence& evidence) {
  const LayerInfo& layer = evidence.layer(question.layer);
  check_index("head", question.head, layer.heads);
  check_index("token", question.token, evidence.tokens());
  const StateSpaceRun run(question.layer, evidence);
  HeadState before;
  if (question.token > 0) before = evidence.head_state(question.layer, question.head, question.token - 1);
  const auto rows = static_cast<std::size_t>(layer.slots() * layer.rows), columns = static_cast<std::size_t>(layer.columns);
  Update update{layer.slots(), layer.rows, layer.columns, {}, {}, {}, std::vector<float>(rows)};
  for (std::vector<float>* all : {&update.decayed, &update.erased, &update.written}) all->resize(rows * columns);
  for (std::size_t c = 0; c < columns; ++c) {
    const auto channel = static_cast<std::int64_t>(c);
    const ChannelRule rule(run.space, channel);
    const std::vector<double> was = before.values.empty() ? std::vector<double>(rows) : states_of_channel(before, channel);
    std::vector<double> left = was, written = rule.B;
    rule.advance(left);
    for (double& x : written) x *= run.entered(question.token, channel);
    for (const StateEdit& edit : run.edits) {
      if (edit.token != question.token) continue;
      const std::vector<double> replaced = edit.replaced ? states_of_channel(*edit.replaced, channel) : std::vector<double>();
      for (std::size_t i = 0; i < rows; ++i) {
        const double scaled = edit.factors[i % edit.factors.size()] * (left[i] + written[i]) - written[i];
        left[i] = edit.replaced ? -written[i] : scaled;
        if (edit.replaced) written[i] += replaced[i];
      }
    }
    for (std::size_t i = 0; i < rows; ++i) {
      update.decayed[i * columns + c] = static_cast<float>(left[i] - was[i]);
      update.written[i * columns + c] = static_cast<float>(written[i]);
      update.write_weight[i] = std::hypot(update.write_weight[i], static_cast<float>(rule.B[i]));
    }
  }
  return update;
}

}  // namespace statescope
