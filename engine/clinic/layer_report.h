// A layer's part of the report: what is collected of it while a sequence is read, and the figures that follow from that and the last state.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/clinic/collapse_report.h"

namespace statescope {

/// What the report needs of a forward pass over a whole sequence, which comes in spans.
class Collected final : public Observer {
 public:
  struct Layer {
    std::vector<float> gate, log_decay, head_gate_q, head_gate_k;
    std::vector<float> rates;  // A [H, N, P] of a selective scan, whose log_decay [T, H, N] is the mean of Δ A over P (spec §17.1)
    std::vector<std::int32_t> selected;
    std::int64_t chosen = 0, decays = 0, keys = 0, values = 0, gates = 0;  // numbers a token
    std::vector<double> norms;                                             // of the residual stream, a token each
  };
  std::vector<Layer> layers;

  explicit Collected(Model& model);

  void residual(std::int64_t layer, ConstTensor x) override;
  bool wants(std::string_view name) const override;
  void channel(std::int64_t index, std::string_view name, ConstTensor values) override;

 private:
  void append(std::vector<float>& to, ConstTensor values);
  void append_scan(Layer& layer, std::int64_t index, ConstTensor dt);
  Model& model_;
  bool has_sizes_ = false;  // of k and v, which the first pass tells
};

/// Of a layer's states after the last token, and of what was seen of it on the way; without what is taken away of it.
LayerReport layer_report(Model& model, const ModelState& state, std::int64_t index, const Collected::Layer& seen, std::int64_t tokens);

}  // namespace statescope
