// What may be asked of a run beyond a snapshot, and the plain data that answers it. Each question has a file of its own beside this one: a
// value, and its Answer, computed from the checkpoint off the interface thread and shared read-only. Which equations answer them:
// engine/answers/answers.h. In all of them: T tokens in the run; slots, H heads, K key rows, V value columns as in LayerInfo. A layer
// without what is asked for has an empty answer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/findings/attention.h"
#include "engine/findings/branch_predictions.h"
#include "engine/findings/branch_states.h"
#include "engine/findings/choices.h"
#include "engine/findings/cross_similarity.h"
#include "engine/findings/decay.h"
#include "engine/findings/delta_rule.h"
#include "engine/findings/experts.h"
#include "engine/findings/head_gates.h"
#include "engine/findings/history.h"
#include "engine/findings/layer_series.h"
#include "engine/findings/loss_series.h"
#include "engine/findings/model_map.h"
#include "engine/findings/needle.h"
#include "engine/findings/needle_grid.h"
#include "engine/findings/observables.h"
#include "engine/findings/predictions.h"
#include "engine/findings/rank_series.h"
#include "engine/findings/remembered.h"
#include "engine/findings/row_ages.h"
#include "engine/findings/similarity.h"
#include "engine/findings/spectra.h"
#include "engine/findings/state.h"
#include "engine/findings/token_similarity.h"
#include "engine/findings/token_steps.h"
#include "engine/findings/update.h"
#include "engine/findings/write_spread.h"
#include "engine/snapshot.h"

namespace statescope {

using Question =
    std::variant<ModelMapQuestion, LayerSeriesQuestion, LossSeriesQuestion, PredictionsQuestion, DecayQuestion, HeadGatesQuestion,
                 SharpenedGatesQuestion, DeltaRuleQuestion, UpdateQuestion, StateQuestion, LayerStateQuestion, HistoryQuestion,
                 SimilarityQuestion, CrossSimilarityQuestion, TokenSimilarityQuestion, SpectraQuestion, RankSeriesQuestion,
                 AttentionQuestion, NeedleQuestion, BranchPredictionsQuestion, BranchStatesQuestion, RowAgesQuestion, WriteSpreadQuestion,
                 RememberedQuestion, ChoicesQuestion, ExpertsQuestion, ObservablesQuestion, NeedleGridQuestion>;

/// What came of a question so far.
struct Finding {
  std::shared_ptr<const void> answer;  // of the question's Answer, while progress < 1 a part of it; null: not yet, or refused
  std::string refused;                 // in a line, why there is no answer
  double progress = 0;                 // 0 … 1 while it is worked out
};

struct Peer;

/// The findings that a view is given beside its snapshot: of the same run, with the same tokens.
class Findings {
 public:
  void set(Question question, Finding finding) {
    for (auto& [known, value] : all_) {
      if (known == question) return void(value = std::move(finding));
    }
    all_.emplace_back(std::move(question), std::move(finding));
  }
  template <class Q>
  void answer(Q question, typename Q::Answer answer) {
    set(std::move(question), {std::make_shared<const typename Q::Answer>(std::move(answer)), {}, 1});
  }
  /// Null: not asked yet.
  const Finding* find(const Question& question) const {
    for (const auto& [known, value] : all_) {
      if (known == question) return &value;
    }
    return nullptr;
  }
  /// Null: not known yet, or refused.
  template <class Q>
  const typename Q::Answer* get(const Q& question) const {
    return share(question).get();
  }
  template <class Q>
  std::shared_ptr<const typename Q::Answer> share(const Q& question) const {
    const Finding* finding = find(Question(question));
    return finding ? std::static_pointer_cast<const typename Q::Answer>(finding->answer) : nullptr;
  }

  /// The other model that this one is compared with; null: there is none.
  std::shared_ptr<const Peer> peer;
  /// All other models under the same cursor, `peer` among them, by their letters; without findings of their own.
  std::vector<std::shared_ptr<const Peer>> beside;

 private:
  std::vector<std::pair<Question, Finding>> all_;  // few: those of one view
};

/// Another model that reads the same prompt, at the place where this one is.
struct Peer {
  std::string own_letter, letter;            // "A" and "B": the model shown and this other one
  std::shared_ptr<const Snapshot> snapshot;  // null: not known there, and `missing` says why
  std::string missing;                       // in a line
  std::int64_t same_until = 0;               // the tokens before this one are the same in both
  Findings findings;                         // of what the view asked about it
};

}  // namespace statescope
