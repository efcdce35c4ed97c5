// What views may ask of a run beyond a snapshot, and the plain data they get: each question is a value, its Answer computed from the
// checkpoint off the interface thread, shared read-only. Which equations answer them: engine/analysis/answers.h.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/cosine_block.h"
#include "engine/pyramid.h"
#include "engine/snapshot.h"

namespace statescope {
// T tokens in the run; slots, H heads, K key rows, V value columns as in LayerInfo. A layer without what is asked for has an empty answer.

/// What stays the same for the whole run: what each layer is made of.
struct ModelMap {
  static constexpr Accuracy accuracy = kExact;
  struct TensorRow {
    std::string name;  // as in the checkpoint
    std::vector<std::int64_t> shape;
    std::string dtype;  // "bfloat16"
    std::int64_t bytes = 0;
  };
  struct LayerRow {
    std::vector<TensorRow> tensors;
    std::int64_t parameters = 0, weight_bytes = 0;
    std::int64_t state_bytes = 0;            // float32, whatever the length; softmax layers: 0
    std::int64_t state_bytes_per_token = 0;  // of keys and values that grow with the run
  };
  std::vector<LayerRow> layers;
  LayerRow rest;  // embedding, last norm, head
};
struct ModelMapQuestion {
  using Answer = ModelMap;
  bool operator==(const ModelMapQuestion&) const = default;
};

/// A layer's numbers of every token in [from, to), in their order (spec §12.1, §12.7, §12.10).
struct LayerSeries {
  static constexpr Accuracy accuracy = kReplayed;
  std::int64_t from = 0, to = 0, slots = 0;
  std::vector<float> residual_norm;                        // [n] ‖x_t‖ as it enters the block
  std::vector<float> state_norm;                           // [slots, n] ‖S_t‖_F over all heads
  std::vector<float> update_norm;                          // [slots, n] ‖S_t − S_{t−1}‖_F
  std::vector<float> routing_entropy;                      // [n] in [0, 1]; empty without routing
  std::vector<float> gate_entropy_q, gate_entropy_k;       // [n] in [0, 1], of the head gates; empty without
  std::vector<std::int32_t> gate_winner_q, gate_winner_k;  // [n]
};
struct LayerSeriesQuestion {
  std::int64_t layer = 0, from = 0, to = 0;
  using Answer = LayerSeries;
  bool operator==(const LayerSeriesQuestion&) const = default;
};

/// How well the tokens in [from, to) were predicted by those before them.
struct LossSeries {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t from = 0, to = 0;
  std::vector<float> loss;     // [n] −ln p of the token that stands there, nat; NaN for the run's first
  std::vector<float> entropy;  // [n] of the prediction after it, nat
};
struct LossSeriesQuestion {
  std::int64_t from = 0, to = 0;
  using Answer = LossSeries;
  bool operator==(const LossSeriesQuestion&) const = default;
};

/// What the model predicts after each token in [from, to), at most 512 of them.
struct Predictions {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t from = 0, to = 0;             // as asked, within the run
  std::vector<std::vector<Prediction>> top;  // [n] the most probable next tokens, at most 5
  std::vector<float> next_probability;       // [n] of the token that follows in the run; NaN after the last
  std::vector<std::int32_t> next_rank;       // [n] how many are more probable; −1 after the last
  std::vector<float> entropy;                // [n] nat
  std::vector<float> logits;                 // [n, ids] of the ids asked for
  std::vector<float> probabilities;          // [n, ids]
};
struct PredictionsQuestion {
  std::int64_t from = 0, to = 0;
  std::vector<std::int32_t> ids;  // whose logits are wanted
  using Answer = Predictions;
  bool operator==(const PredictionsQuestion&) const = default;
};

/// How fast a slot forgets (spec §12.3, §12.4). Its channels are what decays on its own: the key rows or value columns of the head asked
/// for, or, where a head decays as one, all heads. All of the gates alone: what interventions did to a state is not in it.
struct Decay {
  static constexpr Accuracy accuracy = kRecomputed;
  enum class Axis { none, heads, rows, columns };
  Axis axis = Axis::none;  // none: this memory never forgets; everything below is empty
  std::int64_t channels = 0;
  std::vector<std::int32_t> token;     // [n] of those asked for, that visited the slot: the others leave it as it is
  std::vector<float> log_decay;        // [n, channels] log α, nat, ≤ 0
  std::vector<double> log_sum;         // [n, channels] of log α up to and including token[i]: Δ_{t,s} = exp(log_sum_t − log_sum_s)
  std::vector<float> half_life;        // [channels] tokens, over the whole run; infinite without decay
  std::vector<float> width;            // [channels] receptive field at θ = 0.001, tokens: mean of the run's last `measured`
  std::vector<std::int64_t> censored;  // [channels] of how many of those the first token of the run is still within it
  std::int64_t measured = 0;
};
/// Half-life and receptive field are of the whole run, the rest of its tokens in [from, to), at most 512.
struct DecayQuestion {
  std::int64_t layer = 0, slot = 0, head = 0, from = 0, to = 0;
  using Answer = Decay;
  bool operator==(const DecayQuestion&) const = default;
};

/// Competition of the heads at every token of the run (spec §12.7, A13).
struct HeadContest {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t heads = 0;                        // 0: the layer has no head gates
  std::vector<float> gate_q, gate_k;             // [T, H] G^Q, G^K: probability
  std::vector<float> entropy_q, entropy_k;       // [T] in [0, 1]
  std::vector<std::int32_t> winner_q, winner_k;  // [T]
  std::vector<float> margin_q, margin_k;         // [T] the largest less the next
  std::vector<float> flow;                       // [T] C_{t,t} = Σ_h G^Q_t G^K_t
  std::vector<float> read_gate_effective;        // [T]; empty where the model has no such channel
};
struct HeadGatesQuestion {
  std::int64_t layer = 0;
  using Answer = HeadContest;
  bool operator==(const HeadGatesQuestion&) const = default;
};

/// What the gates of the tokens in [from, to), at most 512, would be with their logits times λ: a probe, which changes nothing in the run
/// (SLA Thm 4.2, 4.3).
struct SharpenedGates {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<float> gate_q, gate_k;                // [n, H]
  std::vector<float> entropy_q, entropy_k;          // [n]
  std::vector<float> flow;                          // [n, n] C_{t,s} = Σ_h G^Q_t G^K_s, row t; also where s > t
  std::vector<float> lambda;                        // [m] of the curves
  std::vector<float> curve_q, curve_k, curve_flow;  // [n, m] entropies and C_{t,t} at those λ
};
struct SharpenedGatesQuestion {
  std::int64_t layer = 0, from = 0, to = 0;
  double lambda = 1;
  using Answer = SharpenedGates;
  bool operator==(const SharpenedGatesQuestion&) const = default;
};

/// The delta rule at every token that visited a slot (spec §12.9), π = k S̄ its prediction. Nothing where the memory follows another rule.
struct DeltaRule {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<std::int32_t> token;                                    // [n]
  std::vector<float> prediction, value, error, erase, write, update;  // [n] ‖π‖, ‖v‖, ‖v − π‖; Frobenius norms of what is taken, put, both
  std::vector<float> cosine;                                          // [n] of π and v
  std::vector<float> beta, alpha;                                     // [n]
  std::vector<float> mended;      // [n] β ‖k‖²: the part of the error that is mended, for k S becomes π + β ‖k‖² (v − π)
  std::vector<float> eigenvalue;  // [n] of the transition along k: α (1 − β ‖k‖²)
};
struct DeltaRuleQuestion {
  std::int64_t layer = 0, slot = 0, head = 0;
  using Answer = DeltaRule;
  bool operator==(const DeltaRuleQuestion&) const = default;
};

/// One token's update of a head, split: S_t = S_{t−1} + decayed + erased + written, per slot (spec §12.2, §12.9). What an intervention
/// did after the token is in it: scaling as decay, an imported state as decay of all there was and a write.
struct Update {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t slots = 0, rows = 0, columns = 0;
  std::vector<float> decayed, erased, written;  // [slots, K, V]; zeros where the token did not come
  std::vector<float> write_weight;              // [slots, K] ω, the token's own coefficients of v (delta rule: of v − π)
};
struct UpdateQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  using Answer = Update;
  bool operator==(const UpdateQuestion&) const = default;
};

/// The states of a head after another token than the cursor's, to compare with.
struct StateQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  using Answer = HeadState;
  bool operator==(const StateQuestion&) const = default;
};

/// Those of all heads: what another model's are compared with.
struct LayerStateQuestion {
  std::int64_t layer = 0, token = 0;
  using Answer = LayerState;
  bool operator==(const LayerStateQuestion&) const = default;
};

/// Who wrote a cell, a row or all of a slot's state of a head after a token, or what the token reads there: signed parts that add up to
/// what is there (spec §12.8).
struct History {
  static constexpr Accuracy accuracy = kRecomputed;
  std::vector<std::int32_t> token;  // [n] that came to the slot, ascending; again where an intervention followed it
  std::vector<float> coefficient;   // [n] c of the token's value vector v in the row; of all rows √Σc²; of a read A_{t,s}
  std::vector<float> written;       // [n] the coefficient it was written with, before later decay and erasure; of all rows and of a
                                    // read likewise √Σ(β k)²
  std::vector<float> contribution;  // [n] to a cell c v[column]; to a norm ‖Z‖ ⟨c ⊗ v, Z⟩ / ‖Z‖, Z the row, all rows or what is read
  double sum = 0;                   // Σ contribution
  double shown = 0;                 // the state's own number, a cell or a norm: the sum but for rounding
};
struct HistoryQuestion {
  std::int64_t layer = 0, slot = 0, head = 0;
  std::int64_t row = 0;      // −1: all rows, the slot's state as one
  std::int64_t column = -1;  // −1: the whole row
  std::int64_t token = 0;
  bool read = false;  // what the token reads of the slot, with its query; row and column say nothing then
  using Answer = History;
  bool operator==(const HistoryQuestion&) const = default;
};

/// Likeness of the states of one layer after a token (spec §12.5).
struct Similarity {
  static constexpr Accuracy accuracy = accurate_to(1e-5);
  static constexpr std::int64_t kMostRows = 4096;  // with more, `cosine`, `order` and the numbers of both are left out
  std::int64_t partitions = 0, rows = 0, heads = 0;
  std::vector<std::int64_t> order;  // [P·K] rows as they stand in `cosine`
  Pyramid cosine;                   // [P·K, P·K] of the rows of the head asked for, in that order; NaN where a row is zero
  std::vector<float> row_norm;      // [P·K]
  double mean_abs = 0, within = 0, between = 0, min_cosine = 0;
  std::int64_t zero_rows = 0;
  std::vector<float> partition_cosine;  // [P, P] of the partitions' states as vectors, of that head
  std::vector<float> head_cosine;       // [H, H] of the heads' states as vectors
};
struct SimilarityQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  bool clustered = false;  // like rows beside each other (average linkage of |cosine|), zero ones last; else as they are numbered
  using Answer = Similarity;
  bool operator==(const SimilarityQuestion&) const = default;
};

/// Likeness of a layer's states after a token to those that another model has (spec §12.5): rows stand for the other's, columns for this
/// model's. What cannot be compared because its shape differs is empty.
struct CrossSimilarity {
  static constexpr Accuracy accuracy = accurate_to(1e-5);
  CosineBlock of_rows;   // [P'·K', P·K] of the rows of the heads asked for, V = V'; empty also where there are more than
                         // Similarity::kMostRows of both together
  CosineBlock of_heads;  // [H', H] of the slots' states of each head as vectors, K = K' and V = V'
};
struct CrossSimilarityQuestion {
  std::int64_t layer = 0, slot = 0, head = 0, token = 0;
  std::shared_ptr<const LayerState> other;  // what the other model answers to a LayerStateQuestion
  std::int64_t other_slot = 0, other_head = 0;
  using Answer = CrossSimilarity;
  bool operator==(const CrossSimilarityQuestion&) const = default;
};

/// The tokens from, from + step, …: `count` of them.
struct TokenSteps {
  std::int64_t from = 0, step = 1, count = 0;
  bool operator==(const TokenSteps&) const = default;
};

/// Likeness of one slot's state after different tokens: a tile of the map of all of them, cosines of the states as vectors.
struct TokenSimilarity {
  static constexpr Accuracy accuracy = accurate_to(1e-5);
  static constexpr std::int64_t kMostTokens = 128;  // along a side
  std::vector<float> cosine;                        // [rows, columns]; NaN where a state is zero
};
struct TokenSimilarityQuestion {
  std::int64_t layer = 0, slot = 0, head = 0;
  TokenSteps rows, columns;
  using Answer = TokenSimilarity;
  bool operator==(const TokenSimilarityQuestion&) const = default;
};

/// Singular values of every head's stacked state after a token (spec §12.5).
struct Spectra {
  static constexpr Accuracy accuracy = accurate_to(1e-4, "the value");
  std::int64_t heads = 0, count = 0, partitions = 0;
  std::vector<float> sigma;                              // [H, n] descending
  std::vector<float> entropy, rank, rank_of_squares;     // [H]: Hs; effective rank of σ (Roy and Vetterli), of σ²
  std::vector<float> partition_entropy, partition_rank;  // [H, P] of σ of each partition alone
};
struct SpectraQuestion {
  std::int64_t layer = 0, token = 0;
  using Answer = Spectra;
  bool operator==(const SpectraQuestion&) const = default;
};

/// The same summary along the run.
struct RankSeries {
  static constexpr Accuracy accuracy = accurate_to(1e-4, "the value");
  static constexpr std::int64_t kMostTokens = 64;
  std::int64_t heads = 0;
  std::vector<std::int64_t> token;         // [n] evenly, the last one included
  std::vector<float> entropy, rank, norm;  // [n, H]
};
struct RankSeriesQuestion {
  std::int64_t layer = 0;
  using Answer = RankSeries;
  bool operator==(const RankSeriesQuestion&) const = default;
};

/// A_{t,s} with o_t = Σ_s A_{t,s} v_s, of some tokens t (spec §12.8); softmax layers: their weights.
struct AttentionMap {
  static constexpr Accuracy accuracy = kRecomputed;
  static constexpr std::int64_t kMostRows = 128;
  std::int64_t heads = 0;     // H; of softmax layers too, whose last head answers for those beyond it
  std::vector<float> weight;  // [rows, columns] the A_{t,s} farthest from 0 of the tokens s that a column stands for; 0 for s > t
  std::vector<float> before;  // [rows] Σ |A_{t,s}| over the tokens s before the columns', slot by slot
  std::vector<float> all;     // [rows] the same over all tokens
};
/// A column stands for the `step` tokens from its own on. All rows' tokens are among those that columns stand for.
struct AttentionQuestion {
  std::int64_t layer = 0, head = 0;
  TokenSteps rows, columns;
  std::int64_t slot = -1;  // −1: all slots together
  using Answer = AttentionMap;
  bool operator==(const AttentionQuestion&) const = default;
};

/// What became of a needle (engine/analysis/needle_fate.h says what each number is): parts of what it had written, after each token from
/// its last one to the question.
struct NeedleStory {
  static constexpr Accuracy accuracy = kRecomputed;
  struct Curve {
    std::int64_t slot = 0, head = 0;
    double written = 0;               // ‖C‖ after the needle's last visit: heads compare within a layer
    double read_share = 0;            // of what the question reads there; NaN where it does not read
    std::vector<std::int32_t> token;  // [n ≤ 512] visits from the needle's last on, evenly, the last before the question included
    std::vector<float> kept;          // [n] ‖C‖ over `written`
  };
  struct Cause {
    std::int64_t layer = 0, slot = 0, head = 0;
    std::string what;        // "decay", "erasure", "overwriting", "misrouting"
    double lost = 0;         // of all that the needle wrote
    std::int64_t token = 0;  // that took most of it
  };
  struct LayerFate {
    bool has_memory = false;                                                    // that the needle wrote to
    double clear = 0, decayed = 0, erased = 0, overwritten = 0, misrouted = 0;  // parts of 1
    double read_share = 0;                                                      // the largest over heads and slots
    std::int64_t read_slot = 0, read_head = 0;                                  // where that is
    std::vector<float> kept;    // [question − end + 2], token end − 1 first: 1 − decayed − erased as they grow
    std::vector<Curve> curves;  // most written first, at most 12
    std::int64_t places = 0;    // slots and heads that the needle wrote to
  };
  struct Fall {
    std::int64_t token = 0;
    double by = 0;  // from the token before to this one
  };
  std::vector<LayerFate> layers;
  LayerFate all;              // its kept: mean over the layers; no curves
  std::vector<Cause> causes;  // largest first, at most 64
  std::vector<Fall> falls;    // of all.kept: the largest five of those by 0.02 and more, ascending
};
struct NeedleQuestion {
  std::int64_t begin = 0, end = 0, question = 0;
  using Answer = NeedleStory;
  bool operator==(const NeedleQuestion&) const = default;
};

/// What a branch predicts that the branch which it left does not, after each token from the first that they may not share.
struct BranchPredictions {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t from = 0;
  std::vector<float> kl;      // [n] KL(left ‖ this) of the next token, nat, as far as both read the same
  std::vector<float> logits;  // [n] the largest change of a logit
  std::int64_t changed = -1;  // the first token after which another next token is the most probable; −1: none
  std::int64_t parted = -1;   // the first token from which on they read different texts; −1: none
};
struct BranchPredictionsQuestion {
  using Answer = BranchPredictions;
  bool operator==(const BranchPredictionsQuestion&) const = default;
};

/// States of all layers after a token, on a branch and on the one that it left: Frobenius norms over all slots and heads.
struct BranchStates {
  static constexpr Accuracy accuracy = kReplayed;
  std::vector<double> left, here, difference;  // [layers]; zeros for layers without a state
};
struct BranchStatesQuestion {
  std::int64_t token = 0;
  using Answer = BranchStates;
  bool operator==(const BranchStatesQuestion&) const = default;
};

/// How long ago the rows of a head's states were written, and how long half of a write has lasted (spec §12.2, §12.3).
struct RowAges {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t slots = 0, rows = 0;
  std::vector<std::int32_t> written;  // [slots, K] tokens since one counted as a write of the row (ρ's threshold); −1: none yet
  std::vector<std::int32_t> halved;  // [slots, K] least n so that decay left no more than half of what stood there n tokens ago; −1: none
};
struct RowAgesQuestion {
  std::int64_t layer = 0, head = 0, token = 0;
  using Answer = RowAges;
  bool operator==(const RowAgesQuestion&) const = default;
};

/// To how many rows of each slot the tokens in [from, to), at most 512, write (spec §12.2); NaN where a token does not come.
struct WriteSpreads {
  static constexpr Accuracy accuracy = kRecomputed;
  std::int64_t slots = 0, rows = 0;
  std::vector<float> effective;  // [slots, n] (Σ|ω|)² / Σω²: K for equal weights, 1 for a single row
  std::vector<float> counted;    // [slots, n] K ρ: rows with |ω_r| ≥ τ Σ|ω|
};
struct WriteSpreadQuestion {
  std::int64_t layer = 0, head = 0, from = 0, to = 0;
  using Answer = WriteSpreads;
  bool operator==(const WriteSpreadQuestion&) const = default;
};

/// What has a name of all that spec §12 asks of a layer and a token (engine/analysis/observables.h has the list).
struct Observables {
  struct Quantity {
    std::string name;                 // "routing_entropy"
    std::string axes;                 // of one token's numbers: "[slots, heads]"; empty: one number
    std::string unit, equation;       // and its source
    Accuracy accuracy;                // how exact it is
    std::vector<std::int64_t> shape;  // of one token's numbers; empty: one number
    std::vector<float> values;        // [tokens, shape …]; NaN where there is none
  };
  std::vector<Quantity> quantities;  // those that the layer has
};
/// Of the tokens in [from, to), at most 512.
struct ObservablesQuestion {
  std::int64_t layer = 0, from = 0, to = 0;
  std::vector<std::string> names;  // empty: all
  std::int64_t since = 0;          // the token from which decay is counted up
  using Answer = Observables;
  bool operator==(const ObservablesQuestion&) const = default;
};

/// How often the open checkpoint finds a needle, by how long the text is and how deep the needle stands: the prompts of `statescope eval
/// --task niah`, read apart from the run. It comes a few prompts at a time, the same number for every cell.
struct NeedleGrid {
  static constexpr Accuracy accuracy = kExact;  // counted, of so many prompts; what they say of others a view estimates
  struct Failure {
    std::int64_t index = 0;  // of the prompt
    std::int64_t place = 0;  // in the answer, of its first wrong token; 0 by reply
  };
  struct Cell {
    std::int64_t right = 0, read = 0;  // prompts
    std::vector<Failure> failures;     // by index
    std::string impossible;            // why there are no such prompts; empty: there are
  };
  std::string unit, haystack;  // what lengths count: "words", "bytes", "tokens"; among what the needles stand: "filler", "prose"
  bool by_reply = false;       // right is a reply that contains the answer, else an answer that is predicted token by token
  std::vector<Cell> cells;     // [depths, lengths] as asked
};
struct NeedleGridQuestion {
  std::int64_t needles = 1, samples = 20;  // in a text; prompts of a cell
  std::vector<std::int64_t> lengths;
  std::vector<int> depths;  // percent
  using Answer = NeedleGrid;
  bool operator==(const NeedleGridQuestion&) const = default;
};

/// One prompt of that grid, and where in its answer to look.
struct NeedleExample {
  std::int64_t needles = 1, length = 0;
  int depth = 0;  // percent
  std::string haystack;
  std::int64_t index = 0, place = 0;
};

using Question = std::variant<ModelMapQuestion, LayerSeriesQuestion, LossSeriesQuestion, PredictionsQuestion, DecayQuestion,
                              HeadGatesQuestion, SharpenedGatesQuestion, DeltaRuleQuestion, UpdateQuestion, StateQuestion,
                              LayerStateQuestion, HistoryQuestion, SimilarityQuestion, CrossSimilarityQuestion, TokenSimilarityQuestion,
                              SpectraQuestion, RankSeriesQuestion, AttentionQuestion, NeedleQuestion, BranchPredictionsQuestion,
                              BranchStatesQuestion, RowAgesQuestion, WriteSpreadQuestion, ObservablesQuestion, NeedleGridQuestion>;

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
