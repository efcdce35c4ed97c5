#include "engine/analysis/predictions.h"

#include <algorithm>
#include <cmath>

#include "engine/analysis/softmax.h"
#include "engine/error.h"
#include "engine/model/host_floats.h"

namespace statescope {
namespace {

constexpr std::size_t kPass = 256;  // tokens

/// Mean over rows of `vocab` logits of what `figure` says of row i.
template <class Figure>
double mean_over_rows(std::span<const float> logits, std::size_t vocab, const Figure& figure) {
  double sum = 0;
  for (std::size_t row = 0; row < logits.size(); row += vocab) sum += figure(row);
  return sum * static_cast<double>(vocab) / static_cast<double>(logits.size());
}

}  // namespace

void ReadingProgress::add(std::int64_t tokens) {
  done_ += tokens;
  if (tell_ && !tell_(std::min(1.0, static_cast<double>(done_) / static_cast<double>(tokens_)))) throw Error("cancelled");
}

std::vector<float> host_logits(Model& model, ConstTensor hidden) {
  const Buffer memory = model.backend().allocate(static_cast<std::size_t>(hidden.rows() * model.vocab()) * sizeof(float));
  const Tensor device(memory.get(), DType::f32, {hidden.rows(), model.vocab()});
  model.logits(device, hidden);
  return host_floats(model.backend(), device);
}

void read_passes(Model& model, ModelState& state, std::span<const std::int32_t> ids, const ForwardOptions& options, Observer* observer,
                 ReadingProgress& progress, const SeenPass& seen) {
  const Buffer memory = model.backend().allocate(std::min(kPass, ids.size()) * static_cast<std::size_t>(model.hidden()) * sizeof(float));
  for (std::size_t first = 0; first < ids.size(); first += kPass) {
    const auto part = ids.subspan(first, std::min(kPass, ids.size() - first));
    const Tensor hidden(memory.get(), DType::f32, {static_cast<std::int64_t>(part.size()), model.hidden()});
    model.forward(state, part, options, hidden, observer);
    seen(first, hidden);
    progress.add(std::ssize(part));
  }
}

double token_nll(std::span<const float> logits, std::size_t vocab, std::size_t row, std::int32_t id) {
  return -std::log(Softmax(logits.subspan(row * vocab, vocab)).probability(id));
}

double total_variation(std::span<const float> a, std::span<const float> b, std::size_t vocab) {
  return mean_over_rows(a, vocab, [&](std::size_t row) {
    const Softmax p(a.subspan(row, vocab)), q(b.subspan(row, vocab));
    double sum = 0;
    for (std::int32_t v = 0; v < static_cast<std::int32_t>(vocab); ++v) sum += std::abs(p.probability(v) - q.probability(v));
    return sum / 2;
  });
}

double mean_entropy(std::span<const float> logits, std::size_t vocab) {
  return mean_over_rows(logits, vocab, [&](std::size_t row) { return Softmax(logits.subspan(row, vocab)).entropy(); });
}

}  // namespace statescope
