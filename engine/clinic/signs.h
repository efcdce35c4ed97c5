// The signs of the illnesses that a layer can have. Each looks at one layer's figures over several sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/clinic/clinic.h"
#include "engine/clinic/means.h"

namespace statescope {

/// What several sequences say of one layer: means over those that say something.
class LayerSigns {
 public:
  LayerSigns(std::span<const SequenceReport> sequences, std::size_t layer) : sequences_(sequences), layer_(layer) {}

  std::int64_t index() const { return static_cast<std::int64_t>(layer_); }
  const LayerReport& any() const { return sequences_.front().layers[layer_]; }
  bool has_memory() const { return !any().heads.empty(); }
  double of(const std::function<double(const LayerReport&)>& figure) const {
    std::vector<double> values;
    for (const SequenceReport& sequence : sequences_) values.push_back(figure(sequence.layers[layer_]));
    return mean_of_known(values);
  }
  /// [N] 1 is fair
  std::vector<double> loads() const {
    std::vector<double> loads(any().routing ? any().routing->balance.load.size() : 0);
    double tokens = 0;
    for (const SequenceReport& sequence : sequences_) tokens += static_cast<double>(sequence.tokens);
    for (const SequenceReport& sequence : sequences_) {
      const std::vector<double>& one = sequence.layers[layer_].routing ? sequence.layers[layer_].routing->balance.load : loads;
      for (std::size_t n = 0; n < loads.size(); ++n) loads[n] += one[n] * static_cast<double>(sequence.tokens) / tokens;
    }
    return loads;
  }
  std::span<const SequenceReport> sequences() const { return sequences_; }

 private:
  std::span<const SequenceReport> sequences_;
  std::size_t layer_;
};

/// What a sign says of a layer; unset: nothing.
struct Symptom {
  std::vector<std::pair<std::string, double>> evidence;
  std::vector<std::int64_t> heads = {};
  std::string sentence;  // of this layer, without its number
  double severity = 0;   // the layer with most is told about
};

namespace signs {

// Of use (signs_of_use.cpp): is the memory written, is it read? The last two of single heads, where the layer as a whole is.
std::optional<Symptom> unwritten(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> unread(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> unwritten_heads(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> unread_heads(const LayerSigns& layer, const ReadOn& read);

// Of choice (signs_of_choice.cpp): do partitions and heads that compete all get something?
std::optional<Symptom> routing_collapse(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> dead_partition(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> head_gate_collapse(const LayerSigns& layer, const ReadOn& read);

// Of content (signs_of_content.cpp): do states hold different things? The last of single heads, whose others hold more.
std::optional<Symptom> duplicate_heads(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> rank_collapse(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> one_direction_heads(const LayerSigns& layer, const ReadOn& read);

// Of time (signs_of_time.cpp): how long is something kept, and where does the state go meanwhile?
std::optional<Symptom> forgets_at_once(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> never_forgets(const LayerSigns& layer, const ReadOn& read);
std::optional<Symptom> length_drift(const LayerSigns& layer, const ReadOn& read);

/// Of the heads for which `says` is true of what was measured of them.
std::vector<std::int64_t> heads_where(const LayerSigns& layer, const std::function<bool(const LayerSigns&, std::size_t)>& says);
/// "head 2", "heads 0, 3"
std::string heads_text(std::span<const std::int64_t> heads);
double of_head(const LayerSigns& layer, std::size_t head, std::vector<double> LayerReport::*figure);

}  // namespace signs
}  // namespace statescope
