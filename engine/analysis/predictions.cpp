#include "engine/analysis/predictions.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "engine/analysis/softmax.h"
#include "engine/config/host_floats.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::size_t kPass = 256;  // tokens

/// A number for each of n rows, which `make` brings to the device.
std::vector<double> row_numbers(Backend& backend, std::int64_t n, const std::function<void(Tensor)>& make) {
  const Buffer memory = backend.allocate(static_cast<std::size_t>(n) * sizeof(float));
  const Tensor numbers(memory.get(), DType::f32, {n});
  make(numbers);
  const std::vector<float> host = host_floats(backend, numbers);
  return {host.begin(), host.end()};
}

}  // namespace

Logits::Logits(Model& model, ConstTensor hidden)
    : backend_(model.backend()),
      memory_(backend_.allocate(static_cast<std::size_t>(hidden.rows() * model.vocab()) * sizeof(float))),
      rows_(memory_.get(), DType::f32, {hidden.rows(), model.vocab()}) {
  model.logits(rows_, hidden);
}

std::vector<double> Logits::nll(std::span<const std::int32_t> ids) const {
  if (ids.empty()) return {};
  return row_numbers(backend_, std::ssize(ids),
                     [&](Tensor numbers) { backend_.next_token_nll(numbers, rows_.slice(0, std::ssize(ids)), ids.data()); });
}

double Logits::nll(std::int64_t row, std::int32_t id) const {
  return row_numbers(backend_, 1, [&](Tensor number) { backend_.next_token_nll(number, rows_.slice(row, 1), &id); }).front();
}

double Logits::mean_entropy() const {
  const std::vector<float> host = host_floats(backend_, rows_);
  const auto vocab = static_cast<std::size_t>(rows_.row_size());
  double sum = 0;
  for (std::size_t row = 0; row < host.size(); row += vocab) sum += Softmax(std::span(host).subspan(row, vocab)).entropy();
  return sum / static_cast<double>(rows_.rows());
}

double mean_total_variation(Backend& backend, ConstTensor a, ConstTensor b) {
  const std::vector<double> rows = row_numbers(backend, a.rows(), [&](Tensor numbers) { backend.total_variation(numbers, a, b); });
  return std::accumulate(rows.begin(), rows.end(), 0.0) / static_cast<double>(rows.size());
}

void ReadingProgress::add(std::int64_t tokens) {
  done_ += tokens;
  if (tell_ && !tell_(std::min(1.0, static_cast<double>(done_) / static_cast<double>(tokens_)))) throw Cancelled();
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

std::vector<double> read_nll(Model& model, std::span<const std::int32_t> ids) {
  std::vector<double> all;
  ModelState state = model.start();
  ReadingProgress progress({}, std::ssize(ids));
  read_passes(model, state, ids, {.prompt_length = std::ssize(ids), .rules = {}}, nullptr, progress,
              [&](std::size_t first, const Tensor& hidden) {
                const auto next = ids.subspan(first + 1);
                const std::vector<double> nll =
                    Logits(model, hidden).nll(next.first(std::min(next.size(), static_cast<std::size_t>(hidden.rows()))));
                all.insert(all.end(), nll.begin(), nll.end());
              });
  return all;
}

}  // namespace statescope
