#include "app/bench/sse.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "app/bench/bench.h"
#include "app/bench/sse_forms.h"
#include "engine/error.h"

namespace statescope {
namespace {

constexpr std::int64_t kHeads = 4, kDim = 128, kChosen = 1, kChunk = 64;
constexpr int kRepeatsOfForm = 7;

using Form = void (*)(const SparseState&, std::int64_t, Backend&, Workspace&);
constexpr std::array<std::pair<std::string_view, Form>, 3> kForms{
    {{"sequential", sse_sequential},
     {"masking", sse_masking},
     {"varlen", [](const SparseState& op, std::int64_t chunk_size, Backend& backend, Workspace& workspace) {
        backend.sparse_state(op, chunk_size, workspace);
      }}}};

SparseState operands_at(const SsePlace& place, Operands& operands, Backend& backend) {
  const std::int64_t T = place.length, N = place.partitions;
  SparseState op{.q = operands.activation({T, 2, kHeads, kDim}, T), .k = operands.activation({T, 2, kHeads, kDim}, T)};
  op.v = operands.activation({T, kHeads, kDim}, T);
  op.log_decay = operands.uniform({T, 2, kHeads, kDim}, -0.1F, 0);
  const Tensor gate = operands.uniform({T, N}, 0, 1), selected = operands.empty({T, kChosen}, DType::i32);
  backend.top_k(selected, gate);
  op.gate = gate;
  op.selected = selected;
  op.scale = 1 / std::sqrt(static_cast<float>(kDim));
  op.cu_seqlens = operands.indices({0, static_cast<std::int32_t>(T)});
  op.initial_state = operands.uniform({1 + N, kHeads, kDim, kDim});
  op.final_state = operands.empty({1 + N, kHeads, kDim, kDim});
  op.o = operands.empty_activation({T, kHeads, kDim}, T);
  return op;
}

std::vector<float> output_of(Form form, const SparseState& op, Backend& backend, Workspace& workspace) {
  form(op, kChunk, backend, workspace);
  const Workspace::Mark mark(workspace);
  const Tensor exact = workspace.tensor(op.o.shape);
  backend.copy(exact, op.o);
  std::vector<float> o(static_cast<std::size_t>(op.o.shape.size()));
  backend.download(Tensor(o.data(), DType::f32, op.o.shape), exact);
  return o;
}

/// Compared with the largest output; bfloat16 products round.
void check_that_forms_agree(Backend& backend, Precision precision) {
  const double tolerance = precision == Precision::bfloat16 ? 3e-2 : 1e-3;
  Operands operands(backend);
  const SparseState op = operands_at({300, 4}, operands, backend);
  const std::vector<float> expected = output_of(kForms.back().second, op, backend, operands.workspace);
  const float largest = std::abs(*std::ranges::max_element(expected, {}, [](float x) { return std::abs(x); }));
  for (const auto& [name, form] : kForms) {
    const std::vector<float> o = output_of(form, op, backend, operands.workspace);
    for (std::size_t i = 0; i < o.size(); ++i) {
      if (!(std::abs(o[i] - expected[i]) <= tolerance * largest))
        throw Error(fmt::format("the {} form gives {} where varlen gives {}: they are not the same computation", name, o[i], expected[i]));
    }
  }
}

}  // namespace

std::vector<SsePlace> sse_places(std::vector<std::int64_t> lengths, std::vector<std::int64_t> partitions, bool on_device) {
  constexpr std::int64_t N = 4;
  const std::int64_t T = on_device ? 8192 : 1024;
  std::vector<SsePlace> places;
  if (lengths.empty() && partitions.empty()) {
    for (std::int64_t length = T / 8; length <= 4 * T; length *= 2) places.push_back({length, N});
    for (const std::int64_t count : {2, 8, 16, 32}) places.push_back({T, count});
    return places;
  }
  if (lengths.empty()) lengths = {T};
  if (partitions.empty()) partitions = {N};
  for (const std::int64_t length : lengths) {
    for (const std::int64_t count : partitions) places.push_back({length, count});
  }
  return places;
}

SseTimings measure_sse(const DeviceChoice& device, const std::vector<SsePlace>& places, const std::function<void(std::string)>& tell) {
  const Bench bench(device, "");
  Backend& backend = *bench.backend();
  check_that_forms_agree(backend, device.precision);
  SseTimings all{backend.description(), kHeads, kDim, kChosen, {}};
  for (const SsePlace& place : places) {
    Operands operands(backend);
    const SparseState op = operands_at(place, operands, backend);
    for (const auto& [name, form] : kForms) {
      const std::vector<double> times = bench.repeats([&, run = form] { run(op, kChunk, backend, operands.workspace); }, kRepeatsOfForm);
      all.timings.push_back({std::string(name), place.length, place.partitions, times[times.size() / 2], times.front(), times.back()});
      tell(fmt::format("{:>10}  {:>7} tokens  {:>3} partitions  {:>10.3f} ms  ({:.3f} to {:.3f})", name, place.length, place.partitions,
                       1e3 * all.timings.back().seconds, 1e3 * times.front(), 1e3 * times.back()));
    }
  }
  return all;
}

}  // namespace statescope
